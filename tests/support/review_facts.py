"""A review of a quarter as facts, small and fixed: what the goldens of its page and its Markdown are made of."""

from __future__ import annotations

from msgspec.structs import replace

from plumbline.capacity.model import DataOsd, DataPool, Facts, Load
from plumbline.core.words import DAY_S
from plumbline.report.model import (
    Attainment,
    Change,
    ClassCapacity,
    ClassDrift,
    Coverage,
    Days,
    FigureOffender,
    FindingHistory,
    Firing,
    Headroom,
    PartOffender,
    PoolCapacity,
    PoolService,
    Recorded,
    Review,
    Span,
    Upgrade,
    Wear,
    Worst,
)
from plumbline.report.period import Period

from .history import at

START, END = at("2026-07-01"), at("2026-09-29")
MINUTE, HOUR = 60, 3600
GAP = Span(at("2026-08-26"), at("2026-09-02"))
STEP = at("2026-08-14 13:00")
HOSTS = ("stor01.example:10047", "stor02.example:10047", "stor03.example:10047")


def days(first: float, last: float, *, step: float = 1.0) -> Days:
    """From one level to another, times ``step`` from the step on; none in the gap."""
    found = []
    for day in range(START, END, DAY_S):
        if not GAP.start_s <= day < GAP.end_s:
            value = first + (last - first) * (day - START) / (END - START)
            found.append((day, round(value * (step if day > STEP else 1.0), 6)))
    return tuple(found)


def planned() -> Facts:
    """Four hosts of three OSDs, in which the hosts' loss is unsafe; one bench; a pool with a quota."""
    osds = tuple(
        DataOsd(f"osd.{number}", "hdd", "default", (), f"stor0{1 + number // 3}", 4e12, 2.9e12, 96.0)
        for number in range(12)
    )
    growth = {"3d": 4e6, "14d": 3e6}
    stored = {"raw_ratio": 3.0, "read_osds": 1.0, "stored": 11.6e12, "pgs": 256.0, "objects": 2.9e6}
    pool = DataPool(
        "vms", "host", "default", "hdd", 3, **stored, quota_bytes=16e12, growth={"14d": 1e6}, application="rbd"
    )
    load = Load(growth, asked=900.0, osd_iops=150.0, measured_by="osd-bench", recovery=250e6, recovered_by=12)
    return Facts("north", osds, (pool,), 0.9, 0.95, {"hdd": load})


