"""The hub at https: its certificate, from elsewhere or its own, and what secures connections by it."""
