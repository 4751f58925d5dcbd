"""Ways to a node."""
