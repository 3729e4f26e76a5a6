"""Benchmarks: ratios between peers on the same host in the same run, never absolute times."""
