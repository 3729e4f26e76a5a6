"""The documented profiles against a second transcription of the documents, and the loader's refusals."""

from __future__ import annotations

from collections import Counter

import pytest

from plumbline.baseline import profiles
from plumbline.baseline.arithmetic import Rule
from plumbline.baseline.model import Source
from plumbline.checks.run import CHECKS
from plumbline.config.workloads import BlockWorkload, load_catalogue
from plumbline.errors import BaselineError, ConfigError
from support.documented import PROFILES
from support.offenders import for_every

CATALOGUE = load_catalogue()

UNNOBA = PROFILES["unnoba-2020"]
INFN = PROFILES["infn-2025"]
BY_KEY = {(row.entry.device_class, row.entry.workload): row for row in UNNOBA.rows}
MIB = 1048576

# Typed from the document a second time, not from the YAML. One line is a row of Figura 55 (HDD, latency in ms) or
# Figura 64 (SSD, latency in us): block size; IOPS, MiB/s, latency writing; the same reading.
HDD_SEQUENTIAL = """
    4k     1062    4.15   15.06    53000  207.00    0.26
    16k    1808   28.20    8.84    19800  309.00    0.70
    64k     768   48.00   20.53     3306  207.00    4.28
    128k    699   87.40   22.80     2082  260.00    7.82
    256k    563  141.00   27.97      870  218.00   15.82
    512k    353  177.00   40.80      397  199.00   36.63
    1m      195  196.00   59.08      205  206.00   68.81
    4m       47  188.00  320.00       48  194.00  304.00
"""
HDD_RANDOM = """
    4k      144    0.56   47.85      431    1.68   21.02
    16k     138    2.16   49.67      412    6.45   22.05
    64k     121    7.57   55.19      357   22.30   25.75
    128k    104   13.10   63.42      304   38.10   30.40
    256k     84   21.00   74.92      240   60.20   39.44
    512k     59   29.90   99.78      171   85.60   58.14
    1m       35   35.00  150.83      101  101.00  102.76
    4m       11   44.90  398.16       33  135.00  332.21
"""  # the scan reads 1 for the 11: test_a_digit_lost_in_the_scan
SSD_SEQUENTIAL = """
    4k    51600  202.00     308.00   67000  266.00     233.96
    16k   23300  364.00     684.78   25500  398.00     626.29
    64k    7322  458.00    2182.00    7995  500.00    1998.01
    128k   3824  478.00    4177.00    4111  514.00    3885.00
    256k   1955  489.00    8172.00    2122  528.00    7566.00
    512k    987  494.00   16178.00    1066  533.00   14983.00
    1m      497  497.00   32139.00     534  535.00   29877.00
    4m      122  491.00  117310.00     133  535.00  108000.00
"""
SSD_RANDOM = """
    4k    17700   69.00     145.53   52800  206.00     252.42
    16k    6552  102.00     385.93   19500  305.00     686.07
    64k    1906  119.00    1774.00    5624  352.00    2235.00
    128k   1007  126.00    3848.01    2927  366.00    4131.00
    256k    520  130.00    7865.00    1490  373.00    7975.00
    512k    252  126.00   16460.00     724  362.00   16322.00
    1m      123  124.00   34419.00     348  348.00   33645.00
    4m       32  131.00  120030.00      98  393.00  115550.00
"""


def block_size_cases():
    for table, device_class, unit, write, read in (
        (HDD_SEQUENTIAL, "hdd", 1e-3, "write", "read"),
        (HDD_RANDOM, "hdd", 1e-3, "randwrite", "randread"),
        (SSD_SEQUENTIAL, "ssd", 1e-6, "write", "read"),
        (SSD_RANDOM, "ssd", 1e-6, "randwrite", "randread"),
    ):
        for line in table.strip().splitlines():
            block, *figures = line.split()
            numbers = [float(figure) for figure in figures]
            yield device_class, f"{write}-{block}-qd4-j4", numbers[:3], unit
            yield device_class, f"{read}-{block}-qd4-j4", numbers[3:], unit


@for_every(("device_class", "workload", "figures", "unit"), list(block_size_cases()))
def test_block_size_tables(device_class, workload, figures, unit):
    entry = BY_KEY[device_class, workload].entry
    iops, mib_per_second, latency = figures
    assert entry.iops == iops
    assert entry.throughput == pytest.approx(mib_per_second * MIB, rel=1e-12)
    assert entry.latency == {"mean": pytest.approx(latency * unit, rel=1e-12)}
    assert entry.config_hash == CATALOGUE.by_id[workload].config_hash()
    assert entry.source is Source.DOCUMENTED
    assert entry.profile == "unnoba-2020"


