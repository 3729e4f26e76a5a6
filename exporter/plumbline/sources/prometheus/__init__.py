"""A Prometheus server: queries, and how to reach one that is guarded."""
