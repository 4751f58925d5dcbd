"""One file per thing that is read; a collector never imports another."""
