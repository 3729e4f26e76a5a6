"""Ceph gone for a day and back, compressed: the monitor hangs, then dies, while everything asks at short intervals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.ceph_cluster import CephCluster, missing
from support.ceph_probes import set_up
from support.daemon import Daemon, eventually, running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.skipif(bool(missing()), reason="Ceph is not installed"),
]
CANARY = "rados-canary"


def rss_kib(daemon: Daemon) -> int:
    text = Path(f"/proc/{daemon.pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:")))


def footprint(daemon: Daemon) -> tuple[int, int, int]:
    """Processes below it, descriptors, threads."""
    proc = f"/proc/{daemon.pid}"
    return len(daemon.children()), len(os.listdir(f"{proc}/fd")), len(os.listdir(f"{proc}/task"))  # noqa: PTH208


def succeeds(daemon: Daemon) -> bool:
    return daemon.metrics().get("plumbline_probe_success", probe=CANARY) == 1


@pytest.mark.parametrize("gone", ["frozen", "killed"])
def test_the_monitor_goes_away_and_comes_back(ceph: CephCluster, tmp_path: Path, gone: str) -> None:
    with set_up(ceph, timeout_s=1.0) as access:
        config = {
            "probes": [{"type": "rados-canary", "name": CANARY, "rate": 5}],
            "ceph": {
                "conf": access.conf, "user": access.user, "keyring": access.keyring, "pool": access.pool,
                "map": "always", "timeout": "1s",
            },
        }  # fmt: skip
        with running(tmp_path, config=config) as daemon:
            eventually(lambda: succeeds(daemon), within_s=120)
            before, memory = footprint(daemon), rss_kib(daemon)
            if gone == "frozen":
                ceph.freeze("mon.a")
                for number in range(3):
                    ceph.freeze(f"osd.{number}")
            else:
                ceph.kill_mon()
                for number in range(3):
                    ceph.freeze(f"osd.{number}")
            seen = []
            # questions every second or so, each with its timeout and its pause: a day has no more than some thousand
            eventually(lambda: not succeeds(daemon), within_s=120)
            for _ in range(40):
                assert daemon.get("/metrics").status == 200
                seen.append(footprint(daemon))
                eventually(lambda: True, every_s=0.1)
            assert max(children for children, _, _ in seen) <= before[0] + 2
            assert max(files for _, files, _ in seen) <= before[1] + 16
            assert max(threads for _, _, threads in seen) <= before[2] + 6
            assert rss_kib(daemon) - memory < 8 << 10
            ceph.heal()
            eventually(lambda: succeeds(daemon), within_s=120)
            assert footprint(daemon)[0] <= before[0] + 1
            assert "Traceback" not in daemon.said()
