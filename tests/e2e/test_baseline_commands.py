"""``plumbline baseline compare`` and ``report``: the commands as a person runs them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import COMMAND, Daemon, eventually, running, write_config

WORKLOAD = "randread-4k-qd1-j1"
ACCEPTED = """\
schema_version: 1
source: measured
host: another-host
recorded: 2026-10-02T09:15:00Z
fingerprint: {kernel: 2.6.32}
entries:
- {workload: randread-4k-qd1-j1, device_class: ssd, latency: {p50: 100us, p99: 200us}, iops: 10K IOPS,
   tolerance_ratio: 1.25}
- {workload: randwrite-4k-qd1-j1, device_class: ssd, latency: {p50: 50us}}
"""


def plumbline(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """File names are of ``folder``."""
    named = (str(folder / each) if each.endswith((".yaml", ".html")) else each for each in arguments)
    argv = [*COMMAND, "baseline", *named, "--config.file", folder / "plumbline.yaml",
            "--storage.path", folder / "state"]  # fmt: skip
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def accepted(folder: Path) -> Path:
    write_config(folder, {"probes": []})
    path = folder / "accepted.yaml"
    path.write_text(ACCEPTED)
    return path


def test_two_files_are_compared_and_the_exit_code_says_whether_it_got_worse(folder: Path, accepted: Path) -> None:
    same = plumbline(folder, "compare", "accepted.yaml", str(accepted))
    assert (same.returncode, same.stderr) == (0, "")
    assert same.stdout.endswith("0 worse beyond tolerance, 0 better, 2 as accepted\n")

    (folder / "later.yaml").write_text(ACCEPTED.replace("p50: 100us", "p50: 126us"))
    worse = plumbline(folder, "compare", "accepted.yaml", "later.yaml", "--json")
    said = json.loads(worse.stdout)
    assert (worse.returncode, said["exit_code"]) == (1, 1)
    assert [(row["workload"], row["verdict"]) for row in said["rows"]] == [
        (WORKLOAD, "worse"), ("randwrite-4k-qd1-j1", "as accepted"),
    ]  # fmt: skip
    assert said["rows"][0]["figures"][0] == {
        "name": "latency.p50", "a": 0.0001, "b": 0.000126, "ratio": pytest.approx(1.26), "allowed": 1.25,
        "word": "worse",
    }  # fmt: skip
    assert said["environment"] == {"changes": [], "compared": ["kernel"]}


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("nothing",), 2, "plumbline: nothing: no such baseline or file; there are: "),
        (("now",), 3, "plumbline: now: only the second side can be `now`; name what was accepted first"),
        (("accepted.yaml", "--as", "ssd"), 3, "plumbline: --as = 'ssd': expected two device classes, such as ssd=nvme"),
        (("accepted.yaml", "--as", "tape=ssd"), 2, "plumbline: --as = 'tape': accepted has no such device class; "),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_told_in_a_line(
    folder: Path, accepted: Path, arguments: tuple[str, ...], code: int, line: str
) -> None:
    done = plumbline(folder, "compare", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_nothing_in_common_is_no_agreement(folder: Path, accepted: Path) -> None:
    done = plumbline(folder, "compare", "accepted.yaml")
    assert done.returncode == 3
    assert "possible cause, kernel: 2.6.32 → " in done.stdout
    assert done.stdout.endswith("nothing could be compared\n")


@pytest.fixture
def measuring(folder: Path) -> Iterator[Daemon]:
    fio = {
        "type": "fio", "name": "fio-read", "workload": WORKLOAD, "file_size": "1MiB", "device_class": "ssd",
        "runtime": "1s", "timeout": "60s", "interval": "1h", "max_load_per_cpu": 1000, "max_device_busy": 1.0,
    }  # fmt: skip
    canary = {"type": "canary", "name": "canary", "device_class": "ssd"}
    with running(folder, config={"probes": [fio, canary]}) as started:
        yield started


@pytest.mark.long
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_baseline_beside_what_the_daemon_measured_last(folder: Path, measuring: Daemon) -> None:
    eventually(
        lambda: measuring.metrics().get("plumbline_probe_success", probe="fio-read") == 1 or None,
        within_s=400,
    )
    (folder / "slow.yaml").write_text(ACCEPTED.replace("p50: 100us, p99: 200us", "p50: 9s").replace("10K IOPS", "0.01"))
    done = plumbline(folder, "compare", "slow.yaml", "now", "--json")
    said = json.loads(done.stdout)
    (row,) = said["rows"]
    assert (done.returncode, row["verdict"], row["what"], row["workload"]) == (0, "better", "fio-read", WORKLOAD)
    assert 0 <= row["age_s"] < 400
    assert [figure["name"] for figure in row["figures"]] == ["latency.p50", "iops"]
    assert said["b"]["missing"] == [
        "canary: only the daemon has a canary's figures (/metrics, status page);"
        " measure now: plumbline probe run canary"
    ]


def test_a_report_is_a_page_or_markdown(folder: Path, accepted: Path) -> None:
    done = plumbline(folder, "report", "unnoba-2020", "accepted.yaml", "--output", "report.html", "--title", "Rack <7>")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"written to {folder / 'report.html'}\n", "")
    page = (folder / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>\n<html")
    assert "<h1>Rack &lt;7&gt;: accepted performance</h1>" in page
    assert page.count("<svg") > 20
    assert "28.20 MiB/s" in page

    again = plumbline(folder, "report", "unnoba-2020", "--output", "report.html")
    assert (again.returncode, again.stderr) == (
        1, f"plumbline: {folder / 'report.html'}: exists already; --force replaces it and keeps the old one as .bak\n",
    )  # fmt: skip
    assert (folder / "report.html").read_text() == page

    text = plumbline(folder, "report", "accepted.yaml", "--format", "markdown")
    assert text.returncode == 0
    assert text.stdout.startswith("# another-host: accepted performance\n")
    assert re.search(
        r"^\| ssd \| randread-4k-qd1-j1 \| read \| .* \| p50 100us = 0.0001 s; ", text.stdout, re.MULTILINE
    )


def test_a_report_of_nothing_says_what_to_do(folder: Path, accepted: Path) -> None:
    neither = plumbline(folder, "report", "accepted.yaml")
    assert (neither.returncode, neither.stderr) == (
        1, "plumbline: report: name an output: --output FILE.html, or --format markdown for the terminal\n",
    )  # fmt: skip
    nothing = plumbline(folder, "report", "--format", "markdown")
    assert nothing.returncode == 1
    assert nothing.stderr.startswith("plumbline: report: nothing was measured here yet; name a baseline, there are")
