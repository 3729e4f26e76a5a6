"""What the documented profiles hold beside rows: names that must exist, and nothing that is invented."""

from __future__ import annotations

import pytest

from plumbline.baseline import profiles
from plumbline.checks.run import CHECKS
from plumbline.errors import BaselineError
from support.documented import PROFILES

TEXT = """\
schema_version: 1
name: x
title: t
document: {title: d, year: null, language: en, text: d.txt}
hardware: {h: {device_class: ssd, description: one}}
series: []
methods: [{where: here, line: 1, tool: fio, command: fio, hardware: h, workloads: [write-4k-qd1-j1]}]
pictures: [{where: there, line: 2, shows: bars, workloads: [rbd-write-4k-qd1-j1]}]
"""


@pytest.mark.parametrize("name", list(PROFILES))
def test_settings_name_checks_that_exist(name):
    ids = {check.id for check in CHECKS}
    for setting in PROFILES[name].profile.settings:
        assert not setting.check or setting.check in ids
        assert setting.says


@pytest.mark.parametrize("name", list(PROFILES))
def test_extents_go_forwards(name):
    profile = PROFILES[name].profile
    for part in (profile.pictures, profile.left_out, profile.settings, profile.methods):
        assert all(not one.last_line or one.last_line > one.line for one in part), name


@pytest.mark.parametrize("name", ["unam-nvme", "pwr-2017"])
def test_documents_of_pictures_have_no_row(name):
    """They print no result: a row would be invented."""
    assert PROFILES[name].rows == ()
    assert PROFILES[name].profile.pictures
    assert PROFILES[name].profile.methods


def test_pictures_of_the_report_are_all_there():
    """Figuras 7 to 14, A1 to A20, B1 to B8, C1 to C8: counted in the document."""
    where = [picture.where for picture in PROFILES["unam-nvme"].profile.pictures]
    expected = [f"Figura {number}" for number in range(7, 15)]
    expected += [f"Figura {letter}{n}" for letter, last in (("A", 20), ("B", 8), ("C", 8)) for n in range(1, last + 1)]
    assert where == expected


def test_what_the_slow_drive_had_set():
    """Typed from the document a second time: lspci of nvme0 and nvme1."""
    settings = {(one.setting, one.line): one.printed for one in PROFILES["unam-nvme"].profile.settings}
    assert {key: settings[key] for key in settings if key[0] != "slot"} == {
        ("LTR", 1052): "LTR+",
        ("LTR", 1062): "LTR-",
        ("Max snoop latency", 1053): "71680ns",
        ("Max no snoop latency", 1055): "71680ns",
        ("Max snoop latency", 1063): "0ns",
        ("Max no snoop latency", 1065): "0ns",
        ("Completion Timeout", 1052): "50us to 50ms",
    }


def test_the_data_sheet_is_shown_and_never_judges():
    """Typed from the document a second time: 180k/75k IOPS, 2/1 GB/s, <65us."""
    rows = {row.entry.workload: row for row in PROFILES["fujitsu-2013"].rows}
    figures = {name: (row.entry.iops, row.entry.throughput, row.entry.latency) for name, row in rows.items()}
    assert figures == {
        "randread-4k-qd32-j4": (180_000, None, {}),
        "randwrite-4k-qd32-j4": (75_000, None, {}),
        "read-128k-qd32-j4": (None, 2e9, {}),
        "write-128k-qd32-j4": (None, 1e9, {}),
        "read-512b-qd1-j1": (None, None, {"max": 65e-6}),
        "write-4k-qd1-j1": (None, None, {"max": 65e-6}),
    }
    assert all(row.entry.doubt and row.entry.device_class == "intel-910" for row in rows.values())


def test_workloads_that_are_named_are_known_with_their_layer():
    assert profiles.parse_profile(TEXT, "x.yaml").layers == {
        "write-4k-qd1-j1": "disk",
        "rbd-write-4k-qd1-j1": "rbd",
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[write-4k", "[wrote-4k", "methods[0].workloads = 'wrote-4k-qd1-j1': no such workload in the "),
        ("[rbd-write", "[rbd-wrote", "pictures[0].workloads = 'rbd-wrote-4k-qd1-j1': no such workload"),
        ("hardware: h,", "hardware: g,", "methods[0].hardware = 'g': the profile has no such hardware"),
        ("tool: fio", "tol: fio", "methods[0]"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old, new, said):
    assert old in TEXT
    with pytest.raises(BaselineError) as caught:
        profiles.parse_profile(TEXT.replace(old, new), "x.yaml")
    assert str(caught.value).startswith(f"x.yaml: {said}")