# Typed from the document a second time: the bars of the queue-depth pictures, IOPS and mean latency in seconds.
QUEUE_DEPTH = [
    ("hdd", "write", {1: (120, 8.33e-3), 2: (239, 8.35e-3), 4: (479, 8.34e-3), 8: (None, 8.41e-3)}),
    ("hdd", "write", {16: (3047, 5.25e-3), 32: (11000, 2.92e-3), 64: (28000, 2.26e-3)}),
    ("hdd", "read", {1: (27000, 37e-6), 2: (52000, None), 4: (52000, None), 8: (52000, None), 16: (52000, None)}),
    ("hdd", "read", {32: (52000, None), 64: (52000, 1223e-6)}),
    ("hdd", "randwrite", {64: (185, 346e-3), 32: (175, None)}),
    ("hdd", "randread", {1: (87, None), 2: (103, None), 4: (120, 33e-3), 8: (145, 55e-3), 16: (175, 92e-3)}),
    ("hdd", "randread", {32: (209, 153e-3), 64: (221, 290e-3)}),
    ("ssd", "write", {1: (28000, 35e-6), 2: (52000, 38e-6), 4: (54000, 74e-6), 8: (54000, 149e-6)}),
    ("ssd", "write", {16: (54000, 298e-6), 32: (54000, 596e-6), 64: (73000, 874e-6), 128: (92000, 1385e-6)}),
    ("ssd", "read", {1: (33000, None), 2: (62000, None), 4: (81000, None), 8: (81000, 98e-6), 16: (81000, None)}),
    ("ssd", "read", {32: (82000, 392e-6), 64: (None, 638e-6), 128: (116000, 1106e-6)}),
    ("ssd", "randwrite", {1: (27000, None), 2: (51000, None), 4: (53000, None), 8: (53000, None)}),
    ("ssd", "randwrite", {16: (53000, 300e-6), 32: (53000, 600e-6), 64: (53000, 1204e-6), 128: (53000, 2408e-6)}),
    ("ssd", "randread", {1: (12000, 84e-6), 2: (22000, 91e-6), 4: (36000, 109e-6), 8: (61000, 131e-6)}),
    ("ssd", "randread", {16: (74000, 214e-6), 32: (82000, 390e-6), 64: (82000, 778e-6), 128: (82000, 1555e-6)}),
]


@for_every(
    ("device_class", "workload", "iops", "latency"),
    [
        (device_class, f"{pattern}-4k-qd{depth}-j1", iops, latency)
        for device_class, pattern, bars in QUEUE_DEPTH
        for depth, (iops, latency) in bars.items()
    ],
)
def test_queue_depth_pictures(device_class, workload, iops, latency):
    entry = BY_KEY[device_class, workload].entry
    assert entry.iops == iops
    assert entry.throughput is None
    assert entry.latency == ({} if latency is None else {"mean": pytest.approx(latency, rel=1e-12)})


@pytest.mark.parametrize(
    ("device_class", "workload", "throughput"),
    [
        ("hdd", "write-1g-qd1-j1", 202e6),  # Figura 54
        ("ssd", "write-1g-qd1-j1", 478e6),  # Figura 63
        ("hdd", "write-1g-qd1-j1-buffered", 216e6),  # Figura 50
        ("ssd", "write-1g-qd1-j1-buffered", 427e6),
        ("nvme", "write-1g-qd1-j1-buffered", 1100e6),
    ],
)
def test_dd_runs_are_megabytes_not_mebibytes(device_class, workload, throughput):
    row = BY_KEY[device_class, workload]
    assert row.entry.throughput == throughput
    assert row.entry.iops is None
    assert row.entry.latency == {}
    assert row.point.transferred.value == 5368709120


