"""Probes of RBD images."""
