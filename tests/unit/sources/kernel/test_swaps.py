from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel.mounts import Swap, parse_swaps, read_swaps

HEADING = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


def test_devices_and_files() -> None:
    text = HEADING + "/dev/dm-1                               partition\t8388604\t\t0\t\t-2\n"
    text += "/swap\\040file                            file\t\t2097148\t\t0\t\t-3\n"
    assert parse_swaps(text) == (Swap("/dev/dm-1", is_file=False), Swap("/swap file", is_file=True))
    assert parse_swaps(HEADING) == parse_swaps("") == ()


def test_a_line_without_a_type() -> None:
    with pytest.raises(ParseError, match=r"^/proc/swaps:2: not a swap area: '/dev/sda3'"):
        parse_swaps(HEADING + "/dev/sda3\n")


def test_a_kernel_without_swap(tmp_path: Path) -> None:
    assert read_swaps(Roots.under(tmp_path)) == ()
