"""The daemon's parts, put together."""
