"""A large fleet made of real pages: this host's daemon, node_exporter and a captured Ceph manager, multiplied.

A page's series of one disk become those of ten, its OSDs others for each node; counters then grow and gauges waver, so
that rates and histograms have something to work on. The copies tell what queries cost, not what they say.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.history_store import Labels, Store, head, labels_of
from support.ceph_pages import Page, captured, parse

NODES, DISKS, NICS, OSDS = 200, 10, 2, 10
"""Of each node; OSDs of the cluster are as many as its disks."""
BATCH = 4000
LIFE_S = 60.0
"""About so long after the daemon's start its page is read; in as long its counters grow by as much again."""
_CUMULATIVE = ("_total", "_bucket", "_count", "_sum")
_MOMENT = "_timestamp_seconds"
_HOUR_S = 3600.0
_DISK_HISTOGRAMS = ("plumbline_disk_latency_seconds", "plumbline_disk_queue_seconds")


@dataclass(frozen=True, slots=True)
class Template:
    """One series of the fleet. ``value`` is what the page said; ``seed`` is the same for all of one histogram."""

    labels: Labels
    value: float
    seed: int
    cumulative: bool

    @property
    def name(self) -> str:
        return dict(self.labels)["__name__"]


@dataclass(frozen=True, slots=True)
class Producer:
    """Whose page it is: a metric of every disk and one of every interface, and how the names of all of them begin."""

    of_disk: str
    of_nic: str
    disks: str
    nics: str


DAEMON = Producer("plumbline_disk_ios_total", "plumbline_nic_bytes_total", "plumbline_disk", "plumbline_nic")
NODE_EXPORTER = Producer(
    "node_disk_io_time_seconds_total", "node_network_receive_bytes_total", "node_disk", "node_network"
)


def one_of_each(text: str, producer: Producer) -> Page:
    """A node's page; of its disks one is kept, as ``sda``, and of its interfaces one, as ``eth0``.

    Histograms of discards are left out: the collector has them of disks that had some, and Ceph discards nothing unless
    it is told to (``bdev_enable_discard``), while this host's own disk is trimmed.
    """
    page = parse(text)
    kept = {
        producer.disks: (_first(page, producer.of_disk), "sda"),
        producer.nics: (_first(page, producer.of_nic), "eth0"),
    }
    renamed: Page = {}
    for (name, labels), value in page.items():
        said = dict(labels)
        one, called = next((found for start, found in kept.items() if name.startswith(start)), ("", ""))
        if one and "device" in said:
            if said["device"] != one or (said.get("operation") == "discard" and name.startswith(_DISK_HISTOGRAMS)):
                continue
            said["device"] = called
        renamed[name, tuple(said.items())] = value
    return renamed


def _first(page: Page, metric: str) -> str:
    return next(device for name, labels in page if name == metric and (device := dict(labels)["device"]) != "lo")


def fleet(
    daemon: Page, node: Page, *, nodes: int = NODES, keep: Callable[[str], bool] = lambda _: True
) -> Iterator[Template]:
    """Every series of the fleet whose metric ``keep`` wants."""
    for number in range(nodes):
        host = f"node{number:03}"
        for page, job in ((daemon, "plumbline"), (node, "node")):
            target = {"cluster": "fleet", "instance": host, "job": job}
            yield from _templates(_of_node(page, number), target, keep)
    yield from _templates(
        _of_ceph(captured("load-2"), nodes), {"cluster": "fleet", "instance": "mgr", "job": "ceph"}, keep
    )


def _of_node(page: Page, number: int) -> Iterator[tuple[str, dict[str, str], float]]:
    osds = sorted({dict(labels).get("ceph_daemon", "") for _, labels in page} - {""})
    for (name, labels), value in page.items():
        said = dict(labels)
        if said.get("device") == "sda":
            for disk in range(DISKS):
                yield name, {**said, "device": _disk(disk), **_identity(name, number, disk)}, value
        elif said.get("device") == "eth0":
            for nic in range(NICS):
                yield name, {**said, "device": f"eth{nic}"}, value
        elif "ceph_daemon" in said:
            yield name, {**said, "ceph_daemon": f"osd.{number * OSDS + osds.index(said['ceph_daemon'])}"}, value
        else:
            yield name, said, value
    if osds:
        for disk in range(DISKS):
            use = {"device": _disk(disk), "use": "osd", "user": f"osd.{number * OSDS + disk}"}
            yield "plumbline_disk_use_info", use, 1.0


