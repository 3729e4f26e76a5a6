"""Ceph as this host sees it: its configuration, its daemons' admin sockets, the cluster map."""
