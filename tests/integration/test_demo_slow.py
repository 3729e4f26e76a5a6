"""The whole way, for real: a throttled disk, the alert pending, firing, delivered by Alertmanager, and resolved."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.programs import need

ROOT = Path(__file__).parents[2]
ALERT = "PlumblineCanaryLatencyExtreme"


@pytest.mark.integration
@pytest.mark.needs_root
@pytest.mark.timeout(900)
def test_a_slowed_disk_becomes_an_alert_that_arrives_and_resolves(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root: no cgroup to throttle in")
    for program in ("prometheus", "prometheus-alertmanager"):
        need(program)

    done = subprocess.run(
        [sys.executable, "-m", "deploy.demo", "--slow", "--exit", "--storage", tmp_path / "storage"],
        cwd=ROOT, env=dict(os.environ, TMPDIR=str(tmp_path)), capture_output=True, text=True, timeout=840, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    told = re.sub(r"(?m)^ *\d+ s  ", "", done.stdout)
    milestones = [
        "throttle ON",
        f"{ALERT}: inactive → pending",
        f"{ALERT}: pending → firing",
        "throttle OFF",
        f"{ALERT}: firing → inactive",
        f"{ALERT} resolved",
    ]
    places = [told.find(milestone) for milestone in milestones]
    assert -1 not in places, told
    assert places == sorted(places), told
    assert f"{ALERT} firing" in told
    # nothing left behind: neither files nor cgroups
    assert [path.name for path in tmp_path.iterdir()] == ["storage"]
    assert not list(Path("/sys/fs/cgroup").glob("**/plumbline-demo-*"))
