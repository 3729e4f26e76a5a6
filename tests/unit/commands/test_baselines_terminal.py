"""``plumbline baseline list`` and ``show`` as a person or a pipe gets them."""

from __future__ import annotations

import io
import re

import msgspec
import pytest
from rich.console import Console

from plumbline.baseline.describe import show, summaries
from plumbline.baseline.site import parse_site
from plumbline.commands import baselines
from plumbline.core.console import make_console
from support.documented import PROFILES

FUJITSU = {"fujitsu-2013": PROFILES["fujitsu-2013"]}


def piped(act, data, **narrow):
    stream = io.StringIO()
    act(make_console(stream), data if not isinstance(data, str) else show(data, PROFILES, [], **narrow))
    return stream.getvalue()


def on_a_terminal(act, data, width, **narrow):
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=True,
        width=width,
        color_system=None,
        highlight=False,
        markup=False,
        _environ={"TERM": "xterm"},  # whatever this run's own terminal is
    )
    act(console, data if not isinstance(data, str) else show(data, PROFILES, [], **narrow))
    return stream.getvalue()


def squeezed(text):
    return " ".join(text.split())


def test_list_into_a_pipe():
    text = piped(baselines.print_list, summaries(FUJITSU, [], {"intel-910": "fujitsu-2013"}))
    assert text == (
        "Baseline      Source      Rows         Judges here  What it is"
        "                                                                   Besides\n"
        "fujitsu-2013  documented  6 intel-910  intel-910    "
        "Fujitsu, 2013: Ceph 0.61 on PCIe SSDs, five kinds of link from 1 to 56 Gb/s  "
        "2 budgets, 12 settings, 2 methods, 16 pictures, 2 left out, 5 contradictions, 6 rows in doubt\n"
    )


