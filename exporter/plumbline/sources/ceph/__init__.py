"""Ceph as seen from this host: its configuration, its daemons' admin sockets, the cluster map."""
