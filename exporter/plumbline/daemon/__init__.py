"""The daemon: what it is made of, and its life from start to reload to stop."""