def full_review() -> Review:
    """Two layers, one slow disk, a drift, a growing pool, a week without data."""
    observed = END - START - GAP.length_s
    return Review(
        period=Period(START, END),
        made_s=at("2026-10-02 06:00"),
        version="1.2.3",
        source="http://prometheus.example:9090",
        coverage=(Coverage("north", 3, observed, (GAP,)),),
        attainment=(
            Attainment("north", "network", 3, observed * 3, 0, observed, 0, days(1.0, 1.0)),
            Attainment("north", "disk", 6, observed * 6, 38 * DAY_S, observed, 38 * DAY_S, days(1.0, 1.0, step=0.8333)),
        ),
        figures=(
            FigureOffender(
                "north", HOSTS[1], "disk", "median latency of random writes, 4 KiB (probe canary-sdc, hdd)",
                38 * DAY_S, observed, Worst(2.11, at("2026-09-10")),
            ),
        ),
        disks=(
            PartOffender(
                "north", HOSTS[1], "sdc", ("PlumblineDiskLatencyOutlier",), 3, 36 * DAY_S, 26 * DAY_S,
                Worst(2.11, at("2026-09-10")),
            ),
        ),
        osds=(
            PartOffender("north", HOSTS[1], "osd.3", ("PlumblineOsdSlowDisk",), 1, 2 * DAY_S, 2 * DAY_S, None),
        ),
        changes=(
            Change(
                "north", HOSTS[1], "disk sdc: median write latency", "s", STEP, STEP, END, 0.0008, 0.00168,
                False, False, days(0.0008, 0.0008, step=2.1),
            ),
            Change(
                "north", HOSTS[2], "median latency of round trips (probe rtt, 10g)", "ratio", START, START, END, 1.01,
                1.51, True, False, days(1.01, 1.51),
            ),
            Change(
                "north", HOSTS[0], "median latency of round trips (probe rtt, 10g)", "ratio", at("2026-07-20 09:00"),
                at("2026-07-20 09:00"), END, 0.9, 1.17, False, True, days(0.9, 1.17),
            ),
            Change(
                "north", HOSTS[0], "disk sdb: median read latency", "s", GAP.end_s, GAP.start_s, END, 0.004,
                0.003, False, False, days(0.004, 0.003),
            ),
        ),
        changes_looked_at=27,
        classes=(
            ClassCapacity(
                "north", "hdd", days(0.6, 0.74), (("3d", 61.0), ("14d", 94.0), ("30d", 82.0)), (("14d", -3.0),),
                (("3d", 4.4e6), ("14d", 4.1e6)), days(0.9, 1.04), 9.5 * HOUR,
            ),
            ClassCapacity("north", "nvme", days(0.3, 0.31), (("30d", 9000.0),), (), (), days(0.5, 0.5), None),
        ),
        pools=(
            PoolCapacity("north", "vms", (("3d", 41.0), ("14d", 74.0)), False),
            PoolCapacity("north", "meta", (), None),
        ),
        headroom=(Headroom("north", "disk", "hdd", "iops", days(0.4, 0.6)),),
        findings=(
            FindingHistory("north", HOSTS[0], "nic-ring-small", "ens1f0", "warning", "opened", at("2026-09-05"), END),
            FindingHistory("north", HOSTS[1], "cpu-governor", "", "warning", "closed", START, at("2026-08-01 06:00")),
            FindingHistory(
                "north", HOSTS[2], "disk-write-cache", "sdd", "critical", "unknown", START, at("2026-07-09")
            ),
        ),
        firings=(
            Firing(
                "north", "PlumblineCanaryLatencyHigh", "critical", "disk", 1, 2, 21.5 * HOUR, 20 * HOUR,
                f"{HOSTS[1]}, canary-sdc", 0,
            ),
            Firing(
                "north", "PlumblineDiskLatencyOutlier", "warning", "disk", 1, 3, 36 * DAY_S, 26 * DAY_S,
                f"{HOSTS[1]}, sdc", 1,
            ),
        ),
        wear=(Wear("north", HOSTS[2], "nvme0n1", "INTEL SSDPE2KX010T8", "PHLJ0002", 0.75, 0.77, 420 * DAY_S),),
        recorded=(Recorded("north", HOSTS[0], "network", "10g", "measured", at("2026-07-20 09:00"), 2),),
        upgrades=(
            Upgrade("north", "Ceph OSDs", ("16.2.10",), "16.2.11", at("2026-09-10 12:00"), at("2026-09-11"), 6, 6),
        ),
        absent=("plumbline:capacity_rebuild:seconds",),
        facts=(planned(),),
        services=(
            PoolService("north", "vms", observed, 2 * HOUR, 3 * DAY_S, 0.9991, 40 * DAY_S, 600.0),
            PoolService("north", "meta", observed, 0, 0),
        ),
        retention_s=120 * DAY_S,
        drifts=(
            ClassDrift("north", "r740-hdd", "disk hdd randread-4k-qd1-j1 read", "latency.p50", 8e-3, 9.6e-3, 1.2, 3),
            ClassDrift("north", "r740-hdd", "osd hdd osd-bench-4m write", "throughput", 150e6, 149e6, 1.007, 3),
        ),
    )  # fmt: skip


def two_quarters() -> Review:
    """The full one beside the quarter before: calmer, smaller, without headroom."""
    now, length = full_review(), END - START
    earlier = replace(
        now,
        period=Period(START - length, START),
        attainment=tuple(replace(row, beyond_s=row.judged_s * 0.001) for row in now.attainment),
        changes=(),
        firings=(),
        classes=tuple(replace(each, used=((START - DAY_S, 0.5),), host_loss=()) for each in now.classes),
        headroom=(),
    )
    return replace(now, earlier=earlier)


def empty_review() -> Review:
    """Of a Prometheus that scraped two nodes of two clusters for a while, and nothing was judged."""
    week = Period(START, START + 7 * DAY_S)
    gap = (Span(START + 1.0 * DAY_S, START + 7.0 * DAY_S),)
    return Review(
        period=week,
        made_s=at("2026-10-02 06:00"),
        version="1.2.3",
        source="http://prometheus.example:9090",
        coverage=(Coverage("north", 1, DAY_S, gap), Coverage("south", 1, 7 * DAY_S, ())),
        attainment=(),
        figures=(),
        disks=(),
        osds=(),
        changes=(),
        changes_looked_at=0,
        classes=(),
        pools=(),
        headroom=(),
        findings=(),
        firings=(),
        wear=(),
        recorded=(),
        upgrades=(),
        absent=("plumbline:capacity_used:ratio", "plumbline:capacity_headroom:ratio"),
        retention_s=15 * DAY_S,
    )