def _disk(number: int) -> str:
    return f"sd{chr(ord('a') + number)}"


def _identity(name: str, node: int, disk: int) -> dict[str, str]:
    if name != "plumbline_disk_info":
        return {}
    return {
        "serial": f"S{node:03}{disk:02}",
        "osd": f"osd.{node * OSDS + disk}",
        "device_class": "ssd",
        "model": "BENCH",
    }


def _of_ceph(page: Page, nodes: int) -> Iterator[tuple[str, dict[str, str], float]]:
    for (name, labels), value in page.items():
        said = dict(labels)
        if said.get("ceph_daemon") == "osd.0":
            for osd in range(nodes * OSDS):
                more = {"ceph_daemon": f"osd.{osd}"}
                if "hostname" in said:
                    more["hostname"] = f"node{osd // OSDS:03}"
                if name.startswith("ceph_disk_occupation"):
                    more |= {"instance": f"node{osd // OSDS:03}", "device": f"/dev/{_disk(osd % OSDS)}"}
                yield name, {**said, **more}, value
        elif not re.fullmatch(r"osd\.\d+", said.get("ceph_daemon", "")):
            yield name, said, value


def _templates(
    series: Iterable[tuple[str, dict[str, str], float]], target: Mapping[str, str], keep: Callable[[str], bool]
) -> Iterator[Template]:
    for name, labels, value in series:
        if keep(name):
            yield template(name, {**target, **labels}, value)


def template(name: str, labels: Mapping[str, str], value: float) -> Template:
    """A series that goes on as its name says: counters of Ceph have no suffix, but are large and whole."""
    stem = re.sub("(_bucket|_count|_sum)$", "", name)
    cumulative = name.endswith(_CUMULATIVE) or (name.startswith("ceph_") and value >= 1e4 and "bytes_used" not in name)
    known = ",".join(f"{key}={labels[key]}" for key in sorted(labels) if key != "le")
    return Template(labels_of(name, labels), value, zlib.crc32(f"{stem}{{{known}}}".encode()), cumulative)


class Feed:
    """Writes many series again and again. What of a request is the same each time is worked out once."""

    def __init__(self, templates: Iterable[Template], captured_ms: int) -> None:
        """``captured_ms``: when the templates' values were."""
        chosen = tuple(templates)
        self._captured_ms = captured_ms
        self._heads = [head(each.labels) for each in chosen]
        self._value = np.array([each.value for each in chosen])
        self._seed = np.array([each.seed for each in chosen], np.int64)
        self._cumulative = np.array([each.cumulative for each in chosen], np.bool_)
        self._moment = np.array([each.name.endswith(_MOMENT) for each in chosen], np.bool_)
        self._fixed = np.isin(self._value, (0.0, 1.0))

    def write(self, store: Store, times_ms: NDArray[np.int64]) -> None:
        """A sample of each of them at these times, in requests of a size that Prometheus takes."""
        for begin in range(0, len(self._heads), BATCH):
            some = slice(begin, begin + BATCH)
            store.write_samples(self._heads[some], times_ms, self._values(some, times_ms))

    def _values(self, some: slice, times_ms: NDArray[np.int64]) -> NDArray[np.float64]:
        """A row each. A counter grows by its value in :data:`LIFE_S`; a gauge within a tenth; 0 and 1 stay."""
        age_s = (times_ms - self._captured_ms) / 1e3
        value, seed = self._value[some, None], self._seed[some, None]
        pace = 0.5 + (seed % 1000) / 1000
        # Large enough an offset that the counter never was below zero in the time asked for.
        counter = value * (1 + pace * (age_s / LIFE_S + 14 * 24 * 60))
        gauge = value * (1 + 0.1 * np.sin(age_s / _HOUR_S * (0.2 + pace) + seed % 7))
        found = np.where(self._fixed[some, None], value, gauge)
        found = np.where(self._moment[some, None], value + age_s, found)
        return np.where(self._cumulative[some, None], counter, found)


def now_ms() -> int:
    """Unix time."""
    return int(time.time() * 1000)
