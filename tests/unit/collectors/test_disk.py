from __future__ import annotations

from pathlib import Path

from plumbline.collectors import disk
from plumbline.core.roots import Roots
from plumbline.probes.run.state import DiskSeen
from plumbline.sources.disk.block import BlockDevice, DevicesReading, read_block_devices
from plumbline.sources.disk.diskstats import DiskStats, parse_diskstats
from plumbline.sources.disk.diskusers import DiskUsesReading, read_disk_users

FIXTURES = Path(__file__).parents[2] / "fixtures"

ALL = DiskStats(
    name="sda",
    reads=181212,
    reads_merged=40213,
    sectors_read=9812334,
    reading_ms=90121,
    writes=2901245,
    writes_merged=1410222,
    sectors_written=88120344,
    writing_ms=1820311,
    in_flight=3,
    busy_ms=912004,
    weighted_ms=1953120,
    discards=10211,
    discards_merged=0,
    sectors_discarded=512110336,
    discarding_ms=20112,
    flushes=80123,
    flushing_ms=22576,
)


def by_name(samples: object) -> dict[tuple[str, ...], object]:
    return {(spec.name, *labels): value for spec, labels, value in samples}  # type: ignore[attr-defined]


def test_sectors_become_bytes_and_milliseconds_seconds() -> None:
    assert by_name(disk.samples([ALL])) == {
        ("plumbline_disk_ios_total", "sda", "read"): 181212,
        ("plumbline_disk_ios_total", "sda", "write"): 2901245,
        ("plumbline_disk_ios_total", "sda", "discard"): 10211,
        ("plumbline_disk_ios_total", "sda", "flush"): 80123,
        ("plumbline_disk_ios_merged_total", "sda", "read"): 40213,
        ("plumbline_disk_ios_merged_total", "sda", "write"): 1410222,
        ("plumbline_disk_ios_merged_total", "sda", "discard"): 0,
        ("plumbline_disk_io_bytes_total", "sda", "read"): 5023915008,
        ("plumbline_disk_io_bytes_total", "sda", "write"): 45117616128,
        ("plumbline_disk_io_bytes_total", "sda", "discard"): 262200492032,
        ("plumbline_disk_io_seconds_total", "sda", "read"): 90.121,
        ("plumbline_disk_io_seconds_total", "sda", "write"): 1820.311,
        ("plumbline_disk_io_seconds_total", "sda", "discard"): 20.112,
        ("plumbline_disk_io_seconds_total", "sda", "flush"): 22.576,
        ("plumbline_disk_busy_seconds_total", "sda"): 912.004,
        ("plumbline_disk_queue_length", "sda"): 3,
        ("plumbline_disk_io_weighted_seconds_total", "sda"): 1953.12,
    }


def test_what_an_old_kernel_does_not_count_has_no_series() -> None:
    text = (FIXTURES / "diskstats-linux-4.14/proc/diskstats").read_text("utf-8")
    samples = by_name(disk.samples(parse_diskstats(text, keep=lambda name: name == "sda")))
    assert {labels[2] for labels in samples if len(labels) == 3} == {"read", "write"}
    text = (FIXTURES / "diskstats-linux-4.19/proc/diskstats").read_text("utf-8")
    samples = by_name(disk.samples(parse_diskstats(text, keep=lambda name: name == "sdb")))
    assert {labels[2] for labels in samples if len(labels) == 3} == {"read", "write", "discard"}
    assert samples["plumbline_disk_io_bytes_total", "sdb", "discard"] == 985688977408


def test_a_measured_zero_is_a_series() -> None:
    text = "8 0 sda 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    samples = by_name(disk.samples(parse_diskstats(text, keep=lambda _: True)))
    assert len(samples) == 17
    assert set(samples.values()) == {0}


