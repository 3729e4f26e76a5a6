"""Probes of S3 endpoints."""
