"""Models of the status page: one with something in every field, one of a host as large and as troubled as they get."""

from __future__ import annotations

from msgspec.structs import replace

from plumbline.checks.model import Finding, Fix, Keep, Severity
from plumbline.metrics.snapshot import CollectorHealth
from plumbline.sources.ceph.osds import OsdState
from plumbline.status.model import (
    Comparison,
    DiskRow,
    FailureRow,
    Loss,
    Measure,
    NicRow,
    OsdRow,
    ProbeRow,
    SoftnetRow,
    StatusModel,
    Times,
    Trend,
)

EVIL = '"><script>alert(1)</script>&amp;'
"""A name that would be a script, if it were not escaped."""

RING = Finding(
    "network.ring-below-maximum", "ens2f0", Severity.WARNING, False, "453 of 4,078", "4,078", "A ring.", "unnoba-2020",
    Fix("ethtool -G ens2f0 rx 4078", Keep("/etc/udev/rules.d/x.rules", 'RUN+="a <b>"'), "Resets the link."),
)  # fmt: skip


def full_model(word: str = "x") -> StatusModel:
    """A page with something in every field; every text is ``word``."""
    return StatusModel(
        host=word,
        version=word,
        now_ts=1_700_000_000.0,
        started_ts=1_699_990_000.0,
        config_error=word,
        window_s=301.7,
        probes=(
            ProbeRow(
                word, "disk", word, word, word, False, 9.0,
                Comparison(0.0019, 0.001, 1.3), Comparison(0.002, 0.002, 1.3), word, True, word, 12.0, False,
                600.0, {word: 3}, rate=Comparison(5e8, 1e9, 1.3, Measure.THROUGHPUT),
                trend=Trend(word, (0.001, None, 0.0019), 0.001), last_skip=word,
            ),
        ),
        failures=(FailureRow(word, word, 7200.0, 12.5, word),),
        osds=(
            OsdRow(
                word, OsdState.ANSWERS, (word,), (Times("read", 7, 0.001, 0.002), Times(word, 0)),
                2, 45.0, 1, 0.0003, word,
            ),
        ),
        disks=(
            DiskRow(
                word, word, word, 4_000_787_030_016, 10, 0, 0.004, None, 1, word, (Times("read", 5, 0.003, 0.009),)
            ),
        ),
        nics=(NicRow(word, word, True, 3.125e9, 9000, (256, 4096), (Loss(word, word, word, 5, 2),)),),
        softnet=SoftnetRow(4, 1000, 2, 3, 1, 1),
        findings=(
            replace(
                RING, subject=word, severity=Severity.CRITICAL, actual=word, expected=word, why=word, fix=_fix(word)
            ),
            Finding("network.tcp-sack", "net.ipv4.tcp_sack", Severity.INFO, True, "1", "1", "w", "s"),
        ),
        collectors=(
            CollectorHealth(word, False, True, 0.001, word, {word: 2}),
            CollectorHealth("pause", True, False, 0.0, "no driver", {"vanished": 0}),
        ),
    )  # fmt: skip


def _fix(word: str) -> Fix:
    return Fix(word, Keep(word, word, word), word)


def large_model() -> StatusModel:
    """60 disks with a canary and an OSD each, 200 findings, 12 ports; a slow disk below a slow pool."""
    disks = tuple(
        DiskRow(
            f"sd{_letters(n)}", "SEAGATE ST16000NM004J with a long name", "hdd", 16_000_900_661_248, 10_000_000 + n,
            4_000_000, 0.006, 0.004, n % 3, f"osd.{n}",
            (Times("read", 4_000, 0.005, 0.02), Times("write", 90, 0.001, 0.3)),
        )
        for n in range(60)
    )  # fmt: skip
    return StatusModel(
        host="storage-node-with-a-name-as-long-as-it-goes.rack17.example.org",
        version="0.1.0",
        now_ts=1_700_000_000.0,
        started_ts=1_690_000_000.0,
        window_s=300.0,
        probes=(*(_canary(n) for n in range(60)), *_others()),
        failures=tuple(FailureRow("fio-4k", "timeout", 3600.0 * n, 60.0, "ran longer than 60 s") for n in range(1, 6)),
        osds=tuple(
            OsdRow(
                f"osd.{n}", OsdState.HANGS if n == 7 else OsdState.ANSWERS, (f"sd{_letters(n)}",),
                (
                    Times("read", 900, 0.004, 0.03), Times("write", 1_500, 0.008, 0.05),
                    Times("read-modify-write", 3, 0.01, 0.02),
                ),
                0 if n != 9 else 3, 0.0 if n != 9 else 41.0, 0, 0.0004, f"osd.{n + 60}",
            )
            for n in range(60)
        ),
        disks=disks,
        nics=tuple(
            NicRow(
                f"enp{n}s0f0np0", "mlx5_core", n < 6, 3.125e9, 9000, (1024, 8192),
                () if n else
                (Loss("drops", "receive", "ring", 1_204_551, 2_310), Loss("drops", "receive", "filter", 9, 1)),
            )
            for n in range(12)
        ),
        softnet=SoftnetRow(128, 98_000_000_000, 12, 44_000, 0, 12),
        findings=tuple(_findings()),
        collectors=tuple(
            CollectorHealth(f"collector-{n}", n != 3, n % 4 != 0, 4e-4, "" if n % 4 else "no such adapter", {})
            for n in range(30)
        ),
    )  # fmt: skip