# Typed from the document a second time: operations a second, bytes a second, mean latency in ms.
CLUSTER = [
    ("10g", "tcp-throughput-s1", None, 9.40e9 / 8, None),  # Figura 45
    ("1g", "tcp-throughput-s1", None, 941e6 / 8, None),  # chapter 10
    ("ssd", "osd-bench-4m-2g", 115.73036511878225, 485408333.33916885, None),  # Figura 79
    ("hdd", "osd-bench-4m-2g", 37.000482548947552, 155191271.95698091, None),  # Figura 80
    ("hdd", "rados-write-4m-t16", 98, 395.705 * MIB, 161.603),  # Figuras 84 to 86
    ("hdd", "rados-seq-4m-t16", 133, 534.57 * MIB, 118.933),
    ("hdd", "rados-rand-4m-t16", 126, 505.267 * MIB, 125.892),
    ("ssd", "rados-write-4m-t16", 270, 1083 * MIB, 59),  # Figura 87
    ("ssd", "rados-seq-4m-t16", 140, 563 * MIB, 112),
    ("ssd", "rados-rand-4m-t16", 140, 560 * MIB, 113),
    ("testec", "rados-write-4m-t16", 107, 428 * MIB, 149),
    ("testec", "rados-seq-4m-t16", 145, 557 * MIB, 114),
    ("testec", "rados-rand-4m-t16", 130, 523 * MIB, 121),
    ("testhdd-tiered", "rados-write-4m-t16", 86, 345.548 * MIB, 185.056),  # Figura 93
    ("testhdd-tiered", "rados-seq-4m-t16", 133, 532 * MIB, 119),  # Figura 94
    ("testhdd-tiered", "rados-rand-4m-t16", 137, 548 * MIB, 115),
    ("hdd", "rbd-bench-write-4m-t16", 80.1475, 321 * MIB, None),  # Figura 102
    ("hdd", "rbd-bench-read-4m-t16", 155.334, 621 * MIB, None),
    ("hdd", "rbd-bench-readwrite-4m-t16", 124.874, 499 * MIB, None),
    ("hdd", "rbd-bench-randreadwrite-4m-t16", 136.602, 546 * MIB, None),
    ("ssd", "rbd-bench-write-4m-t16", 210, 842 * MIB, None),  # Figura 103
    ("ssd", "rbd-bench-read-4m-t16", 158, 632 * MIB, None),
    ("ssd", "rbd-bench-readwrite-4m-t16", 247, 988 * MIB, None),
    ("ssd", "rbd-bench-randreadwrite-4m-t16", 252, 1010 * MIB, None),
    ("testec", "rbd-bench-write-4m-t16", 91, 365 * MIB, None),  # Figura 104
    ("testec", "rbd-bench-read-4m-t16", 159, 639 * MIB, None),
    ("testec", "rbd-bench-readwrite-4m-t16", 157, 631 * MIB, None),
    ("testec", "rbd-bench-randreadwrite-4m-t16", 162, 651 * MIB, None),
    ("hdd", "rbd-randwrite-4k-qd1-j16", 255, None, 63),  # Figura 113
    ("hdd", "rbd-randwrite-4k-qd2-j16", 411, None, None),
    ("hdd", "rbd-randwrite-4k-qd4-j16", 629, None, 102),
    ("hdd", "rbd-randwrite-4k-qd8-j16", 916, None, 140),
    ("hdd", "rbd-randwrite-4k-qd16-j16", 888, None, 288),
    ("hdd", "rbd-randwrite-4k-qd32-j16", 941, None, 542),
    ("hdd", "rbd-randwrite-4k-qd32-j4", 945, None, 135),  # 9.2
    ("ssd", "rbd-randwrite-4k-qd32-j8", 23000, None, 11),
    ("ssd", "rbd-randwrite-4k-qd16-j16", 21000, None, 11),
    ("ssd", "rbd-randwrite-4k-qd32-j16", 22000, None, 23),
    ("ssd", "rbd-randwrite-4k-qd4-j32", 22000, None, 5.75),
    ("ssd", "rbd-randwrite-4k-qd16-j4", 25000, 97.8 * MIB, 2.55),  # Figura 123
    ("testssd-server1", "rbd-randwrite-4k-qd16-j4", 23200, 90.6 * MIB, 2.75),
    ("testssd-server3", "rbd-randwrite-4k-qd16-j4", 19300, 75.6 * MIB, 3.29),
    ("testssd-xen1", "rbd-randwrite-4k-qd16-j4", 20000, 78.3 * MIB, 3.1),  # Figura 127
    ("testssd-xen2", "rbd-randwrite-4k-qd16-j4", 19500, 76.3 * MIB, 3.2),
    ("testssd-xen3", "rbd-randwrite-4k-qd16-j4", 15300, 59.0 * MIB, 4.1),
    ("testhdd-xen1", "rbd-randwrite-4k-qd16-j4", 605, 2422 * 1024, 105),  # Figura 128
    ("testhdd-xen2", "rbd-randwrite-4k-qd16-j4", 492, 1971 * 1024, 129),
    ("testhdd-xen3", "rbd-randwrite-4k-qd16-j4", 589, 2358 * 1024, 108),
    ("testssd-kubernetes", "rbd-randwrite-4k-qd16-j4", 14700, 57.6 * MIB, 4.33),  # 9.4.2
    ("testhdd-ext4", "fs-write-1g-qd1-j1", None, 456e6, None),  # Figura 110
    ("testssd-ext4", "fs-write-1g-qd1-j1", None, 797 * MIB, None),  # 10.5, as printed
]
ROUND_TRIPS = [("10g", "icmp-rtt-56", {"mean": 163e-6, "max": 213e-6}), ("1g", "icmp-rtt-56", {"mean": 220e-6})]


