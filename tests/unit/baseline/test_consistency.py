"""What cannot be true of a recording: each rule where it speaks, just where it does not, and where it must not."""

from __future__ import annotations

import pytest

from plumbline.baseline.model import BaselineEntry, Source
from plumbline.baseline.record.consistency import SLACK, Finding, Measured, Place, check, with_workloads
from plumbline.config.workloads import load_catalogue

CATALOGUE = load_catalogue()
CLIENT, STORAGE = Place(holds_osds=False), Place(holds_osds=True)


def entry(
    workload: str,
    operation: str,
    p50: float | None = None,
    *,
    device_class: str = "ssd",
    throughput: float | None = None,
) -> BaselineEntry:
    load = CATALOGUE.by_id[workload]
    assert operation in load.operations
    return BaselineEntry(
        layer=load.layer,
        device_class=device_class,
        workload=workload,
        operation=operation,
        source=Source.MEASURED,
        profile="stor01",
        config_hash=load.config_hash(),
        latency={} if p50 is None else {"p50": p50},
        throughput=throughput,
    )


def found(*entries: BaselineEntry, place: Place = STORAGE, devices: tuple[str, ...] = ()) -> list[Finding]:
    return check(with_workloads(entries, devices), place)


RTT = entry("icmp-rtt-56", "round-trip", 100e-6, device_class="10g")
DISK_READ = entry("randread-4k-qd1-j1", "read", 400e-6)
DISK_WRITE = entry("randwrite-4k-qd1-j1-dsync", "write", 300e-6)


# --- a rotating disk


@pytest.mark.parametrize(
    "workload", ["randread-4k-qd1-j1", "randread-4k-qd16-j1", "rbd-randread-4k-qd1-j1", "fs-randread-4k-qd1-j1"]
)
def test_a_rotating_disk_reads_at_random_no_faster_than_it_turns(workload: str):
    (finding,) = found(entry(workload, "read", 0.9e-3, device_class="hdd"))
    assert finding.figures == "p50 900 µs"
    assert "even the fastest rotating disk takes 2 ms for half a turn" in finding.why
    assert found(entry(workload, "read", 1.1e-3, device_class="hdd")) == []
    assert found(entry(workload, "read", 0.9e-3, device_class="ssd")) == []


def test_what_a_rotating_disk_does_in_sequence_or_writes_is_not_judged():
    assert found(entry("read-4k-qd1-j1", "read", 20e-6, device_class="hdd")) == []  # its read-ahead
    assert found(entry("randwrite-4k-qd1-j1-dsync", "write", 50e-6, device_class="hdd")) == []  # a controller's battery


# --- reads above a disk


@pytest.mark.parametrize("workload", ["rbd-randread-4k-qd1-j1", "fs-randread-4k-qd1-j1"])
def test_a_read_through_more_layers_is_not_faster_than_the_disk(workload: str):
    (finding,) = found(DISK_READ, entry(workload, "read", 400e-6 / SLACK * 0.99))
    assert finding.what == f"{workload.split('-', maxsplit=1)[0].replace('fs', 'filesystem')} ssd {workload} read"
    assert "disk ssd randread-4k-qd1-j1 read p50 400 µs" in finding.figures
    assert "so a cache was read" in finding.why
    assert found(DISK_READ, entry(workload, "read", 400e-6 / SLACK * 1.01)) == []


def test_reads_are_compared_only_with_what_is_like_them():
    quick = entry("rbd-randread-4k-qd1-j1", "read", 100e-6)
    for other in (
        entry("randread-4k-qd1-j1", "read", 8e-3, device_class="hdd"),  # another class
        entry("randread-4k-qd16-j1", "read", 400e-6),  # another depth
        entry("read-4k-qd1-j1", "read", 400e-6),  # another pattern
        entry("randwrite-4k-qd1-j1", "write", 400e-6),  # another operation
        entry("randread-4k-qd1-j1", "read"),  # not measured
    ):
        assert found(quick, other) == []


