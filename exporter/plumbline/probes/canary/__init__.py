"""Canaries: small probes that never stop, each in a worker process of its own."""
