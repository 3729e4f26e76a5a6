"""File names in the storage path, a directory that only Plumbline uses (:mod:`~plumbline.probes.run.storage`)."""

import re

from plumbline.core.proofs import Marked

MARKER = ".plumbline-storage"
MARKER_TEXT = b"Plumbline keeps its state here. A file in this directory with a name that it gives is its own.\n"
MARK = Marked(MARKER, MARKER_TEXT)

STATE_FILE, LOCK_FILE = "state.json", "lock"
HEAVY_LOCK, RECORD_LOCK, BESIDE_LOCK = "heavy-probe.lock", "record.lock", "probe-run.lock"
"""The first lock must be the same for the daemon and a recording beside it. The second is the recording's alone: two
recordings would keep their runs in one file. The third prevents two users from running the same canary at once, because
each would remove the other's objects."""
RECORDED = "baseline.yaml"  # Written by ``plumbline baseline record``
CANDIDATE = f"{RECORDED}.candidate"  # Recorded for ``plumbline fleet`` and not accepted yet: judges nothing
CLASS_FILE = "baseline.class.yaml"  # The accepted figures of this node's class, put here by ``plumbline fleet push``
SIGNATURE, NEXT_SIGNATURE = ".sig", ".sig.new"  # Suffixes: of the file, and of the one that is about to replace it
WORK_FILE = "record.work.json"  # State of a recording in progress
OSDS_FILE = "ceph-osds.json"  # The cluster's last answer about its OSDs
LEASE_FILE, SEEN_FILE = "maintenance.json", "maintenance.seen.json"
"""Announced maintenance, written by ``plumbline maintenance``; and which of it was scraped, written by the daemon."""
CLAIM_FILE = re.compile(r"volume-claim\.(.{1,40})\.json")  # Results of ``plumbline probe claim``

LOCKS = (LOCK_FILE, HEAVY_LOCK, RECORD_LOCK, BESIDE_LOCK)
_FILES = (STATE_FILE, RECORDED, CLASS_FILE, WORK_FILE, OSDS_FILE, LEASE_FILE, SEEN_FILE)


def reserved(name: str) -> bool:
    """Whether a file or directory of this name could collide with one of ours."""
    ours = name in _FILES or name in LOCKS or any(name.startswith(f"{file}.") for file in _FILES)
    return ours or name.startswith("volume-claim.")


def claim_file(name: str) -> str:
    return f"volume-claim.{name}.json"
