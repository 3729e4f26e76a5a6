"""``plumbline baseline advise``: on recorded hosts, and what it refuses to write."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from plumbline import cli
from plumbline.config.model import load
from plumbline.config.workloads import load_catalogue

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


def test_a_judge_that_the_user_chose_stays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mine = tmp_path / "plumbline.yaml"
    mine.write_text("# mine\nbaseline: {judge: {hdd: infn-2025}}\nprobes: []\n")
    mine.chmod(0o640)
    flags = ("--config.file", str(mine), "--profile", "unnoba-2020", "--write", str(mine))
    code, out, err = advise(capsys, tmp_path, *flags, host="ceph-cephadm-node")
    assert (code, err) == (0, "")
    assert out.endswith(f"written to {mine}; the old one is {mine}.bak\n")
    config = load(mine, load_catalogue())
    assert config.baseline.judge == {"hdd": "infn-2025"}
    assert [each.name for each in config.probes] == ["documented-raw-randread-4k-qd1-j8"]
    assert mine.read_text().startswith("# mine\nbaseline: {judge: {hdd: infn-2025}}\n")
    assert stat.S_IMODE(mine.stat().st_mode) == 0o640


def test_another_existing_file_is_never_touched(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("probes: []\n")
    code, out, err = advise(capsys, tmp_path, "--write", str(other), host="ceph-cephadm-node")
    assert (code, out, other.read_text()) == (1, "", "probes: []\n")
    assert err == (
        f"plumbline: --write = {str(other)!r}: exists and is not the configuration that was looked at; name it with"
        " --config.file, or another file\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="another group takes root")
def test_a_file_that_its_group_alone_may_read_is_not_taken_from_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = tmp_path / "plumbline.yaml"
    mine.write_text("probes: []\n")
    os.chown(mine, 0, 12345)
    mine.chmod(0o640)
    flags = ("--config.file", str(mine), "--write", str(mine))
    code, _, err = advise(capsys, tmp_path, *flags, host="ceph-cephadm-node")
    assert code == 1
    assert "only its group may read it" in err
    mine.chmod(0o644)
    assert advise(capsys, tmp_path, *flags, host="ceph-cephadm-node")[0] == 0


def test_what_cannot_be_extended_stays_as_it_was(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mine = tmp_path / "plumbline.yaml"
    mine.write_text("probes: [{type: canary, name: c},]\n")
    code, out, err = advise(
        capsys, tmp_path, "--config.file", str(mine), "--write", str(mine), host="ceph-cephadm-node"
    )
    assert code == 1
    assert "add the printed lines by hand" in err
    assert "judge: {hdd: unnoba-2020}" in out
    assert mine.read_text() == "probes: [{type: canary, name: c},]\n"
    assert [path.name for path in tmp_path.iterdir()] == ["plumbline.yaml"]


def test_an_unknown_document_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = advise(capsys, tmp_path, "--profile", "unnoba")
    assert code == 1
    assert "no such documented profile; available: fujitsu-2013" in err
