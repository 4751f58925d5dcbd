"""The hub over HTTP: one file per resource."""
