"""For a collector that is switched off nothing is read or asked; each job says whom it serves."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from plumbline.collectors.registry import COLLECTORS, NAMES
from plumbline.config.model import Config
from plumbline.core.roots import Roots
from plumbline.core.slot import PeriodicSlot
from plumbline.daemon.running import HostContext
from plumbline.daemon.wiring import Wiring, no_daemon
from plumbline.probes.run.state import StateStore
from support.hosts import tree

NEEDED_BY_OTHERS = {
    "network facts",  # labels, and which ports there are
    "disk facts",
    "disk users",
    "link facts",
    "disk presence",  # it remembers disks, also for the day when its collector is switched on
    "claims",  # probes that other processes run
    "maintenance",  # it answers commands
}
TREES = (
    ("ceph-cephadm-node", "infiniband-storage-node", "lustre", "cpu-power"),
    ("arrays-storage-node",),
    ("pcie-storage-node",),
)
NEVER = threading.Event()


def wired(folder: Path, roots: Roots, on: set[str]) -> Wiring:
    store = StateStore(folder / "storage")
    config = Config(collectors={name: name in on for name in NAMES}, vantage="host")
    context = HostContext(None, store.directory, roots, {}, "node-1")
    return Wiring(context, config, store, state=no_daemon)


def shown(folder: Path, roots: Roots, on: set[str]) -> set[str]:
    """The names of the metrics that have samples after one run of each job."""
    parts = wired(folder, roots, on)
    for job in parts.slow_tier():
        job.run(NEVER)
    parts.collect()
    return {family.spec.name for family in parts.exposition.scrape().families}


def slots(parts: Wiring) -> list[PeriodicSlot[object]]:
    watch = parts.watch
    holders = (parts.ceph_map, watch, watch.storage, watch.osds)
    return [slot for holder in holders for slot in vars(holder).values() if isinstance(slot, PeriodicSlot)]


def test_a_job_serves_collectors_or_is_needed_by_others(tmp_path: Path) -> None:
    jobs = wired(tmp_path, Roots.under(tmp_path / "host"), set()).jobs()
    assert {job.name for job in jobs if not job.serves} == NEEDED_BY_OTHERS
    assert {name for job in jobs for name in job.serves} <= set(NAMES)


@pytest.mark.parametrize("scenarios", TREES)
def test_nothing_is_read_for_collectors_that_are_off(tmp_path: Path, scenarios: tuple[str, ...]) -> None:
    parts = wired(tmp_path, tree(tmp_path / "host", *scenarios), set())
    for job in parts.jobs():
        job.run(NEVER)
    kept = slots(parts)
    assert len(kept) > 12
    assert [slot.job.name for slot in kept if slot.tried and slot.job.serves] == []


@pytest.mark.parametrize("scenarios", TREES)
def test_a_collector_shows_the_same_without_any_other(tmp_path: Path, scenarios: tuple[str, ...]) -> None:
    """Halves of all collectors: for each two of them there is a half that has one and not the other."""
    roots = tree(tmp_path / "host", *scenarios)
    together = shown(tmp_path, roots, set(NAMES))
    names = {collector.name: together & {spec.name for spec in collector.specs} for collector in COLLECTORS}
    names = {name: own for name, own in names.items() if own}
    assert len(names) > 5
    for bit in range(len(names).bit_length()):
        halves = [{name for place, name in enumerate(names) if place >> bit & 1 == value} for value in (0, 1)]
        for half in halves:
            seen = shown(tmp_path, roots, half)
            assert [name for name in half if not names[name] <= seen] == []
