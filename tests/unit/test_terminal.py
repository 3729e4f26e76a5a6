"""Terminal output, as text a person or a pipe gets."""

from __future__ import annotations

import io

from rich.console import Console

from plumbline import terminal
from plumbline.baseline.describe import show, summaries
from plumbline.baseline.profiles import load_profiles
from plumbline.baseline.site import parse_site
from plumbline.workloads import load_catalogue

CATALOGUE = load_catalogue()
PROFILES = load_profiles(CATALOGUE)


def piped(act):
    stream = io.StringIO()
    act(terminal.make_console(stream))
    return stream.getvalue()


def on_a_terminal(act, width=100):
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
    act(console)
    return stream.getvalue()


def test_list_into_a_pipe():
    text = piped(lambda console: terminal.print_list(console, summaries(PROFILES, [], {"ssd": "unnoba-2020"})))
    assert text == (
        "Baseline     Source      Entries                            Judges here  What it is\n"
        "unnoba-2020  documented  77 ssd, 71 hdd, 5 testec, 19 more  ssd          "
        "UNNOBA, Argentina, 2020: a Ceph 15.2 cluster on SATA disks\n"
    )


def test_figures_that_are_no_row_and_transfers_sent_again():
    text = piped(lambda console: terminal.print_show(console, show("unnoba-2020", PROFILES, [])))
    assert "Figures that are no row\n  Figura 102 and Figura 103, line 4331: rbd bench --io-type=readwrite" in text
    assert "119 segments sent again in 20.00 s" in text


def test_a_profile_that_judges_nowhere_says_so():
    assert "  shown only  " in piped(lambda console: terminal.print_list(console, summaries(PROFILES, [], {})))


def test_show_into_a_pipe_keeps_a_row_on_its_line():
    lines = piped(lambda console: terminal.print_show(console, show("unnoba-2020", PROFILES, []))).splitlines()
    (row,) = [line for line in lines if line.startswith("randwrite-4m-qd4-j4") and "398.16" in line]
    assert " ".join(row.split()).startswith(
        "randwrite-4m-qd4-j4 write mean 398.16 ms = 0.39816 s 11 IOPS 44.90 MiB/s = 47081062 B/s "
        "IOPS × latency makes 4.4 of 16 in flight ["
    )
    assert row.endswith("never judges")
    assert any(line.startswith("write-4k-qd64-j1") and "28K IOPS = 28000 1/s" in line for line in lines)
    heading = "Figura 55, random, escritura: hdd, MB4000GVYZK. fio --ioengine=libaio"
    assert any(line.startswith(heading) for line in lines)
    assert any("not used: iops 1 IOPS" in line for line in lines)
    assert any(line.startswith("  Figura 60: HDD: IOPS of random writes") for line in lines)
    assert any(line.startswith("  capacity of the HDD: ") and "4TiB (10.1, line 4947)" in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_every_note_is_explained_once():
    text = piped(lambda console: terminal.print_show(console, show("unnoba-2020", PROFILES, [], device_class="ssd")))
    explained = [line.split("]")[0] + "]" for line in text.splitlines() if line.startswith("[")]
    assert explained == [f"[{number}]" for number in range(1, len(explained) + 1)]
    assert all(text.count(mark) >= 2 for mark in explained)


def test_on_a_terminal_it_fits_the_width():
    text = on_a_terminal(lambda console: terminal.print_show(console, show("unnoba-2020", PROFILES, [])))
    assert max(map(len, text.splitlines())) <= 100
    assert "398.16 ms" in text


def test_names_from_files_cannot_steer_the_terminal():
    site = parse_site(
        'schema_version: 1\nname: "a\\e[31mb"\n'
        'entries: [{workload: randread-4k-qd1-j1, device_class: "[bold]", iops: 1}]\n',
        where="f.yaml",
        host="h",
        catalogue=CATALOGUE,
    )
    for text in (
        piped(lambda console: terminal.print_list(console, summaries({}, [site], {}))),
        on_a_terminal(lambda console: terminal.print_list(console, summaries({}, [site], {}))),
    ):
        assert "\x1b" not in text
        assert "a\ufffd[31mb" in text
        assert "1 [bold]" in text
