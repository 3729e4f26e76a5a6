"""The daemon: its parts, and its life from start to reload to stop."""
