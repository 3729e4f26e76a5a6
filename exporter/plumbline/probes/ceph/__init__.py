"""Shared parts of the Ceph probes: access, sessions, gates, the cluster's OSDs and pools."""
