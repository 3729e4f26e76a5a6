"""A quarter of a made-up cluster's history, for the review: real names, plausible series, and what happened in it.

What happened (all times UTC), beside a daily cycle, a quieter weekend and noise:

- 14 August, 13:00: disk sdc of the second host becomes 2.1 times slower, and stays so;
- the last host's round trip drifts to one and a half times its baseline over the quarter;
- 26 August to 2 September: Prometheus was down, nothing is known;
- 20 July, 09:00: the first host's network baseline is measured anew, 30 % stricter: the ratio rises, not the latency;
- the hdd class grows from 60 to 74 % full; from 12 September on losing the largest host is not safe;
- 5 August: the manager fails over, its series come from another instance, both for ten minutes;
- 10 September, 08:00 to 20:00: Ceph 16.2.10 becomes 16.2.11, host by host.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

MINUTE, HOUR, DAY = 60, 3600, 86400
STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
"""The NaN by which Prometheus marks that a series has ended (model/value/value.go)."""
TOLERANCE = 1.25
CLUSTER = "north"
WORKLOADS = {
    "disk": {"workload": "randwrite-4k-qd1-j1", "operation": "write"},
    "network": {"workload": "tcp-rtt", "operation": "round-trip"},
}
SLOW_MINUTES = 4
"""What changes slowly is told as often as Prometheus must be told not to forget it: it remembers for five minutes."""
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def at(text: str) -> int:
    """``2024-08-14 13:00`` in Unix seconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


FIRST_DAY, LAST_DAY = "2024-07-01", "2024-09-28"
STEP_AT, STEP = at("2024-08-14 13:00"), 2.1
DEAD_FROM, DEAD_TO = at("2024-08-26 00:00"), at("2024-09-02 00:00")
RERECORDED_AT = at("2024-07-20 09:00")
FAIL_OVER_AT = at("2024-08-05 03:00")
UPGRADE_FROM, UPGRADE_TO = at("2024-09-10 08:00"), at("2024-09-10 20:00")
UNSAFE_FROM = at("2024-09-12 00:00")


@dataclass(frozen=True, slots=True)
class Told:
    """One series: a value each minute where ``there``; its end is marked as Prometheus marks it."""

    labels: tuple[tuple[str, str], ...]
    values: Floats
    there: Flags
    slow: bool