def test_the_underflow_of_old_kernels_is_no_queue() -> None:
    text = (FIXTURES / "diskstats-linux-4.14/proc/diskstats").read_text("utf-8")
    samples = by_name(disk.samples(parse_diskstats(text, keep=lambda name: name == "sda")))
    assert samples["plumbline_disk_queue_length", "sda"] == 0


def test_labels_fit_their_specs() -> None:
    node = Roots.under(FIXTURES / "disks-storage-node")
    devices = read_block_devices(node, on_skip=lambda *_: None)
    specs = set()
    for spec, labels, _ in [
        *disk.samples([ALL]),
        *disk.device_samples(DevicesReading(devices)),
        *disk.use_samples(DiskUsesReading(read_disk_users(node), lambda _: True)),
        *disk.presence_samples([DiskSeen("sdb", "ZC1EXAMPLE", True, 1.0)]),
    ]:
        assert len(labels) == len(spec.labels), spec.name
        specs.add(spec)
    assert specs == {*disk.DISK.specs, *disk.DEVICE.specs, *disk.DISKUSE.specs, *disk.DISKPRESENCE.specs}


def test_info_and_size() -> None:
    device = BlockDevice(
        name="sdb",
        major=8,
        minor=16,
        size_bytes=4000787030016,
        model="ST4000NM0025",
        serial="ZC1EXAMPLE",
        firmware="N003",
        rotational=True,
        transport="sas",
        device_class="hdd",
        logical_block_bytes=512,
        physical_block_bytes=4096,
        queue_depth=254,
        zoned="host-aware",
    )
    assert list(disk.device_samples(DevicesReading((device,), {"sda": "osd.1", "sdb": "osd.3,osd.4"}))) == [
        (disk.INFO, ("sdb", "ST4000NM0025", "ZC1EXAMPLE", "N003", "1", "sas", "hdd", "osd.3,osd.4"), 1),
        (disk.SIZE, ("sdb",), 4000787030016),
        (disk.LOGICAL_BLOCK, ("sdb",), 512),
        (disk.PHYSICAL_BLOCK, ("sdb",), 4096),
        (disk.QUEUE_DEPTH, ("sdb",), 254),
        (disk.ZONED, ("sdb", "host-aware"), 1),
    ]


def test_what_is_not_known_is_an_empty_label() -> None:
    device = BlockDevice(name="loop0", major=7, minor=0, size_bytes=0)
    assert list(disk.device_samples(DevicesReading((device,)))) == [
        (disk.INFO, ("loop0", "", "", "", "", "", "", ""), 1),
        (disk.SIZE, ("loop0",), 0),
    ]


def test_uses_and_relations_of_the_disks_that_are_kept() -> None:
    users = read_disk_users(Roots.under(FIXTURES / "ceph-cephadm-node"))
    assert by_name(disk.use_samples(DiskUsesReading(users, lambda name: name in ("sdb", "dm-0")))) == {
        ("plumbline_disk_use_info", "sdb", "osd", "osd.0"): 1,
        ("plumbline_disk_use_info", "dm-0", "osd", "osd.0"): 1,
        (
            "plumbline_disk_use_info", "sdb", "lvm",
            "ceph-0000b10c-1111-4222-8333-000000000000/osd-block-0000005d-1111-4222-8333-000000000000",
        ): 1,
        ("plumbline_disk_relation_info", "dm-0", "sdb"): 1,
    }  # fmt: skip


def test_a_disk_that_left_is_zero_and_was_last_seen() -> None:
    seen = (DiskSeen("sda", "A", True, 20.0), DiskSeen("sdb", "", False, 10.0))
    assert by_name(disk.presence_samples(seen)) == {
        ("plumbline_disk_present", "sda", "A"): 1,
        ("plumbline_disk_last_seen_timestamp_seconds", "sda", "A"): 20.0,
        ("plumbline_disk_present", "sdb", ""): 0,
        ("plumbline_disk_last_seen_timestamp_seconds", "sdb", ""): 10.0,
    }