def test_list_on_a_narrow_terminal_is_a_paragraph_each():
    lines = on_a_terminal(baselines.print_list, summaries(PROFILES, [], {"ssd": "unnoba-2020"}), 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert "fujitsu-2013 (documented): shown only" in lines
    assert "unnoba-2020 (documented): judges ssd" in lines
    assert "  rows: none" in lines  # pictures only


def test_a_profile_that_judges_nowhere_says_so():
    assert "  shown only  " in piped(baselines.print_list, summaries(PROFILES, [], {}))


def test_a_recorded_file_says_from_when_it_is():
    site = parse_site(
        "schema_version: 1\nsource: measured\nhost: storage1\nrecorded: 2025-11-03T10:22:41Z\n"
        "entries: [{workload: randread-4k-qd1-j1, device_class: ssd, iops: 1}]\n",
        where="f.yaml",
        host="storage1",
    )
    assert "recorded 2025-11-03T10:22:41+00:00" in piped(baselines.print_list, summaries({}, [site], {}))


def test_show_into_a_pipe_keeps_a_row_on_its_line():
    lines = piped(baselines.print_show, "unnoba-2020").splitlines()
    (row,) = [line for line in lines if line.startswith("randwrite-4m-qd4-j4") and "398.16" in line]
    assert squeezed(row).startswith(
        "randwrite-4m-qd4-j4 write mean 398.16 ms 0.39816 11 44.90 MiB/s 47,081,062 "
        "IOPS × latency makes 4.4 of 16 in flight never judges ["
    )
    assert any(line.startswith("write-4k-qd64-j1") and "28K = 28,000" in line for line in lines)
    heading = lines.index("Figura 55, random, escritura: hdd, MB4000GVYZK")
    assert lines[heading + 1].startswith("  fio --ioengine=libaio")
    assert any("not used: iops 1 IOPS" in line for line in lines)
    assert any(line.startswith("  Figura 60, lines 2857 to 2871: HDD: IOPS of random writes") for line in lines)
    assert any(line.startswith("  capacity of the HDD: ") and "“4TiB” (10.1, line 4947)" in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_figures_that_are_no_row_and_transfers_sent_again():
    text = piped(baselines.print_show, "unnoba-2020")
    assert "Figures that are not a row\n" in text
    assert "  Figura 123, lines 4695 to 4697: network of the clients: 919, 9360 and 8560 Mb/s" in text
    assert "119 segments retransmitted in 20.00 s" in text


def test_mib_and_mb_are_told_apart():
    """The base unit beside the figure shows what a unit is: 478 MB/s and 458 MiB/s are the other way round in bytes."""
    text = piped(baselines.print_show, "unnoba-2020", device_class="ssd", layer="disk")
    rates = dict(re.findall(r"(\d[\d.]* Mi?B/s) +(\d[\d,]*)", text))
    assert rates["478 MB/s"] == "478,000,000"
    assert rates["458.00 MiB/s"] == "480,247,808"


def test_every_note_is_explained_once():
    text = piped(baselines.print_show, "unnoba-2020", device_class="ssd")
    explained = re.findall(r"^  (\[\d+\]) ", text, re.MULTILINE)
    assert explained == [f"[{number}]" for number in range(1, len(explained) + 1)]
    assert len(explained) > 5
    assert all(text.count(mark) >= 2 for mark in explained)


def test_what_all_rows_of_a_table_share_stands_under_its_heading():
    lines = piped(baselines.print_show, "unnoba-2020", workload="write-*-qd4-j4", device_class="hdd").splitlines()
    assert lines.count("  4 processes with 4 operations in flight each; 1 GiB of data in total") == 1


@pytest.mark.parametrize("name", list(PROFILES))
@pytest.mark.parametrize("width", [80, 140])
def test_on_a_terminal_it_fits_and_nothing_is_cut(name, width):
    text = on_a_terminal(baselines.print_show, name, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    words = set(text.split())
    for row in PROFILES[name].rows:
        assert row.entry.workload in words
        for figure in (row.point.iops, row.point.throughput):
            assert figure is None or figure.text.removesuffix(" IOPS") in squeezed(text)


def test_base_units_on_a_narrow_and_on_a_wide_terminal():
    narrow = on_a_terminal(baselines.print_show, "unnoba-2020", 80, workload="write-16k-qd4-j4")
    assert "8.84 ms " in narrow
    assert "= 0.00884 s" in narrow
    assert "= 29,569,843 B/s" in narrow
    wide = on_a_terminal(baselines.print_show, "unnoba-2020", 140, workload="write-16k-qd4-j4")
    assert "write-16k-qd4-j4 write mean 8.84 ms 0.00884 1808 28.20 MiB/s 29,569,843" in squeezed(wide)


def test_a_figure_printed_in_its_base_unit_is_not_said_twice():
    text = on_a_terminal(baselines.print_show, "unnoba-2020", 80, workload="rados-write-4m-t16")
    assert "mean 0.161603 s" in text
    assert "= 0.161603 s" not in text


def test_a_row_in_doubt_says_so_where_it_stands():
    for width in (80, 140):
        text = on_a_terminal(baselines.print_show, "unnoba-2020", width, workload="randwrite-4m-qd4-j4")
        assert "IOPS × latency makes 4.4 of 16" in text
        assert "never judges" in squeezed(text)


def test_budgets_with_figures_as_printed_and_shares():
    narrow = squeezed(on_a_terminal(baselines.print_show, "fujitsu-2013", 80))
    assert "1 GbE 2565 us 2 × 182 us 14% 54 us 2% 5 × 26 us 5% 2017 us 79%" in narrow
    wide = squeezed(on_a_terminal(baselines.print_show, "fujitsu-2013", 140))
    assert "56 Gb IPoIB 1821 us 0.001821 2 × 37 us 4% 64 us 4% 5 × 14 us 4% 1613 us 89%" in wide
    assert wide.count("Shares are of the total") == 1
    assert wide.count("with two passes of the network") == 1  # both budgets have this note


def test_a_budget_that_does_not_add_up_says_by_how_much():
    shown = show("fujitsu-2013", PROFILES, [])
    link = msgspec.structs.replace(shown.budgets[0].links[0], over_seconds=-0.0001, breaks="a digit was lost")
    budget = msgspec.structs.replace(shown.budgets[0], links=(link,))
    text = piped(baselines.print_show, msgspec.structs.replace(shown, budgets=(budget,)))
    assert "  1 GbE: the stages are 0.0001 s below the total: a digit was lost\n" in text


def test_settings_say_which_check_judges_them():
    text = piped(baselines.print_show, "fujitsu-2013")
    assert (
        "  rq_affinity = 1 for the Intel 910's disks in Linux (slide 19, line 616). disk.rq-affinity: agrees: 1 or 2\n"
        in text
    )


def test_a_profile_of_pictures_says_how_they_were_measured():
    text = piped(baselines.print_show, "unam-nvme")
    assert (
        "How it was measured\n  Figura 7, 8; 5.1, line 1139: dd: dd if=/dev/zero of=/dev/nvmeXn1 bs=512K count=1000"
        in text
    )
    assert "  Figura C1, lines 1411 to 1423: fio: run time in ms of writes, RAID 0 and ZFS, 1 process (" in text
    assert "write-512k-qd1-j1, fs-write-512k-qd1-j1)\n" in text


@pytest.mark.parametrize("width", [0, 80, 140])
def test_names_from_files_cannot_steer_the_terminal(width):
    site = parse_site(
        'schema_version: 1\nname: "a\\e[31mb"\n'
        'entries: [{workload: randread-4k-qd1-j1, device_class: "[bold]", iops: 1, note: "c\\e[2Jd"}]\n',
        where="f.yaml",
        host="h",
    )
    pairs = (
        (baselines.print_list, summaries({}, [site], {})),
        (baselines.print_show, show(site.entries[0].profile, {}, [site])),
    )
    for act, data in pairs:
        text = on_a_terminal(act, data, width) if width else piped(act, data)
        assert "\x1b" not in text
        assert "a\\x1b[31mb" in text
        assert "[bold]" in text