@for_every(("device_class", "workload", "iops", "throughput", "mean_ms"), CLUSTER)
def test_layers_above_the_disk(device_class, workload, iops, throughput, mean_ms):
    entry = BY_KEY[device_class, workload].entry
    assert entry.iops == (None if iops is None else pytest.approx(iops, rel=1e-12))
    assert entry.throughput == (None if throughput is None else pytest.approx(throughput, rel=1e-12))
    assert entry.latency.get("mean") == (None if mean_ms is None else pytest.approx(mean_ms / 1e3, rel=1e-12))
    assert entry.layer == CATALOGUE.by_id[workload].layer
    assert entry.config_hash == CATALOGUE.by_id[workload].config_hash()
    assert entry.operation == ("transmit" if entry.layer == "network" else CATALOGUE.by_id[workload].operations[0])


@pytest.mark.parametrize(("device_class", "workload", "latency"), ROUND_TRIPS)
def test_round_trips(device_class, workload, latency):
    entry = BY_KEY[device_class, workload].entry
    assert entry.latency == pytest.approx(latency, rel=1e-12)
    assert (entry.iops, entry.throughput) == (None, None)


def test_what_tcp_sent_again():
    assert BY_KEY["10g", "tcp-throughput-s1"].point.retransmits == 119
    assert BY_KEY["1g", "tcp-throughput-s1"].point.retransmits == 0


@pytest.mark.parametrize(
    ("device_class", "workload", "not_used"),
    [
        ("hdd", "rados-write-4m-t16", {"385 MiB/s"}),
        ("hdd", "rados-seq-4m-t16", {"142 IOPS"}),  # the tool's maximum, which the tables took for the average
        ("hdd", "rados-rand-4m-t16", {"139 IOPS"}),
        ("testec", "rados-write-4m-t16", {"448 MiB/s"}),
        ("hdd", "osd-bench-4m-2g", {"115 IOPS"}),
        ("testhdd-ext4", "fs-write-1g-qd1-j1", {"476 MB/s", "456 MiB/s"}),
    ],
)
def test_figures_of_the_cluster_that_contradict_the_one_used(device_class, workload, not_used):
    assert {other.printed for other in BY_KEY[device_class, workload].point.not_used} == not_used


def test_figures_without_a_workload_are_named():
    left = {left.where: left.says for left in UNNOBA.profile.left_out}
    assert len(UNNOBA.profile.left_out) == 36
    assert "919, 9360 and 8560 Mb/s" in left["Figura 123"]
    assert "131600" in left["Figura 98"]
    assert "6447752 bits/s" in left["Figura 34"]
    assert all(one.why.strip() for one in UNNOBA.profile.left_out)


def test_settings_name_checks_that_there_are():
    settings = UNNOBA.profile.settings
    assert {one.check for one in settings} - {""} <= {check.id for check in CHECKS}
    assert [(one.printed, one.check) for one in settings if one.setting == "net.core.netdev_budget"] == [
        ("300", "network.netdev-budget"),
        ("600", "network.netdev-budget"),
    ]


@pytest.mark.parametrize(
    ("workload", "device_class", "spread"),
    [
        ("icmp-rtt-56", "10g", {"latency min 0.139 ms", "latency mdev 0.021 ms"}),  # Figura 43
        ("tcp-throughput-s1", "10g", {"throughput max 9.42 Gb/s", "throughput min 9.39 Gb/s"}),  # Figura 45
        (
            "rados-seq-4m-t16",  # Figura 85
            "hdd",
            {"iops stddev 3.11742 IOPS", "iops max 142 IOPS", "iops min 125 IOPS", "latency min 0.0352361 s"},
        ),
    ],
)
def test_spread_that_the_tools_print(workload, device_class, spread):
    also = BY_KEY[device_class, workload].point.also
    assert {f"{one.figure} {one.statistic} {one.printed}" for one in also} == spread


