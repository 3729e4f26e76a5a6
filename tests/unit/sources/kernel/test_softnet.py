"""``/proc/net/softnet_stat`` in the forms it has had."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.softnet import SoftnetCpu, parse_cpu_list, parse_softnet, read_softnet

FIXTURES = Path(__file__).parents[3] / "fixtures"
ZEROS = " 00000000" * 5


def test_a_recent_kernel_from_its_recording() -> None:
    reading = read_softnet(Roots.under(FIXTURES / "net-virtio-guest"))
    assert [cpu.cpu for cpu in reading] == [0, 1]
    assert reading[0].processed > 0
    assert all((cpu.dropped, cpu.backlog_length) == (0, 0) for cpu in reading)


def test_fifteen_columns_name_their_cpu() -> None:
    row = f"0000000f 00000002 00000003{ZEROS} 00000000 00000007 00000008 0000001e 00000005 0000000a 00000014"
    assert parse_softnet(row, source="s") == (SoftnetCpu(5, 15, 2, 3, 30, 10, 20),)


def test_thirteen_columns_of_linux_5_10() -> None:
    row = f"ffffffff 00000000 00000000{ZEROS} 00000000 00000000 00000000 00000009 00000003"
    assert parse_softnet(row, source="s") == (SoftnetCpu(3, 4294967295, 0, 0, 9),)


@pytest.mark.parametrize("columns", [9, 10, 11])
def test_older_rows_are_the_online_cpus_in_order_and_have_no_backlog(columns: int) -> None:
    text = "".join(f"0000000{row}" + " 00000000" * (columns - 1) + "\n" for row in (1, 2, 3))
    expected = (SoftnetCpu(0, 1, 0, 0, None), SoftnetCpu(2, 2, 0, 0, None), SoftnetCpu(3, 3, 0, 0, None))
    assert parse_softnet(text, source="s", online=(0, 2, 3)) == expected
    assert [cpu.cpu for cpu in parse_softnet(text, source="s")] == [0, 1, 2]


def test_columns_of_kernels_to_come_are_passed_over() -> None:
    row = "00000001" + " 00000000" * 12 + " 00000000" * 7
    assert parse_softnet(row, source="s") == (SoftnetCpu(0, 1, 0, 0, 0, 0, 0),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "s: no rows"),
        ("\n", "s:1: 0 columns, at least 9 expected"),
        ("00000001" * 8, "s:1: 1 columns, at least 9 expected"),
        ("00000001" + " 00000000" * 7, "s:1: 8 columns"),
        ("00000001" + " 00000000" * 8 + "\n0000000g" + " 00000000" * 8, "s:2: column 1 is '0000000g', not 32 bits"),
        ("000000001" + " 00000000" * 8, "s:1: column 1 is '000000001'"),
        ("-0000001" + " 00000000" * 8, "column 1 is '-0000001'"),
        (("00000001" + " 00000000" * 12 + "\n") * 2, "s:2: CPU 0 is listed twice"),
    ],
)
def test_malformed_files(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_softnet(text, source="s")


@pytest.mark.parametrize(
    ("text", "cpus"), [("0\n", (0,)), ("0-3\n", (0, 1, 2, 3)), ("0,2-3,8\n", (0, 2, 3, 8)), ("4-3", ())]
)
def test_cpu_lists(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text, source="online") == cpus


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1,,2", "1-2-3", "1234567"])
def test_malformed_cpu_lists(text: str) -> None:
    with pytest.raises(ParseError, match=r"online:1: .* is not a CPU or a range"):
        parse_cpu_list(text, source="online")


def test_an_old_kernel_with_a_cpu_off(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    (roots.proc / "net").mkdir(parents=True)
    (roots.proc / "net" / "softnet_stat").write_text(("00000001" + " 00000000" * 10 + "\n") * 2)
    assert [cpu.cpu for cpu in read_softnet(roots)] == [0, 1], "without the list, the rows are all there is"
    online = roots.sys / "devices" / "system" / "cpu" / "online"
    online.parent.mkdir(parents=True)
    online.write_text("0,2\n")
    assert [cpu.cpu for cpu in read_softnet(roots)] == [0, 2]


def test_no_such_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"softnet_stat: No such file or directory"):
        read_softnet(Roots.under(tmp_path))


def test_bytes_that_are_not_text_are_malformed_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "proc" / "net" / "softnet_stat"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe\x00" * 9)
    with pytest.raises(ParseError, match="softnet_stat:1"):
        read_softnet(Roots.under(tmp_path))
