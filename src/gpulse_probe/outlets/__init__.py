"""Ways a Snapshot leaves the node."""
