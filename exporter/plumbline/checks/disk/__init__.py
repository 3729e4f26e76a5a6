"""The checks of the disk layer."""