def _letters(n: int) -> str:
    """``a`` … ``z``, ``aa`` …"""
    return (_letters(n // 26 - 1) if n >= 26 else "") + "abcdefghijklmnopqrstuvwxyz"[n % 26]


def _canary(n: int) -> ProbeRow:
    slow = 6.1 if n == 17 else 1.0
    medians = tuple(None if minute % 23 == 22 else 0.004 * (1 + minute % 5 / 10) * slow for minute in range(60))
    return ProbeRow(
        f"raw/osd.{n}", "disk", "hdd", "randread-4k-qd1-j1", "read", True, 0.4,
        Comparison(0.0045 * slow, 0.0044, 1.3), Comparison(0.012 * slow, 0.013, 1.3), "measured here", True,
        trend=Trend("p50, last 60 min", medians, 0.0044),
    )  # fmt: skip


def _others() -> tuple[ProbeRow, ...]:
    rados = ProbeRow(
        "rados-canary", "rados", "hdd", "rados-write-4k-t1", "write", True, 0.9,
        Comparison(0.041, 0.012, 1.3), Comparison(0.3, 0.04, 1.3), "measured here", True,
        trend=Trend("p50, last 12 min", (0.012,) * 6 + (0.04,) * 6, 0.012),
    )  # fmt: skip
    iperf = ProbeRow(
        "iperf3/10.0.0.12", "network", "25g", "tcp-throughput-s1", "send", True, 3000.0,
        baseline="measured here", judges=True, next_s=600.0, skipped={"nic-busy": 4},
        rate=Comparison(2.9e9, 2.94e9, 1.25, Measure.THROUGHPUT),
        trend=Trend("throughput, last 9 runs", (2.9e9, 2.8e9, 2.94e9) * 3, 2.94e9, Measure.THROUGHPUT),
    )  # fmt: skip
    unjudged = ProbeRow(
        "rbd", "rbd", "hdd", "rbd-randwrite-4k-qd1", "write", True, 900.0, Comparison(0.02), Comparison(0.09)
    )
    waiting = ProbeRow(
        "fs", "filesystem", "hdd", "fs-randwrite-4k-qd1", "write", None, None, message="quiet hours",
        last_skip="quiet hours", skipped={"quiet-hours": 12}, next_s=1200.0,
    )  # fmt: skip
    return rados, iperf, unjudged, waiting


def _findings() -> list[Finding]:
    found = [replace(RING, subject=f"enp{n}s0f0np0") for n in range(12)]
    found += [
        Finding(
            check, f"sd{_letters(n)}", severity, False, "128 KiB", "0", "It reads what nobody asked for.", "kernel",
            Fix(f"echo 0 > /sys/block/sd{_letters(n)}/queue/read_ahead_kb"),
        )
        for check, severity in (
            ("disk.read-ahead", Severity.INFO), ("disk.rq-affinity", Severity.INFO),
            ("health.worn-out", Severity.WARNING),
        )
        for n in range(60)
    ]  # fmt: skip
    found += [
        Finding("health.smart-failed", f"sd{_letters(n)}", Severity.CRITICAL, False, "FAILED", "PASSED", "It says so.",
                "smartctl", Fix(f"smartctl -x /dev/sd{_letters(n)}"))
        for n in range(8)
    ]  # fmt: skip
    found.append(Finding("network.tcp-sack", "net.ipv4.tcp_sack", Severity.INFO, True, "1", "1", "w", "s"))
    return found