@pytest.mark.parametrize(
    "about",
    [
        "IOPS of an OSD on an HDD",  # 37 or 115
        "write throughput of RADOS with erasure code",  # 428 or 448
        "write throughput of RADOS on HDDs",  # 385 or 395
        "dd on an image on HDDs",  # 456 or 476
        "interrupts of a network card on one CPU",  # the same counts in both figures
        "best queue depth",  # 32 or 64
        "what a small or a virtual client loses",  # 25 to 30 %, or 23
        "file of the cache tier's test",  # 50 or 100 MiB
    ],
)
def test_contradictions_say_what_where_and_why(about):
    (found,) = (one for one in UNNOBA.profile.contradictions if one.about == about)
    assert len({statement.text for statement in found.says}) > 1
    assert found.used
    assert found.why


def test_contradictions_stand_once():
    for profile in (UNNOBA.profile, INFN.profile):
        about = [one.about for one in profile.contradictions]
        assert len(set(about)) == len(about)
    assert len(UNNOBA.profile.contradictions) == 47
    assert len(INFN.profile.contradictions) == 10


def test_nothing_stands_in_the_profile_that_is_not_transcribed_here():
    transcribed = {(device_class, workload) for device_class, workload, _, _ in block_size_cases()}
    transcribed |= {(cls, f"{pattern}-4k-qd{depth}-j1") for cls, pattern, bars in QUEUE_DEPTH for depth in bars}
    transcribed |= {("hdd", "write-1g-qd1-j1"), ("ssd", "write-1g-qd1-j1")}
    transcribed |= {(cls, "write-1g-qd1-j1-buffered") for cls in ("hdd", "ssd", "nvme")}
    transcribed |= {("hdd", "randwrite-4k-qd2-j32"), ("hdd", "randwrite-4k-qd32-j32")}
    assert len(transcribed) == 126
    transcribed |= {(cls, workload) for cls, workload, *_ in CLUSTER} | {
        (cls, workload) for cls, workload, _ in ROUND_TRIPS
    }
    assert set(BY_KEY) == transcribed
    assert len(UNNOBA.rows) == len(transcribed) == 179
    assert Counter(entry.layer for entry in UNNOBA.entries) == {
        "disk": 126,
        "rbd": 33,
        "rados": 12,
        "network": 4,
        "osd": 2,
        "filesystem": 2,
    }


def test_prose_on_the_pictures_of_many_processes():
    assert BY_KEY["hdd", "randwrite-4k-qd2-j32"].entry.iops == 175
    assert BY_KEY["hdd", "randwrite-4k-qd32-j32"].entry.latency == {"mean": 5.0}


def test_rows_that_break_arithmetic_are_exactly_these():
    broken = {
        rule: {(row.entry.device_class, row.entry.workload) for row in UNNOBA.rows if rule in row.point.breaks}
        for rule in Rule
    }
    assert broken[Rule.DURATION] == {("hdd", "rbd-bench-randreadwrite-4m-t16")}
    assert broken[Rule.THROUGHPUT] == {
        ("ssd", "read-4k-qd4-j4"),
        ("ssd", "read-256k-qd4-j4"),
        ("testec", "rados-seq-4m-t16"),
        ("testssd-xen3", "rbd-randwrite-4k-qd16-j4"),
    }
    blocks = ("4k", "16k", "64k", "128k", "256k", "512k", "1m", "4m")
    assert broken[Rule.CONCURRENCY] == (
        {("hdd", f"write-{block}-qd4-j4") for block in ("512k", "1m", "4m")}
        | {("hdd", f"read-{block}-qd4-j4") for block in blocks if block != "128k"}
        | {("hdd", f"{pattern}-{block}-qd4-j4") for pattern in ("randwrite", "randread") for block in blocks}
        | {("ssd", "write-4m-qd4-j4"), ("ssd", "read-4m-qd4-j4"), ("ssd", "rbd-randwrite-4k-qd16-j16")}
        | {("ssd", f"{pattern}-{block}-qd4-j4") for pattern in ("randwrite", "randread") for block in blocks}
    )