@dataclass
class History:
    """``hosts`` with ``disks`` each; the second disk of the second host is the one that becomes slow."""

    hosts: int = 3
    disks: int = 2
    findings: int = 6
    first: str = FIRST_DAY
    last: str = LAST_DAY
    eventful: bool = True
    series: list[Told] = field(default_factory=list)
    beyond: dict[tuple[str, str, str], Flags] = field(default_factory=dict)
    """(host, layer, probe) → minutes beyond the tolerance; what the tests count by themselves."""

    def __post_init__(self) -> None:
        self.times = np.arange(at(self.first), at(self.last) + DAY + MINUTE, MINUTE, dtype=np.int64)
        self.alive = np.ones(len(self.times), bool)
        if self.eventful:
            self.alive = (self.times < DEAD_FROM) | (self.times >= DEAD_TO)
        self._random = np.random.default_rng(8)
        self.names = [f"stor{n + 1:02}.example:10047" for n in range(self.hosts)]
        self._performance()
        if self.eventful:
            self._alerts()
        self._hosts()
        self._ceph()

    def add(
        self, name: str, labels: Mapping[str, str], values: Any, there: Flags | None = None, *, slow: bool = False
    ) -> None:
        """Where Prometheus was alive, and the series ``there``; ``slow``: each fourth minute."""
        present = self.alive if there is None else self.alive & there
        filled = np.broadcast_to(np.asarray(values, np.float64), self.times.shape)
        self.series.append(
            Told(tuple(sorted({**labels, "__name__": name, "cluster": CLUSTER}.items())), filled, present, slow)
        )

    def pieces(self, hours: int = 12) -> Iterator[list[tuple[tuple[tuple[str, str], ...], NDArray[np.int64], Floats]]]:
        """(labels, milliseconds, values) of all series, a stretch of time after the other, ends marked."""
        length = hours * 60
        for begin in range(0, len(self.times), length):
            piece = []
            window = slice(begin, begin + length)
            for each in self.series:
                there = each.there[window]
                before = np.concatenate(([each.there[begin - 1] if begin else False], there[:-1]))
                ended = ~there & before
                written = there | ended
                if each.slow:
                    # beginnings, too, so that a week without data ends to the minute
                    written &= ended | ~before | ((self.times[window] // MINUTE) % SLOW_MINUTES == 0)
                if written.any():
                    values = np.where(ended, STALE, each.values[window])[written]
                    piece.append((each.labels, self.times[window][written] * 1000, values))
            if piece:
                yield piece

    def within(self, start: str, end: str) -> Flags:
        """The minutes from ``start`` to before ``end``."""
        return (self.times >= at(start)) & (self.times < at(end))

    # --- what the layers did

    def _cycle(self, daily: float, noise: float) -> Floats:
        """Busy at three in the afternoon, less at weekends; figures of a few minutes each, so neighbours agree."""
        hours = self.times / HOUR
        weekend = (self.times // DAY + 3) % 7 >= 5
        wave = daily * np.sin(2 * np.pi * (hours - 9) / 24) * np.where(weekend, 0.4, 1.0) - 0.05 * weekend
        grain = np.repeat(self._random.normal(0, noise, len(self.times) // 5 + 1), 5)[: len(self.times)]
        return np.asarray(np.exp(wave + grain), np.float64)

    def _performance(self) -> None:
        for host, instance in enumerate(self.names):
            for disk in range(self.disks):
                device = f"sd{chr(ord('b') + disk)}"
                ratio = self._cycle(0.06, 0.03)
                if self.eventful and host == 1 and disk == 1:
                    ratio = np.where(self.times >= STEP_AT, ratio * STEP, ratio)
                self._figure(instance, "disk", f"canary-{device}", "hdd", ratio)
                self._disk(instance, device, f"osd.{host * self.disks + disk}", ratio)
            ratio = self._cycle(0.03, 0.02)
            if self.eventful and host == self.hosts - 1:
                ratio = ratio * np.linspace(1.0, 1.5, len(self.times))
            if self.eventful and host == 0:
                ratio = np.where(self.times >= RERECORDED_AT, ratio * 1.3, ratio) * 0.9
            self._figure(instance, "network", "rtt", "10g", ratio)
        for layer in ("disk", "network"):
            share = np.mean([flags for (_, of, _), flags in self.beyond.items() if of == layer], axis=0)
            self.add("plumbline:layer_beyond:ratio", {"layer": layer}, share)

    def _figure(self, instance: str, layer: str, probe: str, device_class: str, ratio: Floats) -> None:
        labels = {
            "instance": instance, "layer": layer, "probe": probe, "device_class": device_class, **WORKLOADS[layer],
            "source": "measured", "profile": "baseline.yaml",
        }  # fmt: skip
        beyond = ratio > TOLERANCE
        self.beyond[instance, layer, probe] = beyond
        self.add("plumbline:degradation:ratio", {**labels, "statistic": "p50"}, ratio)
        self.add("plumbline:degradation:ratio", {**labels, "statistic": "p99"}, ratio * 3)
        self.add("plumbline:degradation:ratio", {**labels, "statistic": "mean"}, ratio * 1.1)
        self.add("plumbline:degradation_beyond:bool", {**labels, "statistic": "p50"}, beyond)
        if layer == "disk" and probe != "canary-sdb":
            return  # one entry for all disks of a class
        recorded = at(self.first) - 30 * DAY
        moment = np.full(len(self.times), recorded, np.float64)
        if self.eventful and layer == "network" and instance == self.names[0]:
            moment = np.where(self.times >= RERECORDED_AT, RERECORDED_AT, recorded).astype(np.float64)
        named = {name: labels[name] for name in labels if name != "probe"}
        self.add(
            "plumbline_baseline_measured_timestamp_seconds", {**named, "config_hash": "f8ebba40cbad"}, moment, slow=True
        )

    def _disk(self, instance: str, device: str, osd: str, ratio: Floats) -> None:
        for operation, usual in (("read", 0.004), ("write", 0.0008)):
            labels = {"instance": instance, "device": device, "operation": operation}
            self.add("plumbline:disk_latency:p50_seconds", labels, usual * ratio * self._cycle(0.1, 0.02))
            self.add("plumbline:disk_latency_peers:ratio", labels, ratio)
        of = {"ceph_daemon": osd, "operation": "write", "part": "total"}
        self.add("plumbline:osd_latency:mean5m", of, 0.002 + 0.0008 * ratio * self._cycle(0.1, 0.02))
        self.add("plumbline:osd_class:ratio", {"ceph_daemon": osd, "figure": "commit"}, ratio)

    # --- what was told, and what the hosts are

    def _alerts(self) -> None:
        slow = {"instance": self.names[1], "layer": "disk", "signal": "latency"}
        disk = {**slow, "device": "sdc", "operation": "write", "alertname": "PlumblineDiskLatencyOutlier"}
        osd = {**slow, "layer": "osd", "ceph_daemon": f"osd.{self.disks + 1}", "alertname": "PlumblineOsdSlowDisk"}
        page = {**slow, "probe": "canary-sdc", "alertname": "PlumblineCanaryLatencyHigh"}
        self._fires(disk, "warning", [("2024-08-14 13:20", "2024-08-14 19:00"), ("2024-08-15 07:00", LAST_DAY)])
        self._fires(osd, "warning", [("2024-08-14 13:40", "2024-08-16 13:40")])
        self._fires(
            page, "critical", [("2024-08-14 13:12", "2024-08-15 09:12"), ("2024-08-20 10:00", "2024-08-20 11:30")]
        )
        self._fires({"alertname": "PlumblineWatchdog"}, "none", [("2024-01-01 00:00", "2025-01-01 00:00")])
        self._fires(
            {"alertname": "PlumblineBaselineMissing", "instance": self.names[0]},
            "info",
            [("2024-01-01 00:00", "2025-01-01 00:00")],
        )

    def _fires(self, labels: Mapping[str, str], severity: str, spans: list[tuple[str, str]]) -> None:
        there = np.logical_or.reduce([self.within(*span) for span in spans])
        named = {**labels, "severity": severity, "alertstate": "firing"}
        self.add("ALERTS", named, 1.0, there)

    def _hosts(self) -> None:
        for host, instance in enumerate(self.names):
            self.add(
                "plumbline_build_info",
                {"instance": instance, "version": "0.1.0", "python_version": "3.11"},
                1.0,
                slow=True,
            )
            for number in range(self.findings):
                opened: Any = 0.0
                if self.eventful and number == 1 and host == 0:
                    opened = self.times < at("2024-08-01 10:00")
                elif self.eventful and number == 2:
                    opened = self.times >= at("2024-09-05 06:00")
                elif number == 0:
                    opened = 1.0
                subject = {
                    "check": f"sysctl-{number}" if number > 2 else CHECKS[number],
                    "subject": "",
                    "urgency": "warning",
                }
                self.add("plumbline_finding", {"instance": instance, **subject}, opened, slow=True)
            wear = 0.55 + host * 0.1 + np.linspace(0, 0.02, len(self.times))
            nvme = {"instance": instance, "device": "nvme0n1"}
            self.add("plumbline_disk_wear_ratio", nvme, wear, slow=True)
            self.add("plumbline:disk_endurance_left:seconds", nvme, (1 - wear) * 5 * 365 * DAY, slow=True)
            self.add(
                "plumbline_disk_info",
                {**nvme, "model": "INTEL SSDPE2KX010T8", "serial": f"PHLJ{host:04}"},
                1.0,
                slow=True,
            )

    def _ceph(self) -> None:
        """From one manager, then from another; for ten minutes from both, as seen of real ones."""
        old = self.times < FAIL_OVER_AT + 10 * MINUTE if self.eventful else np.ones(len(self.times), bool)
        new = self.times >= FAIL_OVER_AT if self.eventful else np.zeros(len(self.times), bool)
        for number in range(self.hosts * self.disks):
            moved = UPGRADE_FROM + (UPGRADE_TO - UPGRADE_FROM) * (number // self.disks + 1) // self.hosts
            for manager, there in (("mgr.a:9283", old), ("mgr.b:9283", new)):
                labels = {"ceph_daemon": f"osd.{number}", "instance": manager}
                version = "ceph version {} (0123abcd) pacific (stable)"
                before = there & (self.times < moved) if self.eventful else there
                self.add(
                    "ceph_osd_metadata", {**labels, "ceph_version": version.format("16.2.10")}, 1.0, before, slow=True
                )
                if self.eventful:
                    after = there & (self.times >= moved)
                    self.add(
                        "ceph_osd_metadata",
                        {**labels, "ceph_version": version.format("16.2.11")},
                        1.0,
                        after,
                        slow=True,
                    )
        part = (self.times - self.times[0]) / (self.times[-1] - self.times[0])
        hdd = {"device_class": "hdd"}
        self.add("plumbline:capacity_used:ratio", hdd, 0.60 + 0.14 * part, slow=True)
        loss = 1.0 + 0.2 * (self.times - UNSAFE_FROM + MINUTE) / (90 * DAY) if self.eventful else 0.8
        self.add("plumbline:capacity_host_loss:ratio", hdd, loss, slow=True)
        for slope, days in (("3d", 61.0), ("14d", 94.0), ("30d", 82.0)):
            self.add("plumbline:capacity_time_to_full:days", {**hdd, "slope": slope}, days, slow=True)
            pool = {"pool_id": "3", "pool": "vms", "slope": slope}
            self.add("plumbline:capacity_pool_time_to_full:days", pool, days - 20, slow=True)
            self.add("plumbline:capacity_growth:bytes_per_second", {**hdd, "slope": slope}, 5e6 - days * 1e4, slow=True)
        self.add("plumbline:capacity_self_healing:bool", {"pool_id": "3", "pool": "vms"}, 0.0, slow=True)
        self.add("plumbline:capacity_rebuild:seconds", hdd, 9.5 * HOUR, slow=True)
        headroom = {"layer": "disk", "device_class": "hdd", "figure": "iops"}
        self.add(
            "plumbline:capacity_headroom:ratio", headroom, 0.3 + 0.2 * part + 0.1 * self._cycle(0.3, 0.02), slow=True
        )


CHECKS = ("sysctl-net-core-rmem", "cpu-governor", "nic-ring-small")
