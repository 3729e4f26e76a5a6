"""The three identities, each kept and each broken."""

from __future__ import annotations

import pytest

from plumbline.baseline.arithmetic import Rule, agree, breaches
from plumbline.baseline.units import Iops, Latency, Throughput, Volume
from plumbline.workloads import BlockWorkload, Pattern

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
    assert breach.found == "IOPS × block size is 1.6 % below the throughput"
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
    assert breach.found == "IOPS × latency makes 2.6 of 16 in flight"
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