def test_every_row_agrees_with_arithmetic_or_says_why_not():
    for row in UNNOBA.rows:
        entry, workload = row.entry, CATALOGUE.by_id[row.entry.workload]
        if not isinstance(workload, BlockWorkload):
            continue  # tests/unit/baseline/test_arithmetic.py
        at = (entry.device_class, entry.workload)
        if entry.iops and entry.throughput and Rule.THROUGHPUT not in row.point.breaks:
            # fio cuts IOPS to a whole number, which is 10 % of the smallest of them
            off = entry.iops * workload.block_size / entry.throughput
            assert 1 - 1 / entry.iops - 0.005 < off < 1.005 + 0.005, at
        if entry.iops and "mean" in entry.latency and Rule.CONCURRENCY not in row.point.breaks:
            in_flight = entry.iops * entry.latency["mean"]
            assert in_flight == pytest.approx(workload.iodepth * workload.jobs, rel=0.05), at
        assert all(why.strip() for why in row.point.breaks.values()), at


def test_random_writes_of_both_tables_never_judge():
    """Their figures are more than a factor of two from Little's law."""
    doubtful = {(row.entry.device_class, row.entry.workload) for row in UNNOBA.rows if row.entry.doubt}
    blocks = ("4k", "16k", "64k", "128k", "256k", "512k", "1m", "4m")
    assert doubtful == {(cls, f"randwrite-{block}-qd4-j4") for cls in ("hdd", "ssd") for block in blocks}


def test_a_digit_lost_in_the_scan():
    row = BY_KEY["hdd", "randwrite-4m-qd4-j4"]
    assert row.entry.iops == 11
    assert [(other.figure, other.printed) for other in row.point.not_used] == [("iops", "1 IOPS")]


def test_the_plateau_that_chapter_ten_begins_too_early():
    for depth in (1, 2):
        row = BY_KEY["ssd", f"write-4k-qd{depth}-j1"]
        assert [(other.printed, other.where) for other in row.point.not_used] == [("54000 IOPS", "10.2")]
    assert BY_KEY["ssd", "write-4k-qd4-j1"].point.not_used == ()


@pytest.mark.parametrize(
    ("device_class", "workload", "restated"),
    [
        ("hdd", "write-1g-qd1-j1", {"202 MB/s"}),
        ("hdd", "write-1m-qd4-j4", {"196 MiB/s", "59 ms"}),
        ("hdd", "read-16k-qd4-j4", {"309 MiB/s", "0.7 ms"}),
        ("hdd", "randwrite-4m-qd4-j4", {"44.9 MiB/s", "400 ms"}),
        ("hdd", "randread-4m-qd4-j4", {"135 MiB/s", "332 ms"}),
        ("ssd", "write-1g-qd1-j1", {"478 MB/s"}),
        ("ssd", "write-1m-qd4-j4", {"497 MiB/s", "32 ms"}),
        ("ssd", "read-1m-qd4-j4", {"535 MiB/s", "29.8 ms"}),
        ("ssd", "randwrite-256k-qd4-j4", {"130 MiB/s", "7.8 ms"}),
        ("ssd", "randread-256k-qd4-j4", {"373 MiB/s", "7.9 ms"}),
        ("ssd", "write-4k-qd64-j1", {"73000 IOPS"}),
        ("ssd", "write-4k-qd128-j1", {"92000 IOPS"}),
        ("ssd", "read-4k-qd128-j1", {"116000 IOPS"}),
        ("ssd", "randread-4k-qd32-j1", {"82000 IOPS"}),
    ],
)
def test_figures_that_chapter_ten_repeats(device_class, workload, restated):
    repeats = BY_KEY[device_class, workload].point.restated
    assert {other.printed for other in repeats if other.where.startswith("10.")} == restated


def test_pictures_are_named_and_have_no_figures():
    numbers = [48, 46, 47, 60, 61, 69, 70, 71, 75, 81, 87, 95, 96, 97, 105, 111, 112, *range(114, 122), 123, 132, 133]
    assert [picture.where for picture in UNNOBA.profile.pictures] == [f"Figura {number}" for number in numbers]


def test_hardware_is_named():
    hardware = UNNOBA.profile.hardware
    assert (hardware["hdd"].model, hardware["hdd"].capacity.value) == ("MB4000GVYZK", 4000787030016)
    assert (hardware["ssd"].model, hardware["ssd"].capacity.value) == ("MK001920GWSSE", 1920383410176)