def test_what_the_rados_canary_has_just_written_may_come_from_the_osds_memory():
    assert found(DISK_READ, entry("rados-ops-4k", "read", 50e-6)) == []


# --- writes


@pytest.mark.parametrize("workload", ["rados-ops-4k", "rbd-randwrite-4k-qd1-j1"])
def test_a_replicated_write_takes_a_disk_and_a_round_trip(workload: str):
    bound = (300e-6 + 100e-6) / SLACK
    (finding,) = found(RTT, DISK_WRITE, entry(workload, "write", bound * 0.99))
    assert "disk ssd randwrite-4k-qd1-j1-dsync write p50 300 µs and network 10g icmp-rtt-56" in finding.figures
    assert "a replica on another host has it on its disk" in finding.why
    assert found(RTT, DISK_WRITE, entry(workload, "write", bound * 1.01)) == []


def test_a_write_that_the_disk_may_forget_is_the_bound_where_no_durable_one_is_known():
    volatile = entry("randwrite-4k-qd1-j1", "write", 200e-6)
    upper = entry("rados-ops-4k", "write", 260e-6)
    assert len(found(RTT, volatile, upper)) == 1
    assert len(found(RTT, volatile, DISK_WRITE, upper)) == 1
    assert found(volatile, upper) == []  # without the network the disk alone is the bound, and it holds


def test_on_a_rotating_disk_a_write_ends_in_a_log_but_it_still_crosses_the_network():
    disk = entry("randwrite-4k-qd1-j1-dsync", "write", 10e-3, device_class="hdd")
    assert found(RTT, disk, entry("rados-ops-4k", "write", 1e-3, device_class="hdd")) == []
    (finding,) = found(RTT, disk, entry("rados-ops-4k", "write", 80e-6, device_class="hdd"))
    assert "disk" not in finding.figures
    assert "another host has it, so" in finding.why


def test_writes_are_compared_only_with_what_is_like_them():
    quick = 20e-6
    assert found(RTT, entry("rados-ops-4k", "remove", quick)) == []
    assert found(RTT, entry("fs-randwrite-4k-qd1-j1", "write", quick)) == []
    assert found(RTT, entry("rbd-randwrite-4k-qd16-j1", "write", quick)) == []
    assert found(RTT, entry("s3-ops-4k", "put", quick)) == []
    other_size = entry("randwrite-4k-qd1-j1-dsync", "write", 300e-6, device_class="nvme")
    assert found(other_size, entry("rados-ops-4k", "write", quick)) == []


def test_of_several_networks_the_quickest_is_the_bound():
    slow = entry("icmp-rtt-56", "round-trip", 5e-3, device_class="1g")
    assert found(RTT, slow, entry("rados-ops-4k", "write", 200e-6)) == []


# --- the network


@pytest.mark.parametrize("workload", ["rados-ops-4k", "rbd-randread-4k-qd1-j1"])
def test_a_client_cannot_read_faster_than_a_round_trip(workload: str):
    quick = entry(workload, "read", 80e-6)
    (finding,) = found(RTT, quick, place=CLIENT)
    assert "every read crosses the network" in finding.why
    assert found(RTT, quick, place=STORAGE) == []  # its primary may be here
    assert found(RTT, entry(workload, "read", 95e-6), place=CLIENT) == []


def net(rate: float, operation: str = "transmit", streams: int = 4) -> BaselineEntry:
    return entry(f"tcp-throughput-s{streams}", operation, device_class="10g", throughput=rate)


