"""Who may do what: nodes by tokens; people by sessions, keys and links."""
