"""RBD images in use: librbd's clients by their admin sockets, the kernel's by sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.collectors import rbdclient as metrics
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.ceph.osd_perf import LongRunAverage
from plumbline.sources.ceph.rbd_clients import (
    RbdClient,
    RbdClientsReading,
    parse_counters,
    parse_features,
    parse_images,
    read_rbd_clients,
)
from support.admin_sockets import serving

FIXTURES = Path(__file__).parents[3] / "fixtures" / "ceph-16.2"
HELP = (FIXTURES / "rbd-client-help.json").read_bytes()
PERF = (FIXTURES / "rbd-client-perf-dump.json").read_bytes()
OPTIONS = b'{"rbd_cache": "true", "rbd_cache_policy": "writeback", "rbd_cache_writethrough_until_flush": "false"}'
ANSWERS = {"help": HELP, "perf dump": PERF, "config get": OPTIONS}


def test_a_client_of_librbd(tmp_path: Path) -> None:
    with serving(tmp_path / "a.asok", ANSWERS):
        (client,) = read_rbd_clients([f"{tmp_path}/*.asok"], Roots.under(tmp_path)).clients
    assert (client.pool, client.image, client.driver) == ("vms", "disk-1", "librbd")
    assert (client.cache, client.until_flush) == ("writeback", False)
    assert client.operations["write"] == LongRunAverage(17874, 11.928000712)
    assert client.octets == {"read": 0, "write": 73220096, "discard": 0}


def test_without_a_cache(tmp_path: Path) -> None:
    answers = ANSWERS | {"config get": OPTIONS.replace(b'"rbd_cache": "true"', b'"rbd_cache": "false"')}
    with serving(tmp_path / "a.asok", answers):
        (client,) = read_rbd_clients([f"{tmp_path}/*.asok"], Roots.under(tmp_path)).clients
    assert (client.cache, client.until_flush) == ("none", None)


def test_of_two_processes_that_which_opened_the_image_last_counts(tmp_path: Path) -> None:
    later = PERF.replace(b'"opened_time":17', b'"opened_time":18').replace(b'"wr_bytes":73220096', b'"wr_bytes":5')
    for first, second in ((PERF, later), (later, PERF)):
        with (
            serving(tmp_path / "a.asok", ANSWERS | {"perf dump": first}),
            serving(tmp_path / "b.asok", ANSWERS | {"perf dump": second}),
        ):
            (client,) = read_rbd_clients([f"{tmp_path}/*.asok"], Roots.under(tmp_path)).clients
        assert client.octets["write"] == 5
        for path in tmp_path.glob("*.asok"):
            path.unlink()


def test_one_that_hangs_and_one_that_ended_spoil_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "ended.asok", {}):
        pass
    with (
        serving(tmp_path / "a.asok", ANSWERS),
        serving(tmp_path / "hangs.asok", ANSWERS, silent=True),
        serving(tmp_path / "strange.asok", ANSWERS | {"help": b"[]"}),
    ):
        reading = read_rbd_clients([f"{tmp_path}/*.asok"], Roots.under(tmp_path), timeout_s=1.0)
    assert [client.image for client in reading.clients] == ["disk-1"]
    assert reading.unread == ((f"{tmp_path}/hangs.asok", "unreadable"), (f"{tmp_path}/strange.asok", "malformed"))


def test_images_that_the_kernel_has_mapped(tmp_path: Path) -> None:
    """Written from Documentation/ABI/testing/sysfs-bus-rbd: no kernel with rbd was at hand."""
    for device, files in {
        "0": {"pool": "vms\n", "pool_ns": "\n", "name": "disk-2\n", "features": "0x000000000000003d\n"},
        "1": {"pool": "vms\n", "pool_ns": "tenant\n", "name": "disk-3\n"},
        "2": {"pool": "vms\n"},
    }.items():
        folder = tmp_path / "sys/bus/rbd/devices" / device
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)
    assert read_rbd_clients([], Roots.under(tmp_path)) == RbdClientsReading(
        (
            RbdClient("vms", "disk-2", "krbd", features="layering,exclusive-lock,object-map,fast-diff,deep-flatten"),
            RbdClient("vms", "tenant/disk-3", "krbd"),
        ),
        (("rbd2", "malformed"),),
    )


def test_a_host_without_images(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no RBD image in use here"):
        read_rbd_clients([f"{tmp_path}/*.asok"], Roots.under(tmp_path))


def test_names_with_dashes_and_namespaces() -> None:
    assert parse_images(b'{"rbd cache flush a-b/ns/c-d": "", "rbd cache flush": "", "perf dump": ""}', source="x") == (
        ("a-b", "ns/c-d"),
    )
    dump = b'{"librbd-1f-a-b-c-d": {"wr_bytes": 3}, "librbd-2e-a-b-c": {"wr_bytes": 4}, "librbd-2e-a-b-c-d-snap": {}}'
    counters = parse_counters(dump, "a-b", "ns/c-d", source="x")
    assert counters is not None
    assert counters.wr_bytes == 3
    assert parse_counters(dump, "a", "d", source="x") is None


def test_what_ceph_does_not_say_is_refused() -> None:
    for text in ("61", "0x", "0xg"):
        with pytest.raises(ParseError, match="not a number in base 16"):
            parse_features(text, source="x")
    with pytest.raises(ParseError, match="not in the format"):
        parse_counters(b'{"librbd-1-a-b": {"wr_bytes": -1}}', "a", "b", source="x")


def test_samples() -> None:
    client = RbdClient(
        "vms", "disk-1", "librbd", "writeback", until_flush=False,
        operations={"write": LongRunAverage(4, 0.5)}, octets={"write": 4096},
    )  # fmt: skip
    image = ("vms", "disk-1")
    assert list(metrics.samples(RbdClientsReading((client, RbdClient("vms", "m", "krbd", features="layering"))))) == [
        (metrics.INFO, (*image, "librbd", "writeback", "false", ""), 1),
        (metrics.OPERATIONS, (*image, "write"), 4),
        (metrics.SECONDS, (*image, "write"), 0.5),
        (metrics.BYTES, (*image, "write"), 4096),
        (metrics.INFO, ("vms", "m", "krbd", "none", "", "layering"), 1),
    ]
