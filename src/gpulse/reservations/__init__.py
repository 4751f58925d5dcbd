"""Reservations of GPUs: their rules, where they are kept, and how they compare with what really runs."""
