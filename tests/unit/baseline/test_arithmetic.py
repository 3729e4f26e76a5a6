"""The three identities, each kept and each broken."""

from __future__ import annotations

import pytest

from plumbline.baseline.arithmetic import Rule, agree, breaches
from plumbline.baseline.units import Iops, Latency, Throughput, Volume
from plumbline.config.workloads import BlockWorkload, OsdBench, Pattern, RadosBench, RbdBench, RoundTrip, TcpThroughput

FOUR_MEGS = BlockWorkload(id="w", layer="disk", pattern=Pattern.RANDWRITE, block_size=4 * 2**20, iodepth=4, jobs=4)
FOUR_K = BlockWorkload(id="w", layer="disk", pattern=Pattern.READ, block_size=4096, iodepth=4, jobs=4)


def check(workload, iops=None, throughput=None, mean=None, duration=None, transferred=None):
    return list(
        breaches(
            workload,
            iops=iops and Iops.parse(iops),
            throughput=throughput and Throughput.parse(throughput),
            mean=mean and Latency.parse(mean),
            duration=duration and Latency.parse(duration),
            transferred=transferred and Volume.parse(transferred),
        )
    )


def test_iops_cut_to_a_whole_number_agree():
    assert check(FOUR_MEGS, "11 IOPS", "44.90 MiB/s") == []  # 11.2
    assert check(FOUR_MEGS, "33 IOPS", "135.00 MiB/s") == []  # 33.75


def test_a_lost_digit_breaks_throughput():
    (breach,) = check(FOUR_MEGS, "1 IOPS", "44.90 MiB/s")
    assert breach.rule is Rule.THROUGHPUT
    assert breach.ratio == pytest.approx(4 / 44.9)
    assert breach.doubtful


def test_three_digits_of_large_iops():
    assert check(FOUR_K, "51600 IOPS", "202.00 MiB/s") == []
    (breach,) = check(FOUR_K, "67000 IOPS", "266.00 MiB/s")
    assert breach.rule is Rule.THROUGHPUT
    assert breach.text == "IOPS × block size is 1.6 % below the throughput"
    assert not breach.doubtful


def test_mebibytes_taken_for_megabytes_break_throughput():
    (breach,) = check(FOUR_K, "51600 IOPS", "202.00 MB/s")
    assert breach.ratio == pytest.approx(1.0463, abs=1e-4)


def test_duration():
    five = {"transferred": "5368709120 B"}
    assert check(FOUR_MEGS, throughput="202 MB/s", duration="27 s", **five) == []
    assert check(FOUR_MEGS, throughput="478 MB/s", duration="11.2378 s", **five) == []
    assert check(FOUR_MEGS, throughput="1100 MB/s", duration="4.93 s", **five) == []
    (breach,) = check(FOUR_MEGS, throughput="478 MB/s", duration="12.56 s", **five)
    assert breach.rule is Rule.DURATION


def test_littles_law():
    assert check(FOUR_K, "1062 IOPS", mean="15.06 ms") == []
    (breach,) = check(FOUR_K, "17700 IOPS", mean="145.53 us")
    assert breach.rule is Rule.CONCURRENCY
    assert breach.text == "IOPS × latency makes 2.6 of 16 in flight"
    assert breach.doubtful


def test_nothing_to_check():
    assert check(FOUR_K, iops="1 IOPS") == []
    assert check(FOUR_K, mean="1 ms") == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("398.16 ms", "400 ms", True),
        ("7865.00 us", "7.8 ms", True),  # cut, not rounded
        ("59.08 ms", "59 ms", True),
        ("59.08 ms", "61 ms", False),
        ("5.25 ms", "5.25 ms", True),
    ],
)
def test_printed_twice(one, other, same):
    assert agree(Latency.parse(one), Latency.parse(other)) is same


RADOS = RadosBench(id="w", layer="rados", mode="write", object_size=4 * 2**20, concurrent=16)
RBD = RbdBench(id="w", layer="rbd", operation="write", io_size=4 * 2**20, threads=16)
OSD = OsdBench(id="w", layer="osd", total_bytes=2**31, block_size=4 * 2**20)
TCP = TcpThroughput(id="w", layer="network")


def test_tools_of_ceph_agree():
    assert check(RADOS, "98 IOPS", "395.705 MiB/s", "0.161603 s", "60.1257 s", "24947720192 B") == []
    assert check(RBD, "80.1475 IOPS", "321 MiB/s", None, "6 s", "2 GiB") == []
    assert check(OSD, "37.000482548947552 IOPS", "155191271.95698091 B/s", None, "13.837657369 s", "2 GiB") == []
    assert check(TCP, None, "9.40 Gb/s", None, "20.00 s", "21.9 GiB") == []


@pytest.mark.parametrize(
    ("workload", "figures", "rule"),
    [
        (RADOS, ("142 IOPS", "534 MiB/s"), Rule.THROUGHPUT),  # the maximum for the average
        (RADOS, ("98 IOPS", None, "59 ms"), Rule.CONCURRENCY),
        (RADOS, (None, "385 MiB/s", None, "60.1257 s", "24947720192 B"), Rule.DURATION),
        (RBD, ("132 IOPS", "499 MiB/s"), Rule.THROUGHPUT),
        (RBD, ("80 IOPS", None, "20 ms"), Rule.CONCURRENCY),
        (OSD, ("115 IOPS", "148 MiB/s"), Rule.THROUGHPUT),
        (TCP, (None, "9.40 Gb/s", None, "20.00 s", "21.9 GB"), Rule.DURATION),
    ],
)
def test_tools_of_ceph_and_the_network_disagree(workload, figures, rule):
    assert [breach.rule for breach in check(workload, *figures)] == [rule]


def test_what_has_no_blocks_and_nothing_in_flight_is_not_checked_for_them():
    assert check(OSD, "37 IOPS", None, "5 s") == []  # an OSD does not say how many are in flight
    assert check(RoundTrip(id="w", layer="network", protocol="icmp"), "6000 IOPS", "1 MB/s", "163 us") == []
