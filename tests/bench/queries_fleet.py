"""A large fleet made of real pages: this host's daemon, node_exporter and a captured Ceph manager, multiplied.

A page's series of one disk become those of ten, its OSDs others for each node; counters then grow and gauges waver, so
that rates and histograms have something to work on. The copies tell what queries cost, not what they say.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.history_store import Labels, Series, labels_of
from support.ceph_pages import Page, captured, parse

NODES, DISKS, NICS, OSDS = 200, 10, 2, 10
"""Of each node; OSDs of the cluster are as many as its disks."""
_CUMULATIVE = ("_total", "_bucket", "_count", "_sum")
_MOMENT = "_timestamp_seconds"
_HOUR_S = 3600.0


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


def daemon_page(text: str) -> Page:
    """A node's page; only one whole disk's series are kept, as ``sda``, and one interface's, as ``eth0``."""
    page = parse(text)
    disk = _first(page, "plumbline_disk_io_total", "device")
    nic = _first(page, "plumbline_nic_bytes_total", "device")
    renamed: Page = {}
    for (name, labels), value in page.items():
        said = dict(labels)
        device = said.get("device")
        if device is not None and name.startswith(("plumbline_disk", "plumbline_nic")):
            if device not in (disk, nic):
                continue
            said["device"] = "sda" if device == disk else "eth0"
        renamed[name, tuple(said.items())] = value
    return renamed


def node_exporter_page(text: str) -> Page:
    """The same of a node_exporter's page."""
    page = parse(text)
    disk = _first(page, "node_disk_io_time_seconds_total", "device")
    nic = next(
        iter({dict(labels)["device"] for name, labels in page if name == "node_network_receive_bytes_total"} - {"lo"})
    )
    renamed: Page = {}
    for (name, labels), value in page.items():
        said = dict(labels)
        if name.startswith("node_disk"):
            if said.get("device") != disk:
                continue
            said["device"] = "sda"
        if name.startswith("node_network") and "device" in said:
            if said["device"] != nic:
                continue
            said["device"] = "eth0"
        renamed[name, tuple(said.items())] = value
    return renamed


def _first(page: Page, metric: str, label: str) -> str:
    return next(dict(labels)[label] for name, labels in page if name == metric)


def fleet(daemon: Page, node: Page | None, keep: Callable[[str], bool] = lambda _: True) -> Iterator[Template]:
    """Every series of the fleet whose metric ``keep`` wants."""
    for number in range(NODES):
        host = f"node{number:03}"
        for page, job in ((daemon, "plumbline"), (node or {}, "node")):
            target = {"cluster": "fleet", "instance": host, "job": job}
            yield from _templates(_of_node(page, number), target, keep)
    yield from _templates(_of_ceph(captured("load-2")), {"cluster": "fleet", "instance": "mgr", "job": "ceph"}, keep)


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
            use = {"device": _disk(disk), "kind": "osd", "name": f"osd.{number * OSDS + disk}"}
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


def _of_ceph(page: Page) -> Iterator[tuple[str, dict[str, str], float]]:
    for (name, labels), value in page.items():
        said = dict(labels)
        if said.get("ceph_daemon") == "osd.0":
            for osd in range(NODES * OSDS):
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


def series(template: Template, times_ms: NDArray[np.int64], captured_ms: int) -> Series:
    """The series at these times. A counter of an hour's growth more each hour; a gauge within a tenth; 0 and 1 stay."""
    age_s = (times_ms - captured_ms) / 1e3
    pace = 0.5 + (template.seed % 1000) / 1000
    if template.cumulative:
        # Large enough an offset that the counter never was below zero in the time asked for.
        values = template.value * (1 + pace * (age_s / _HOUR_S + 24 * 30))
    elif template.name.endswith(_MOMENT):
        values = template.value + age_s
    elif template.value in (0.0, 1.0):
        values = np.full(len(times_ms), template.value)
    else:
        values = template.value * (1 + 0.1 * np.sin(age_s / _HOUR_S * (0.2 + pace) + template.seed % 7))
    return Series(template.labels, times_ms, np.asarray(values, np.float64))
