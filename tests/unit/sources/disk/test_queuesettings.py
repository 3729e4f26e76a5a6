"""Queue settings, from texts and from trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.disk.queuesettings import (
    QueueSettings,
    parse_cache,
    parse_scheduler,
    parse_switch,
    parse_throttle,
    parse_zoned,
    read_queue_settings,
)
from support.hosts import tree


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (parse_scheduler, "none [mq-deadline] kyber bfq", "mq-deadline"),
        (parse_scheduler, "[none] mq-deadline kyber bfq", "none"),
        (parse_scheduler, "none", "none"),  # a queue without a choice
        (parse_scheduler, "noop deadline [cfq]", "cfq"),  # Linux 3.8
        (parse_scheduler, "noop anticipatory deadline [cfq]", "cfq"),  # Linux 2.6.32
        (parse_cache, "write back", "write back"),
        (parse_cache, "write through", "write through"),
        (parse_cache, "write back, no read (daft)", "write back"),
        (parse_cache, "none", "write through"),  # sd.c: neither write nor read cache
        (parse_zoned, "none", "none"),
        (parse_zoned, "host-managed", "host-managed"),
        (parse_switch, "0", False),
        (parse_switch, "1", True),
        (parse_throttle, "75000", 75000),
        (parse_throttle, "0", 0),
        (parse_throttle, "-1", None),
    ],
)
def test_texts(parse: Callable[..., Any], text: str, expected: object) -> None:
    assert parse(text, source="test") == expected


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_scheduler, "noop deadline cfq"),
        (parse_scheduler, "[]"),
        (parse_scheduler, ""),
        (parse_cache, "writeback"),
        (parse_cache, "write backwards"),
        (parse_zoned, "yes"),
        (parse_switch, "2"),
        (parse_throttle, "75 ms"),
        (parse_throttle, "--1"),
    ],
)
def test_bad_texts_name_their_file(parse: Callable[..., Any], text: str) -> None:
    with pytest.raises(ParseError, match=r"^/sys/block/sda/queue/x: "):
        parse(text, source="/sys/block/sda/queue/x")


@pytest.fixture
def node(tmp_path: Path) -> dict[str, QueueSettings]:
    reading = read_queue_settings(tree(tmp_path, "disks-storage-node", "disk-queues"))
    assert reading.skipped == ()
    return {each.device: each for each in reading.queues}


def test_a_disk_of_today(node: dict[str, QueueSettings]) -> None:
    assert node["sda"] == QueueSettings(
        device="sda",
        scheduler="bfq",
        write_cache="write back",
        device_cache="write back",
        zoned="none",
        requests=64,
        read_ahead_kib=4096,
        rq_affinity=1,
        nomerges=0,
        add_random=False,
        max_io_kib=1280,
        writeback_throttle_us=2000,
        io_poll=False,
    )


def test_kernel_and_disk_may_differ_about_the_cache(node: dict[str, QueueSettings]) -> None:
    assert (node["sdc"].write_cache, node["sdc"].device_cache) == ("write through", "write back")


def test_a_kernel_of_2013_lacks_half_of_it(node: dict[str, QueueSettings]) -> None:
    assert node["cciss/c0d0"] == QueueSettings(
        device="cciss/c0d0",
        scheduler="cfq",
        requests=128,
        read_ahead_kib=128,
        rq_affinity=0,
        nomerges=0,
        add_random=True,
        max_io_kib=512,
    )


def test_a_multipath_head_has_no_queue_of_its_own(node: dict[str, QueueSettings]) -> None:
    head = node["nvme1n1"]
    assert head.scheduler == "none"
    assert head.rq_affinity is None
    assert head.device_cache is None
    assert "nvme1c1n1" not in node  # a path to it that nobody can open


def test_a_stacked_device_with_an_empty_scheduler_has_none(node: dict[str, QueueSettings]) -> None:
    assert node["dm-0"].scheduler is None
    assert node["md127"].scheduler == "none"


def test_one_unclear_device_is_left_out_and_the_rest_is_there(tmp_path: Path) -> None:
    for device, scheduler in (("sda", "[mq-deadline] none"), ("sdb", "\x1b[31m"), ("sdc", "none")):
        queue = tmp_path / "sys" / "block" / device / "queue"
        queue.mkdir(parents=True)
        (queue / "scheduler").write_text(f"{scheduler}\n")
    (tmp_path / "sys" / "block" / "sdd").mkdir()  # just being unplugged
    reading = read_queue_settings(Roots.under(tmp_path))
    assert [each.device for each in reading.queues] == ["sda", "sdc"]
    assert reading.skipped == (("sdb", "malformed"),)


def test_without_sysfs(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="is sysfs mounted there"):
        read_queue_settings(Roots.under(tmp_path))
