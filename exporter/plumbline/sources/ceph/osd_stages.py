"""Where an OSD's operations spend their time: counters of ``perf dump`` with a count and a sum of seconds.

``src/osd/osd_perf_counters.cc`` and ``src/os/bluestore/BlueStore.cc`` of Ceph::

    {"osd": {"op_w_latency": {"avgcount": 20037, "sum": 315.011732211, "avgtime": 0.015721501},
             "op_w_process_latency": {…}, "op_w_prepare_latency": {…}, "subop_w_latency": {…}, …},
     "bluestore": {"commit_lat": {…}, "state_aio_wait_lat": {…}, "kv_sync_lat": {…}, "read_lat": {…}, …}}

For one operation, ``latency`` is from the message's arrival to the reply, ``process`` the same without the queue;
``prepare`` ends when a write has been passed to the store and to the replicas. ``commit_lat`` (``txc_commit_lat`` since
Ceph 17) counts every transaction, including those of replicas and of recovery. All count since the daemon's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from plumbline.sources.ceph.adminsocket import decode
from plumbline.sources.ceph.osd_latency import LongRunAverage

READ, WRITE, READ_MODIFY_WRITE = "read", "write", "read-modify-write"
_SHORT = {READ: "r", WRITE: "w", READ_MODIFY_WRITE: "rw"}


@dataclass(frozen=True, slots=True)
class OperationStages:
    """One kind of client operation; all three counters cover nearly the same operations."""

    total: LongRunAverage
    process: LongRunAverage
    prepare: LongRunAverage


@dataclass(frozen=True, slots=True)
class OsdStages:
    """One OSD's counters. ``None``: not counted by the release, or the store is not BlueStore."""

    operations: Mapping[str, OperationStages]
    """By kind of operation."""
    replica_writes: LongRunAverage | None = None
    """Writes received as a replica, from the message's arrival to this OSD's own commit."""
    commit: LongRunAverage | None = None
    """The store's transactions, from submission to commit."""
    device: LongRunAverage | None = None
    """Their wait for data on the device; small writes to a rotating disk go to the key-value store instead."""
    kv: LongRunAverage | None = None
    """Syncs of the key-value store; one covers many transactions."""
    store_read: LongRunAverage | None = None


class _Bluestore(msgspec.Struct, frozen=True):
    txc_commit_lat: LongRunAverage | None = None
    commit_lat: LongRunAverage | None = None
    state_aio_wait_lat: LongRunAverage | None = None
    kv_sync_lat: LongRunAverage | None = None
    read_lat: LongRunAverage | None = None


class _Counters(msgspec.Struct, frozen=True):
    osd: dict[str, msgspec.Raw] = {}
    bluestore: _Bluestore = _Bluestore()


def parse_stages(counters: bytes, *, source: str) -> OsdStages:
    """Parse ``perf dump``; a kind of operation with missing counters is omitted. :class:`ParseError` when malformed."""
    found = decode(_Counters, counters, source=source)

    def counter(name: str) -> LongRunAverage | None:
        raw = found.osd.get(name)
        return None if raw is None else decode(LongRunAverage, bytes(raw), source=f"{source}: {name}")

    operations = {}
    for operation, short in _SHORT.items():
        total, process, prepare = (counter(f"op_{short}_{part}latency") for part in ("", "process_", "prepare_"))
        if total is not None and process is not None and prepare is not None:
            operations[operation] = OperationStages(total, process, prepare)
    store = found.bluestore
    return OsdStages(
        operations=operations,
        replica_writes=counter("subop_w_latency"),
        commit=store.commit_lat if store.txc_commit_lat is None else store.txc_commit_lat,
        device=store.state_aio_wait_lat,
        kv=store.kv_sync_lat,
        store_read=store.read_lat,
    )
