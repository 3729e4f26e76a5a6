"""``plumbline ceph top``: which OSDs are slow, and the suspected cause."""