# Typed from the document a second time, not from the YAML: tables 4 to 7, MB/s written and read.
INFN_TABLES = {
    ("write-1m-qd8-j8", "read-1m-qd8-j8"): """
        ssd 440 562    hdd 248 224    cephfs-hdd-ssd-db 1171 732    cephfs-hdd 642 681    cephfs-ssd 1128 1172
        rbd:hdd-ssd-db 536 1470    rbd:hdd 432 1610    rbd:ssd 1037 1483
        rados:hdd-ssd-db 1172 66.8    rados:hdd 1173 70.8    rados:ssd 1172 71.3""",
    ("randwrite-64k-qd16-j8", "randread-64k-qd16-j8"): """
        ssd 431 405    hdd 25.2 26.3    cephfs-hdd-ssd-db 1060 183    cephfs-hdd 115 184    cephfs-ssd 1151 1121
        rbd:hdd-ssd-db 526 129    rbd:hdd 83.3 173    rbd:ssd 1160 1158
        rados:hdd-ssd-db 1166 5140    rados:hdd 1167 5274    rados:ssd 1166 5245""",
    ("randwrite-8k-qd32-j8", "randread-8k-qd32-j8"): """
        ssd 373 328    hdd 3.65 3.69    cephfs-hdd-ssd-db 21.5 23.9    cephfs-hdd 19.6 23.6    cephfs-ssd 347 434
        rbd:hdd-ssd-db 71.4 76.6    rbd:hdd 77.9 35.6    rbd:ssd 128 655
        rados:hdd-ssd-db 523 773    rados:hdd 515 735    rados:ssd 524 707""",
    ("randwrite-4k-qd1-j8", "randread-4k-qd1-j8"): """
        ssd 266 216    hdd 1.88 1.47    cephfs-hdd-ssd-db 10.9 4.5    cephfs-hdd 10 4.46    cephfs-ssd 34.3 68.9
        rbd:hdd-ssd-db 4.65 270    rbd:hdd 0.63 1754    rbd:ssd 4.14 1241
        rados:hdd-ssd-db 41.8 87.4    rados:hdd 27.7 86.5    rados:ssd 39.7 86.1""",
}


def infn_cases():
    for (write, read), table in INFN_TABLES.items():
        words = iter(table.split())
        for where, written, was_read in zip(words, words, words, strict=True):
            layer, _, device_class = where.rpartition(":")
            prefix = f"{layer}-" if layer else "fs-" if device_class.startswith("cephfs") else ""
            yield device_class, f"{prefix}{write}", float(written)
            yield device_class, f"{prefix}{read}", float(was_read)


@for_every(("device_class", "workload", "megabytes"), list(infn_cases()))
def test_infn_tables_are_megabytes(device_class, workload, megabytes):
    (row,) = (row for row in INFN.rows if (row.entry.device_class, row.entry.workload) == (device_class, workload))
    assert row.entry.throughput == pytest.approx(megabytes * 1e6, rel=1e-12)
    assert (row.entry.iops, row.entry.latency) == (None, {})
    assert row.entry.config_hash == CATALOGUE.by_id[workload].config_hash()


def test_infn_has_these_rows_and_no_more():
    cases = {(device_class, workload) for device_class, workload, _ in infn_cases()}
    assert {(row.entry.device_class, row.entry.workload) for row in INFN.rows} == cases
    assert Counter(entry.layer for entry in INFN.entries) == {"disk": 16, "filesystem": 24, "rbd": 24, "rados": 24}


def test_infn_reads_from_a_memory_never_judge():
    """RBD's reads are faster than RADOS, which they go through; RADOS' are 73 times its sequential ones."""
    doubtful = {(row.entry.device_class, row.entry.workload) for row in INFN.rows if row.entry.doubt}
    pools = ("hdd-ssd-db", "hdd", "ssd")
    assert doubtful == {
        (pool, workload) for pool in pools for workload in ("rbd-randread-4k-qd1-j8", "rados-randread-64k-qd16-j8")
    }


MINIMAL = """
schema_version: 1
name: other
title: t
document: {title: t, year: 2020, language: en, text: t.txt}
hardware: {disk: {device_class: ssd, description: d}}
series:
- where: Table 1
  line: 1
  hardware: disk
  tool: fio
  command: fio
  points:
    - {line: 2, workload: randread-4k-qd1-j1, iops: 12K IOPS, latency: {mean: 84 us}}
"""


def test_a_minimal_profile_loads():
    loaded = profiles.parse_profile(MINIMAL, "other.yaml")
    assert [(entry.iops, entry.latency) for entry in loaded.entries] == [(12000.0, {"mean": 84e-6})]


