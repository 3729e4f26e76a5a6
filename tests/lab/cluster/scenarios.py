"""The faults, and what a right notification of each says; and the work that nobody is to be told of."""

from __future__ import annotations

import subprocess
import time
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
LOST = 0.01
WRITES_PER_S = 20
FILLED = "filled"
OUTLIVES_S = 60.0
"""Longer than two scrapes and what Ceph averages."""
_LIMITS = (("nearfull", 0.2), ("backfillfull", 0.21), ("full", 0.22))
_SHIPPED = (("full", 0.95), ("backfillfull", 0.9), ("nearfull", 0.85))


@dataclass(frozen=True, slots=True)
class Lab:
    """What a fault may work on; ``undo`` ends the one there is. ``pause`` stops Prometheus for as many seconds.

    ``release``: Ceph's.
    """

    hosts: dict[str, Host]
    ceph: CephClient
    pause: Callable[[float], None]
    release: str
    undo: ExitStack = field(default_factory=ExitStack)


@dataclass(frozen=True, slots=True)
class Scenario:
    """``alerts``: those that are right to come first, at one of ``layers``; it has to name ``host`` and ``device``,
    or one of several ("osd.4|osd.5").

    Without ``alerts`` it is work: nobody is told while it is done and for ``quiet_s`` after it, apart from the
    information ``informs``. ``since``: the first Ceph that says so.
    """

    name: str
    fault: str
    alerts: tuple[str, ...]
    layers: tuple[str, ...]
    host: str
    device: str
    begin: Callable[[Lab], None]
    quiet_s: float = 0.0
    informs: str = ""
    since: int = 0