@pytest.mark.parametrize(
    ("workload", "operation", "direction"),
    [
        ("rados-write-4m-t16", "write", "transmit"),
        ("rados-seq-4m-t16", "read", "receive"),
        ("rbd-bench-write-4m-t16", "write", "transmit"),
        ("rbd-bench-read-4m-t16", "read", "receive"),
    ],
)
def test_a_client_cannot_move_more_than_its_network(workload: str, operation: str, direction: str):
    other = "receive" if direction == "transmit" else "transmit"
    lower = (net(1.1e9, direction), net(9e9, other))
    (finding,) = found(*lower, entry(workload, operation, throughput=1.3e9), place=CLIENT)
    assert finding.figures == f"1.3 GB/s, network 10g tcp-throughput-s4 {direction} 1.1 GB/s"
    assert found(*lower, entry(workload, operation, throughput=1.2e9), place=CLIENT) == []
    assert found(*lower, entry(workload, operation, throughput=1.3e9), place=STORAGE) == []


def test_a_bond_carries_more_than_one_port_shows():
    upper = entry("rados-write-4m-t16", "write", throughput=2e9)
    measured = (net(1.1e9), upper)
    assert found(*measured, place=Place(holds_osds=False, links={"bond0": 2}), devices=("bond0", "")) == []
    (finding,) = found(*measured, place=Place(holds_osds=False, links={"bond0": 1}), devices=("bond0", ""))
    assert "on each of" not in finding.figures
    more = entry("rados-write-4m-t16", "write", throughput=3e9)
    (finding,) = found(net(1.1e9), more, place=Place(holds_osds=False, links={"bond0": 2}), devices=("bond0", ""))
    assert finding.figures.endswith("1.1 GB/s on each of 2 ports")


def test_one_stream_is_no_limit_of_a_quick_link():
    upper = entry("rados-write-4m-t16", "write", throughput=8e9)
    assert found(net(3e9, streams=1), upper, place=CLIENT) == []
    assert len(found(net(3e9, streams=4), upper, place=CLIENT)) == 1
    assert len(found(net(1.1e9, streams=1), upper, place=CLIENT)) == 1


# --- OSD and disk


def test_an_osd_writes_no_faster_than_twice_what_a_disk_of_its_class_does():
    disk = entry("write-4m-qd4-j4", "write", throughput=200e6, device_class="hdd")
    (finding,) = found(disk, entry("osd-bench-4m", "write", throughput=410e6, device_class="hdd"))
    assert "no faster than its disk" in finding.why
    assert found(disk, entry("osd-bench-4m", "write", throughput=390e6, device_class="hdd")) == []
    assert found(disk, entry("osd-bench-4m", "write", throughput=410e6, device_class="ssd")) == []
    assert found(disk, entry("osd-bench-4k", "write", throughput=410e6, device_class="hdd")) == []
    shallow = entry("write-4k-qd4-j4", "write", throughput=200e6, device_class="hdd")
    assert found(shallow, entry("osd-bench-4m", "write", throughput=410e6, device_class="hdd")) == []


def test_a_recording_that_can_be_true_has_no_finding():
    """Figures of UNNOBA 2020's network, and of an SSD, its OSD, RADOS and RBD in the order in which they slow down."""
    assert (
        found(
            entry("icmp-rtt-56", "round-trip", 163e-6, device_class="10g"),
            net(1.175e9),
            DISK_READ,
            DISK_WRITE,
            entry("rados-ops-4k", "write", 1.2e-3),
            entry("rados-ops-4k", "read", 300e-6),
            entry("rbd-randread-4k-qd1-j1", "read", 600e-6),
            entry("rbd-randwrite-4k-qd1-j1", "write", 1.4e-3),
            entry("rados-write-4m-t16", "write", throughput=395e6),
            place=CLIENT,
        )
        == []
    )


def test_a_finding_reads_as_one_sentence():
    (finding,) = found(RTT, entry("rbd-randread-4k-qd1-j1", "read", 20e-6), place=CLIENT)
    assert str(finding) == (
        "rbd ssd rbd-randread-4k-qd1-j1 read: p50 20 µs, network 10g icmp-rtt-56 round-trip p50 100 µs; "
        "this host holds no OSD, so every read crosses the network; a cache on this host was read"
    )
    assert isinstance(with_workloads([RTT])[0], Measured)
