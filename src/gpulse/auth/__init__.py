"""Who may do what: for now nodes, by tokens."""