def _on_switch(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _wire(lab: Lab, *, delay_s: float, lost: float) -> None:
    """Between the switch and one of the host's own: this kernel has no netem."""
    lab.undo.enter_context(slow_wire("near", "far", delay_s, lost))
    _on_switch("ip", "link", "add", "own", "mtu", str(MTU), "up", "type", "bridge")
    lab.undo.callback(_on_switch, "ip", "link", "del", "own")
    for port, switch in (("near", SWITCH), ("far", "own"), ("s2", "own")):
        _on_switch("ip", "link", "set", port, "mtu", str(MTU), "master", switch, "up")
    lab.undo.callback(_on_switch, "ip", "link", "set", "s2", "master", SWITCH)


def _slow_link(lab: Lab) -> None:
    _wire(lab, delay_s=WIRE_S, lost=0.0)


def _lossy_link(lab: Lab) -> None:
    _wire(lab, delay_s=0.0, lost=LOST)


def _slow_store(lab: Lab) -> None:
    """The leader's: each change of a map waits for it."""
    leader = lab.hosts["s1"]
    disk = below(leader.inside.key)  # the host's files are on the same disk; its overlay has no number of its own
    lab.undo.enter_context(throttled(disk, [leader.pid("ceph-mon@s1")], write_iops_device=1))


def _split_monitors(lab: Lab) -> None:
    """Those of s1 and s2 cannot reach each other; OSDs and clients reach all. A quorum that counts connections, as of a
    stretched cluster: of another one either monitor leaves the quorum in turn."""
    lab.ceph.ceph("mon", "set", "election_strategy", "connectivity")
    lab.undo.callback(lab.ceph.ceph, "mon", "set", "election_strategy", "classic")
    time.sleep(OUTLIVES_S)
    for host, other in (("s1", "s2"), ("s2", "s1")):
        for port in (3300, 6789):
            rule = f"to {ceph.address(other)} ipproto tcp dport {port} type blackhole"
            lab.undo.callback(lab.hosts[host].run, f"ip rule del {rule}")
            lab.hosts[host].run(f"ip rule add {rule}")


def slow_disk(lab: Lab) -> None:
    """Below the OSD's own disk, so that the disk is slow."""
    disk = lab.hosts["s2"].disks[2]
    image = Path(f"/sys/block/{disk}/loop/backing_file").read_text().strip()
    pids = [lab.hosts["s2"].pid("ceph-osd@2")]
    lab.undo.enter_context(throttled(below(Path(image)), pids, write_iops_device=WRITES_PER_S))


def _freeze(host: str) -> Callable[[Lab], None]:
    def freeze(lab: Lab) -> None:
        """Its kernel, which is everybody's, would go on answering."""
        lab.hosts[host].freeze(frozen=True)
        lab.undo.callback(lab.hosts[host].freeze, frozen=False)
        _port_down(host)(lab)

    return freeze


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
    _stop(lab, "s2", "ceph-mon@s2")


def _units(host: str) -> list[str]:
    return [*(f"ceph-osd@{number}" for number in ceph.osds(host)), f"ceph-mon@{host}", "plumbline"]


def _stop(lab: Lab, host: str, *units: str) -> None:
    names = " ".join(units or _units(host))
    lab.undo.callback(lab.hosts[host].run, _start(names))
    lab.hosts[host].run(f"systemctl stop {names}")


def _start(names: str) -> str:
    """Also of what systemd gave up because it was started too often."""
    return f"systemctl reset-failed {names} || true; systemctl start {names}"


def _announce(lab: Lab, host: str, carrier: str) -> None:
    """As docs/maintenance.md says."""
    lab.hosts[carrier].run(f"plumbline maintenance start {host} --for 1h --why 'a new kernel'")
    lab.undo.callback(lab.hosts[carrier].run, f"plumbline maintenance end {host}")
    lab.ceph.ceph("osd", "set-group", "noout", host)
    lab.undo.callback(lab.ceph.ceph, "osd", "unset-group", "noout", host)


def _maintain(lab: Lab) -> None:
    _announce(lab, "s3", carrier="s2")
    _stop(lab, "s3")


def _maintain_by_noout(lab: Lab) -> None:
    lab.ceph.ceph("osd", "set", "noout")
    lab.undo.callback(lab.ceph.ceph, "osd", "unset", "noout")
    time.sleep(OUTLIVES_S)  # somebody who types
    _stop(lab, "s2", *(f"ceph-osd@{number}" for number in ceph.osds("s2")), "plumbline")


def _lose_one_beside(lab: Lab) -> None:
    """Of three copies one is left: groups of s3 and this OSD are inactive."""
    _maintain(lab)
    time.sleep(OUTLIVES_S)
    _stop(lab, "s2", "ceph-osd@2")


def _stop_unannounced(lab: Lab) -> None:
    _stop(lab, "s3", *(f"ceph-osd@{number}" for number in ceph.osds("s3")))


def _reboot_all(lab: Lab) -> None:
    """One after the other, each with its lease; the manager's host, too."""
    for host, carrier in (("s1", "s2"), ("s2", "s3"), ("s3", "s1")):
        _announce(lab, host, carrier)
        units = _units(host) + (["ceph-mgr@x"] if host == ceph.HOSTS[0] else [])
        _stop(lab, host, *units)
        time.sleep(OUTLIVES_S)
        lab.undo.close()
        lab.ceph.wait_healthy(ceph.WITHIN_S)


def _restart_osds(lab: Lab) -> None:
    for host in ceph.HOSTS:
        for number in ceph.osds(host):
            lab.hosts[host].run(f"systemctl restart ceph-osd@{number}")
            time.sleep(20)


def _split(lab: Lab) -> None:
    lab.ceph.ceph("osd", "pool", "set", "images", "pg_num", "64")
    time.sleep(OUTLIVES_S)


def _scrub(lab: Lab) -> None:
    for number in range(len(ceph.HOSTS) * ceph.OSDS_EACH):
        lab.ceph.ceph("osd", "deep-scrub", f"osd.{number}")
    time.sleep(OUTLIVES_S)


def _delete_and_trim(lab: Lab) -> None:
    """Objects of a minute, a snapshot every 20 s; then the snapshots go, then the objects."""
    lab.ceph.add_pool("many", size=3, pg_num=16)
    lab.undo.callback(lab.ceph.remove_pool, "many")
    for snapshot in ("one", "two", "three"):
        lab.ceph.run("rados", "-p", "many", "bench", "20", "write", "-b", "64K", "-t", "2", "--no-cleanup")
        lab.ceph.ceph("osd", "pool", "mksnap", "many", snapshot)
    for snapshot in ("one", "two", "three"):
        lab.ceph.ceph("osd", "pool", "rmsnap", "many", snapshot)
    lab.ceph.run("rados", "purge", "many", "--yes-i-really-really-mean-it")


def _fail_over(lab: Lab) -> None:
    """The only manager starts anew, twice."""
    for _ in range(2):
        lab.hosts[ceph.HOSTS[0]].run(f"systemctl restart ceph-mgr@{ceph.MANAGER}")
        time.sleep(OUTLIVES_S)


def _elect(lab: Lab) -> None:
    leader = lab.ceph.ceph_json("quorum_status")["quorum_leader_name"]
    lab.hosts[leader].run(f"systemctl stop ceph-mon@{leader}")
    time.sleep(OUTLIVES_S)
    lab.hosts[leader].run(f"systemctl start ceph-mon@{leader}")


def _rebalance(lab: Lab) -> None:
    """Away from osd.5 and back, as for a disk that is added."""
    lab.ceph.ceph("osd", "out", "5")
    time.sleep(OUTLIVES_S)
    lab.ceph.ceph("osd", "in", "5")


def _gap(lab: Lab) -> None:
    lab.pause(150.0)


def _back_up(lab: Lab) -> None:
    """150 objects of 4 MiB, four at a time."""
    lab.ceph.add_pool("backup", size=3, pg_num=16)
    lab.undo.callback(lab.ceph.remove_pool, "backup")
    lab.ceph.run("rados", "-p", "backup", "bench", "60", "write", "-t", "4", "--max-objects", "150")


def _flap(lab: Lab) -> None:
    for _ in range(6):
        lab.hosts["s2"].run("systemctl stop ceph-osd@3")
        time.sleep(20)
        lab.hosts["s2"].run(_start("ceph-osd@3"))
        time.sleep(20)


def _stop_manager(lab: Lab) -> None:
    _stop(lab, ceph.HOSTS[0], f"ceph-mgr@{ceph.MANAGER}")


def _work(name: str, what: str, begin: Callable[[Lab], None], *, informs: str = "", quiet_s: float = 150.0) -> Scenario:
    return Scenario(name, what, (), (), "", "", begin, quiet_s, informs)


SCENARIOS = (
    Scenario(
        "disk", f"a disk of s2 is slow: it makes {WRITES_PER_S} writes/s",
        ("PlumblineOsdSlowDisk", "PlumblineDiskLatencyOutlier"), ("osd", "disk"), "s2", "osd.2", slow_disk,
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
    Scenario(
        "frozen", "s3 is frozen: nothing on it runs or answers", ("PlumblineDown",), ("self",), "s3", "",
        _freeze("s3"),
    ),
    Scenario(
        "unannounced", "the OSDs of s3 are stopped, nothing was announced", ("PlumblineCephOsdDown",), ("osd",), "s3",
        "osd.4|osd.5", _stop_unannounced,
    ),
    Scenario(
        "beside", "s3 is in maintenance, and osd.2 of s2 ends: groups are inactive", ("PlumblineCephPgUnavailable",),
        ("rados",), "s2", "osd.2", _lose_one_beside,
    ),
    _work(
        "maintenance", "work: s3 is announced (lease, noout of the host), then its OSDs, monitor and daemon stop",
        _maintain, informs="PlumblineMaintenance", quiet_s=400.0,
    ),
    _work(
        "noout", "work: noout is set, then the OSDs and the daemon of s2 are stopped for 20 minutes",
        _maintain_by_noout, informs="PlumblineMaintenance", quiet_s=1200.0,
    ),
    _work("reboots", "work: all hosts are stopped for a minute by lease, one after the other", _reboot_all),
    _work("restarts", "work: each OSD is restarted, one every 20 s", _restart_osds),
    _work("split", "work: a pool's 16 groups become 64 under load", _split),
    _work("scrub", "work: a deep scrub of everything", _scrub),
    _work("trim", "work: objects are written, three snapshots trimmed, all deleted", _delete_and_trim),
    _work("failover", "work: the manager is restarted, twice", _fail_over),
    _work("election", "work: the leading monitor is away for a minute", _elect),
    _work("gap", "work: Prometheus stands still for two and a half minutes", _gap),
    _work("rebalance", "work: osd.5 is emptied and filled again", _rebalance),
    _work("backup", "work: a backup for a minute, as fast as the disks are", _back_up),
    Scenario(
        "flapping", "osd.3 goes down six times in four minutes", ("PlumblineCephOsdFlapping",), ("osd",), "s2", "osd.3",
        _flap,
    ),
    Scenario(
        "manager", "the only manager is stopped", ("PlumblineCephMetricsAbsent",), ("self",), "", "", _stop_manager,
    ),
    Scenario(
        "viewless", "s1 is frozen, and with it the only manager", ("PlumblineDown",), ("self",), "s1", "",
        _freeze("s1"),
    ),
    Scenario(
        "store", "the leading monitor's store makes one write a second",
        ("PlumblineCephSlowOperations", "PlumblineCephMonitorDown"), ("rados",), "s1", "mon.s1", _slow_store,
    ),
    Scenario(
        "netsplit", "the monitors of s1 and s2 cannot reach each other; both reach that of s3",
        ("PlumblineCephHealth",), ("network",), "", "MON_NETSPLIT", _split_monitors, since=20,
    ),
    # the last: Ceph warns of slow pings for a quarter of an hour, and of what a lost packet left in a monitor for good
    Scenario(
        "link", f"s2's link is slow: {WIRE_S * 1000:.0f} ms each way",
        ("PlumblineOsdConnectionSlow", "PlumblineOsdHeartbeatSlow", "PlumblineProbeLatencyHigh"), ("network",), "s2",
        NIC, _slow_link,
    ),
    Scenario(
        "loss", f"{LOST:.0%} of s2's frames are lost", ("PlumblineTcpRetransmits", "PlumblineNetworkLoss"),
        ("network",), "s2", "", _lossy_link,
    ),
    Scenario(
        "mtu", f"s2 has an MTU of 1500, the others {MTU}", ("PlumblineNicMtuMismatch",), ("network",), "s2", NIC, _mtu,
    ),
)  # fmt: skip
