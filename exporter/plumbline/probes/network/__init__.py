"""Probes of the network between nodes: round trips, throughput, path MTU."""
