from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.sources.kernel.sysfs import clean, entries, link_text, parse_number, read_bytes, read_number, read_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"INTEL SSDPE2KX020T8                     \n", "INTEL SSDPE2KX020T8"),
        (b"SEAGATE \x00\x00", "SEAGATE"),
        (b"Disk\xff\xfe\x00\x01  Pro \n", "Disk�� Pro"),
        ("Ø-Disk".encode(), "Ø-Disk"),
        (b"a\tb\nc", "a b c"),
        (b"  \n", None),
        (b"\x00\x00", None),
        (b"", None),
    ],
)
def test_clean(data: bytes, text: str | None) -> None:
    assert clean(data) == text


def test_numbers(tmp_path: Path) -> None:
    (tmp_path / "size").write_text("536870912\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "broken").write_text("many\n")
    assert read_number(tmp_path / "size") == 536870912
    assert read_number(tmp_path / "empty") is None
    assert read_number(tmp_path / "absent") is None
    with pytest.raises(ParseError, match=r"broken: not a number: 'many'"):
        read_number(tmp_path / "broken")


@pytest.mark.parametrize("text", ["", "-1", "+1", "1_0", "1.0", "0x1", "٣", "1" * 21])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ParseError):
        parse_number(text, source="x")


def test_absent_and_unreadable_are_none(tmp_path: Path) -> None:
    assert read_bytes(tmp_path / "absent") is None
    assert read_text(tmp_path) is None  # a directory: EISDIR, as sysfs answers EINVAL, EIO or ENODEV
    assert link_text(tmp_path / "absent") is None
    assert link_text(tmp_path) is None
    assert entries(tmp_path / "absent") == ()
