"""ZFS pools and cache from the module's statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.disk.zfs import NO_ZFS, Arc, parse_kstat, read_zfs

NODE = Roots.under(Path(__file__).parents[3] / "fixtures" / "arrays-storage-node")


def test_pools_and_cache() -> None:
    reading = read_zfs(NODE)
    assert reading.pools == {"gone": "SUSPENDED", "scratch": "ONLINE", "tank": "DEGRADED"}
    assert reading.arc == Arc(94_822_173, 5_177_827, 33_581_203_120, 67_210_190_848)


def test_a_host_without_zfs() -> None:
    assert read_zfs(Roots.under(Path("/nowhere"))) == NO_ZFS


def test_a_module_before_0_8_has_pools_without_a_state(tmp_path: Path) -> None:
    (tmp_path / "proc/spl/kstat/zfs/tank").mkdir(parents=True)
    assert read_zfs(Roots.under(tmp_path)).pools == {"tank": ""}


def test_a_value_that_may_be_negative_is_left_out() -> None:
    text = "1 1 0x01 2 544 1 2\nname type data\nhits 4 12\nmemory_available_bytes 3 -5\n"
    assert parse_kstat(text, source="s") == {"hits": 12}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "s:2: the second line"),
        ("a\nb\n", "s:2: the second line"),
        ("a\nname type data\nhits 4\n", "s:3: not name, type and data: 'hits 4'"),
        ("a\nname type data\nhits 4 many\n", "s:3: not a number: 'many'"),
    ],
)
def test_malformed(text: str, complaint: str) -> None:
    with pytest.raises(ParseError, match=complaint):
        parse_kstat(text, source="s")
