"""``plumbline baseline advise``: on recorded hosts, and the lines that it prints."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from plumbline import cli
from plumbline.config.model import load

FIXTURES = Path(__file__).parents[2] / "fixtures"


def roots_of(host: str) -> list[str]:
    trees = {"procfs": "proc", "sysfs": "sys", "devfs": "dev", "udev": "run/udev", "etc": "etc", "var": "var"}
    return [part for flag, tree in trees.items() for part in (f"--path.{flag}", str(FIXTURES / host / tree))]


def advise(capsys: pytest.CaptureFixture[str], folder: Path, *flags: str, host: str = "") -> tuple[int, str, str]:
    code = cli.main(
        ["baseline", "advise", "--storage.path", str(folder / "state"), *flags, *roots_of(host)[: 12 if host else 0]]
    )
    out, err = capsys.readouterr()
    return code, out, err


def test_a_host_of_ten_osds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = advise(capsys, tmp_path, "--json", host="ceph-cephadm-node")
    said: dict[str, Any] = json.loads(out)
    assert code == 0
    found = {(each["subject"]["via"], each["profile"]): each for each in said["advice"]}
    assert found.keys() == {("raw disk", "infn-2025"), ("raw disk", "unnoba-2020"), ("OSD", "unnoba-2020")}
    raw = found["raw disk", "unnoba-2020"]
    assert (raw["comparable"], raw["workload"]) == (True, "randread-4k-qd4-j1")
    assert len(raw["subject"]["names"]) == 10
    # every disk is read by one light probe; a bench of OSDs is shown and not added
    assert [(each["type"], each["devices"]) for each in said["add_probes"]] == [("fio", raw["subject"]["names"])]
    assert [each["type"] for each in said["heavy"]] == ["osd-bench"]
    assert said["add_judge"] == {"hdd": "unnoba-2020"}
    assert any(each.startswith("network: no peer is known") for each in said["not_looked_at"])


def test_the_table_says_why_and_what_to_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = advise(capsys, tmp_path, host="ceph-cephadm-node")
    assert code == 0
    assert "mean 33 ms: not measured yet" in out
    assert "unnoba-2020, hdd: measured on HP 4 TB" in out
    assert "here: ST8000NM0075" in out
    assert "    judge: {hdd: unnoba-2020}" in out
    assert "Reading raw disks takes a right of its own" in out


def test_a_judge_that_the_user_chose_stays_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine, text = tmp_path / "plumbline.yaml", "# mine\nbaseline: {judge: {hdd: infn-2025}}\nprobes: []\n"
    mine.write_text(text)
    flags = ("--config.file", str(mine), "--profile", "unnoba-2020")
    code, out, err = advise(capsys, tmp_path, *flags, host="ceph-cephadm-node")
    assert (code, err, mine.read_text()) == (0, "", text)
    assert "    - {type: fio, name: documented-raw-randread-4k-qd1-j8, " in out
    assert "judge:" not in out
    assert "replaces the default ones" not in out


def test_the_printed_lines_are_a_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = advise(capsys, tmp_path, host="ceph-cephadm-node")
    lines = out.partition("Add to the configuration:\n")[2].partition("A list of probes replaces the default ones")[0]
    mine = tmp_path / "plumbline.yaml"
    mine.write_text(textwrap.dedent(lines))
    config = load(mine)
    assert config.baseline.judge == {"hdd": "unnoba-2020"}
    assert [probe.name for probe in config.probes] == ["documented-raw-randread-4k-qd4-j1"]


def test_an_unknown_document_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = advise(capsys, tmp_path, "--profile", "unnoba")
    assert code == 1
    assert "no such documented profile; available: fujitsu-2013" in err
