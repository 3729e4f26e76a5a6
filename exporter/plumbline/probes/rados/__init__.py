"""Probes of RADOS: bench and canary."""
