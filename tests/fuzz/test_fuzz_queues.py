"""Parsers of queue settings are total, and any disk can be judged."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plumbline.checks.disk import CHECKS, REAL_TRANSPORTS, Disk
from plumbline.checks.model import judge
from plumbline.errors import ParseError
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.queuesettings import (
    QueueSettings,
    parse_cache,
    parse_scheduler,
    parse_switch,
    parse_throttle,
    parse_zoned,
)

PARSERS: dict[Callable[..., Any], Callable[[Any], bool]] = {
    parse_scheduler: lambda value: isinstance(value, str) and value.isprintable() and value != "",
    parse_cache: lambda value: value in ("write back", "write through"),
    parse_zoned: lambda value: value in ("none", "host-aware", "host-managed"),
    parse_switch: lambda value: isinstance(value, bool),
    parse_throttle: lambda value: value is None or value >= 0,
}


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@given(st.text() | st.lists(st.sampled_from(("none", "[bfq]", "[", "]", "write back", ", ", "-", "7"))).map(" ".join))
@example("[[none]]")
@example("²")
def test_a_value_or_one_clear_error(parse: Callable[..., Any], text: str) -> None:
    try:
        value = parse(text, source="test")
    except ParseError:
        return
    assert PARSERS[parse](value)


WORDS = st.text(st.characters(exclude_characters="\0\n", exclude_categories=("Cs", "Zl", "Zp")), max_size=20)
MAYBE = st.none() | st.booleans()
NUMBERS = st.none() | st.integers(0, 2**40)
CACHES = st.none() | st.sampled_from(("write back", "write through"))
QUEUES = st.builds(
    QueueSettings,
    device=st.just(""),
    scheduler=st.none() | st.sampled_from(("none", "bfq", "mq-deadline", "kyber", "noop", "cfq", "deadline", "other")),
    write_cache=CACHES,
    device_cache=CACHES,
    zoned=st.none() | st.sampled_from(("none", "host-aware", "host-managed")),
    requests=NUMBERS,
    read_ahead_kib=NUMBERS,
    rq_affinity=NUMBERS,
    add_random=MAYBE,
)
BLOCKS = st.builds(
    BlockDevice,
    name=WORDS.filter(bool),
    major=st.just(8),
    minor=st.just(0),
    size_bytes=st.just(1 << 40),
    model=st.none() | WORDS | st.just("SSD 910"),
    serial=st.none() | WORDS,
    rotational=MAYBE,
    transport=st.none() | st.sampled_from((*sorted(REAL_TRANSPORTS), "usb", "virtio", "dm")),
    device_class=st.none() | st.sampled_from(("nvme", "ssd", "hdd", "virtual")),
    queue_depth=NUMBERS,
)
DISKS = st.builds(Disk, BLOCKS, QUEUES, st.frozensets(st.sampled_from(("osd.1", "osd.2"))))


@settings(deadline=None)
@given(st.lists(DISKS, max_size=3, unique_by=lambda disk: disk.device))
def test_any_disk_can_be_judged(disks: list[Disk]) -> None:
    found = judge(CHECKS, tuple(disks))
    series = [(each.check, each.subject) for each in found]
    assert len(set(series)) == len(series)
    physical = {disk.device for disk in disks if disk.physical}
    for each in found:
        assert each.subject in physical
        assert each.met == (each.fix is None)
        assert each.actual
        assert each.expected
        if each.fix is not None:
            assert len(shlex.split(each.fix.now)) >= 4  # quotes are balanced, whatever the names
            for line in each.fix.keep.content.splitlines() if each.fix.keep else ():
                assert line.startswith("ACTION==")
                assert line.count('"') % 2 == 0
