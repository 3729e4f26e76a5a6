"""Names in the storage path, a directory that is Plumbline's alone (:mod:`~plumbline.probes.storage`)."""

from __future__ import annotations

MARKER = ".plumbline-storage"

STATE_FILE, LOCK_FILE = "state.json", "lock"
HEAVY_LOCK, RECORD_LOCK, BESIDE_LOCK = "heavy-probe.lock", "record.lock", "probe-run.lock"
"""The daemon and a recording beside it have to mean the same first one; the second is a recording's alone: two of them
would keep their runs in one file. The third: of two persons who run the same canary each would remove the other's
objects."""
RECORDED = "baseline.yaml"
"""What ``plumbline baseline record`` writes."""
WORK_FILE = "record.work.json"
"""A recording under way."""
OSDS_FILE = "ceph-osds.json"
"""What the cluster last said of its OSDs."""

LOCKS = (LOCK_FILE, HEAVY_LOCK, RECORD_LOCK, BESIDE_LOCK)
_FILES = (STATE_FILE, RECORDED, WORK_FILE, OSDS_FILE)


def reserved(name: str) -> bool:
    """Whether a file or directory called so could stand in the way of one of ours."""
    return name in _FILES or name in LOCKS or any(name.startswith(f"{file}.") for file in _FILES)
