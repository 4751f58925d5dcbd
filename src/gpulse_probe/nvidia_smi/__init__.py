"""What `nvidia-smi -q -x` prints, read by pure functions: the hub uses them too, for nodes without Python."""
