"""A believable cluster without a card: what the demo shows and what the benchmarks are loaded with."""
