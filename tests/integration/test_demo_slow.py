"""The whole way, for real: a throttled disk, the alert pending, firing, delivered by Alertmanager, and resolved."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from deploy.demo.api import ready

from support.programs import need

ROOT = Path(__file__).parents[2]
ALERT = "PlumblineCanaryLatencyExtreme"


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.needs_root
@pytest.mark.timeout(900)
def test_a_slowed_disk_becomes_an_alert_that_arrives_and_resolves(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root: no cgroup to throttle in")
    for program in ("prometheus", "prometheus-alertmanager"):
        need(program)

    with subprocess.Popen(
        [sys.executable, "-m", "deploy.demo", "--slow", "--exit", "--quick", "--storage", tmp_path / "storage"],
        cwd=ROOT, env=dict(os.environ, TMPDIR=str(tmp_path)), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as demo:  # fmt: skip
        assert demo.stdout
        told, answers = "", {}
        for line in demo.stdout:
            told += line
            answers |= {address: ready(address) for address in re.findall(r"http://127\S+", line)}

    assert demo.returncode == 0, told[-6000:]
    assert len(answers) > 5, told
    assert all(answers.values()), answers
    # no Ceph is here: the message names the host's own disk, and asks nobody for Ceph
    assert re.search(rf"{ALERT} firing: A canary is many times slower than its baseline: \w+ of .+, disk \w+", told)
    milestones = [
        "throttle ON",
        f"{ALERT}: inactive → pending",
        f"{ALERT}: pending → firing",
        "throttle OFF",
        f"{ALERT}: firing → inactive",
    ]
    places = [told.find(milestone) for milestone in milestones]
    assert -1 not in places, told
    assert places == sorted(places), told
    assert f"{ALERT} firing" in told
    # of two operations one recovers first: its message may come before the last one's alert ends
    assert told.find(f"{ALERT} resolved") > told.find("throttle OFF"), told
    # nothing left behind: neither files nor cgroups
    assert [path.name for path in tmp_path.iterdir()] == ["storage"]
    assert not list(Path("/sys/fs/cgroup").glob(f"**/plumbline-demo-{demo.pid}"))
