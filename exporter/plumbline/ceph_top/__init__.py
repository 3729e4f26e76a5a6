"""``plumbline ceph top``: which OSDs are slow, and of what they are suspected."""
