"""``plumbline ceph``: what the administrator of a cluster, or somebody on an OSD's host, does."""