@for_every(
    ("old", "new", "message"),
    [
        ("schema_version: 1", "schema_version: 2", "schema_version = 2: this Plumbline reads version 1"),
        ("schema_version: 1", "", "schema_version: is missing"),
        ("name: other", "name: unlike", "name = 'unlike': must be the file's name"),
        ("hardware: disk", "hardware: tape", "series[0].hardware = 'tape': the profile has: disk"),
        ("randread-4k-qd1-j1", "randread-5k", "series[0].points[0].workload = 'randread-5k': no such workload"),
        (
            "12K IOPS",
            "12 MB/s",
            "iops = '12 MB/s': expected a figure with its unit, such as 51600 IOPS or 28K IOPS",
        ),
        (
            "mean: 84 us",
            "mean: 84",
            "series[0].points[0].latency.mean = 84: expected a figure with its unit, such as 412us",
        ),
        ("mean: 84 us", "p51: 84 us", "latency.p51: no such key"),
        ("iops: 12K IOPS, latency: {mean: 84 us}", "note: n", "series[0].points[0]: has no figure"),
        (
            "84 us",
            "42 us",
            "breaks.concurrency: IOPS × latency makes 0.5 of 1 in flight; say why",
        ),
        ("84 us}", "84 us}, retransmits: 3", "retransmits = 3: only valid for a TCP transfer"),
        ("84 us}", "84 us}, retransmits: -1", "retransmits = -1: "),
        ("84 us}", "84 us}, breaks: {throughput: why}", "breaks.throughput: the row does not break this identity"),
        (
            "84 us}",
            "84 us}, also: [{figure: latency, statistic: min, printed: 85 us, line: 1}]",
            "also[0].printed = '85 us': is above the average 84 us",
        ),
        (
            "84 us}",
            "84 us}, also: [{figure: iops, statistic: max, printed: 11 IOPS, line: 1}]",
            "also[0].printed = '11 IOPS': is below the average 12K IOPS",
        ),
        (
            "84 us}",
            "84 us}, also: [{figure: iops, statistic: stddev, printed: 3 MB/s, line: 1}]",
            "also[0].printed = '3 MB/s': expected a figure with its unit",
        ),
        (
            "84 us}",
            "84 us}, also: [{figure: iops, statistic: p50, printed: 3 IOPS, line: 1}]",
            "also[0].statistic",
        ),
        (
            "84 us}",
            "84 us}, also: [" + 2 * "{figure: iops, statistic: stddev, printed: 3 IOPS, line: 1}, " + "]",
            "also[1] = 'iops stddev': is a duplicate",
        ),
        ("84 us}", "84 us}, operation: write", "operation = 'write': the workload has: read"),
        (
            "84 us}",
            "84 us}, restated: [{figure: iops, printed: 14000 IOPS, where: w, line: 1}]",
            "restated[0].printed = '14000 IOPS': is not the row's figure",
        ),
        (
            "84 us}",
            "84 us}, not_used: [{figure: iops, printed: 12000 IOPS, where: w, line: 1, why: w}]",
            "not_used[0].printed = '12000 IOPS': agrees with the row",
        ),
    ],
)
def test_refusals_name_file_key_value_and_reason(old, new, message):
    with pytest.raises(BaselineError) as caught:
        profiles.parse_profile(MINIMAL.replace(old, new, 1), "other.yaml")
    assert str(caught.value).startswith("other.yaml: ")
    assert message in str(caught.value)


def test_a_row_in_doubt_never_judges():
    text = MINIMAL.replace("84 us}", "84 us}, doubt: it was read from a cache", 1)
    (entry,) = profiles.parse_profile(text, "other.yaml").entries
    assert entry.doubt == "it was read from a cache"


def test_a_row_that_stands_twice():
    text = MINIMAL + "    - {line: 3, workload: randread-4k-qd1-j1, iops: 13K IOPS}\n"
    with pytest.raises(BaselineError, match=r"points\[1\]\.workload = .*: is a duplicate; first in Table 1, line 2"):
        profiles.parse_profile(text, "other.yaml")


def test_judge_names_known_profiles_only():
    loaded = {"unnoba-2020": UNNOBA}
    profiles.check_judge({"ssd": "unnoba-2020"}, loaded, "config.yaml")
    with pytest.raises(ConfigError) as caught:
        profiles.check_judge({"ssd": "unnoba"}, loaded, "config.yaml")
    assert str(caught.value) == (
        "config.yaml: baseline.judge.ssd = 'unnoba': no such documented profile; available: unnoba-2020"
    )
