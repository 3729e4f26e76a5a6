"""The faults, and what a right notification of each says."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from lab.cluster import ceph
from lab.cluster.hosts import MTU, NIC, SWITCH, Host
from support.ceph_client import CephClient
from support.slow_wire import slow_wire
from support.throttling import below, throttled

WIRE_S = 0.03
WRITES_PER_S = 20
FILLED = "filled"
_LIMITS = (("nearfull", 0.2), ("backfillfull", 0.21), ("full", 0.22))
_SHIPPED = (("full", 0.95), ("backfillfull", 0.9), ("nearfull", 0.85))


@dataclass(frozen=True, slots=True)
class Lab:
    """What a fault may work on; ``undo`` ends the one there is."""

    hosts: dict[str, Host]
    ceph: CephClient
    undo: ExitStack = field(default_factory=ExitStack)


@dataclass(frozen=True, slots=True)
class Scenario:
    """``alerts``: those that are right to come first, at one of ``layers``; it has to name ``host`` and ``device``."""

    name: str
    fault: str
    alerts: tuple[str, ...]
    layers: tuple[str, ...]
    host: str
    device: str
    begin: Callable[[Lab], None]


def _on_switch(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _slow_link(lab: Lab) -> None:
    """A slow wire between the switch and one of the host's own: this kernel has no netem."""
    lab.undo.enter_context(slow_wire("near", "far", WIRE_S))
    _on_switch("ip", "link", "add", "own", "mtu", str(MTU), "up", "type", "bridge")
    lab.undo.callback(_on_switch, "ip", "link", "del", "own")
    for port, switch in (("near", SWITCH), ("far", "own"), ("s2", "own")):
        _on_switch("ip", "link", "set", port, "mtu", str(MTU), "master", switch, "up")
    lab.undo.callback(_on_switch, "ip", "link", "set", "s2", "master", SWITCH)


def _slow_disk(lab: Lab) -> None:
    """Below the OSD's own disk, so that the disk is slow."""
    disk = lab.hosts["s2"].disks[2]
    image = Path(f"/sys/block/{disk}/loop/backing_file").read_text().strip()
    pids = [lab.hosts["s2"].osd_pid(2)]
    lab.undo.enter_context(throttled(below(Path(image)), pids, write_iops_device=WRITES_PER_S))


def _freeze(lab: Lab) -> None:
    """Its kernel, which is everybody's, would go on answering."""
    lab.hosts["s3"].freeze(frozen=True)
    lab.undo.callback(lab.hosts["s3"].freeze, frozen=False)
    _port_down("s3")(lab)


def _port_down(host: str) -> Callable[[Lab], None]:
    def down(lab: Lab) -> None:
        _on_switch("ip", "link", "set", host, "down")
        lab.undo.callback(_on_switch, "ip", "link", "set", host, "up")

    return down


def _mtu(lab: Lab) -> None:
    lab.hosts["s2"].run(f"ip link set {NIC} mtu 1500")
    lab.undo.callback(lab.hosts["s2"].run, f"ip link set {NIC} mtu {MTU}")


def _fill(lab: Lab) -> None:
    """One OSD alone: a pool of its own, and then limits below what was written there. A client of a full OSD waits."""
    lab.ceph.ceph_all(
        "osd crush rule create-replicated one s3 osd",
        f"osd pool create {FILLED} 1 1 replicated one",
        f"osd pool set {FILLED} size 1 --yes-i-really-mean-it",
        f"osd pool application enable {FILLED} rados",
    )
    pool = next(each["poolnum"] for each in lab.ceph.ceph_json("osd", "lspools") if each["poolname"] == FILLED)
    lab.ceph.ceph("osd", "pg-upmap", f"{pool}.0", "4")
    words = ["bench", "600", "write", "-b", "4M", "-t", "2", "--max-objects", "240", "--no-cleanup"]
    lab.ceph.run("rados", "-p", FILLED, *words, timeout_s=ceph.WITHIN_S)
    lab.ceph.ceph_all(*(f"osd set-{name}-ratio {ratio}" for name, ratio in _LIMITS))
    lab.undo.callback(_empty, lab)


def _empty(lab: Lab) -> None:
    lab.ceph.ceph_all(*(f"osd set-{name}-ratio {ratio}" for name, ratio in _SHIPPED))
    lab.ceph.remove_pool(FILLED)
    lab.ceph.ceph("osd", "crush", "rule", "rm", "one")


def _lose_monitor(lab: Lab) -> None:
    lab.hosts["s2"].run("systemctl stop ceph-mon@s2")
    lab.undo.callback(lab.hosts["s2"].run, "systemctl start ceph-mon@s2")


SCENARIOS = (
    Scenario(
        "disk", f"a disk of s2 is slow: it makes {WRITES_PER_S} writes/s",
        ("PlumblineOsdSlowDisk", "PlumblineDiskLatencyOutlier"), ("osd", "disk"), "s2", "osd.2", _slow_disk,
    ),
    Scenario(
        "monitor", "the monitor of s2 is lost", ("PlumblineCephMonitorDown",), ("rados",), "s2", "mon.s2",
        _lose_monitor,
    ),
    Scenario("full", "osd.4 of s3 is full", ("PlumblineCephFull",), ("rados",), "s3", "osd.4", _fill),
    Scenario(
        "port", "the switch port of s2, its only one, is down", ("PlumblineDown",), ("self",), "s2", "",
        _port_down("s2"),
    ),
    Scenario("frozen", "s3 is frozen: nothing on it runs or answers", ("PlumblineDown",), ("self",), "s3", "", _freeze),
    # the last: Ceph warns of slow pings for a quarter of an hour, and of what a lost packet left in a monitor for good
    Scenario(
        "link", f"s2's link is slow: {WIRE_S * 1000:.0f} ms each way",
        ("PlumblineOsdConnectionSlow", "PlumblineOsdHeartbeatSlow", "PlumblineProbeLatencyHigh"), ("network",), "s2",
        NIC, _slow_link,
    ),
    Scenario(
        "mtu", f"s2 has an MTU of 1500, the others {MTU}", ("PlumblineNicMtuMismatch",), ("network",), "s2", NIC, _mtu,
    ),
)  # fmt: skip
