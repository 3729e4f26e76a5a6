"""A Prometheus server: queries, and access to a protected one."""
