"""A real Ceph whose osd.1 has a slow disk, and what Plumbline shows of it.

A cluster of three OSDs with clients, accepted by ``plumbline baseline record``; then osd.1's device lets through
:data:`WRITES_PER_S`. The rules are the shipped ones over shorter windows, for three OSDs (``support/slow_osd.py``).
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.ceph_cluster import CephCluster, ceph_cluster
from support.ceph_files import OSDS
from support.ceph_probes import set_up
from support.daemon import COMMAND, eventually, running, write_config
from support.loops import Loops
from support.notifications import Inbox, notified
from support.prometheus import Prometheus, prometheus
from support.rules import rendered
from support.slow_osd import PACE, SITE, homes, load, slow_device

GUILTY, NUMBER = "osd.1", 1
WRITES_PER_S = 40
"""Of the slow device: a write takes half a second, whatever else keeps this machine busy."""
INSTANCE = "node-1:10047"
CLIENTS = ("--rw=randwrite", "--iodepth=8")
SOON = "{ _config+:: { alerts+: { PlumblineCanaryLatencyExtreme+: { page+: { span: '1m' } } } } }"
"""So that the page about one host alone is sent within the time that a picture has."""
ACCEPTED_AT = 3 * PACE
"""Writes a second while the baseline is recorded: what else this machine does later shall look like no fault."""
CALM_S = 240.0
"""How long all is well before: so that the pictures show both."""
SLOW_S = 150.0
"""How long it is slow, from when the suspect is named."""
WITHIN_S = 300.0


@dataclass(frozen=True, slots=True)
class Slow:
    """``prometheus`` and ``status``: URLs; ``minutes`` since Prometheus was started; ``inbox``: what was sent."""

    prometheus: str
    status: str
    minutes: float
    inbox: Inbox


@contextlib.contextmanager
def slow_osd() -> Iterator[Slow]:
    """Such a cluster, some minutes after its disk became slow."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plumbline-pictures-", dir="/var/tmp")))
        loops = Loops(folder)
        stack.callback(loops.close)
        disks = {number: loops.sparse(gib=4) for number in range(OSDS)}
        cluster = stack.enter_context(ceph_cluster(options={"rbd_cache": "false"}, disks=disks))
        cluster.add_pool("images", pg_num=32, application="rbd")
        cluster.run("rbd", "create", "--size=128M", "--object-size=1M", "images/images")
        ceph = stack.enter_context(set_up(cluster, timeout_s=20.0))
        # each write of a canary waits for each OSD
        cluster.ceph("osd", "pool", "set", ceph.pool, "size", str(OSDS))
        cluster.wait_clean()
        homes(cluster, folder / "var", disks)
        users = {"conf": ceph.conf, "keyring": ceph.keyring, "timeout": "20s"}
        config = _configuration(cluster, users)
        _say("recording the baseline")
        with load(cluster, "images", *CLIENTS, f"--rate_iops={ACCEPTED_AT}"):
            _record(folder, config)
        stack.enter_context(load(cluster, "images", *CLIENTS, f"--rate_iops={PACE}"))
        daemon = stack.enter_context(running(folder, "--path.var", folder / "var", config=config))
        began = time.monotonic()
        (port,) = cluster.managers.values()
        (folder / "alertmanager").mkdir()
        manager, inbox = stack.enter_context(notified(folder / "alertmanager", wait="30s"))
        server = stack.enter_context(
            prometheus(
                folder,
                target=daemon.url.removeprefix("http://"),
                interval_s=5,
                rules=rendered(folder, f"{SITE} + {SOON}"),
                others={"ceph": f"127.0.0.1:{port}"},
                alertmanager=manager.url.removeprefix("http://"),
                instance=INSTANCE,
            )
        )
        _say("waiting until every OSD is compared")
        eventually(lambda: len(server.query('plumbline:osd_class:ratio{figure="commit"}')) == OSDS, within_s=WITHIN_S)
        time.sleep(CALM_S)
        _say(f"slowing {GUILTY}")
        stack.enter_context(slow_device(cluster, GUILTY, disks[NUMBER], WRITES_PER_S))
        eventually(lambda: _suspects(server) == {(GUILTY, "disk")} and _told(server), within_s=WITHIN_S, every_s=2.0)
        _say(f"{GUILTY} is named")
        time.sleep(SLOW_S)
        assert (GUILTY, "disk") in _suspects(server), _suspects(server)
        yield Slow(server.url, daemon.url, (time.monotonic() - began) / 60, inbox)


def _configuration(cluster: CephCluster, ceph: dict[str, Any]) -> dict[str, Any]:
    """No probe of the machine's own disk or loopback: what else the machine does would show there, and be blamed."""
    often = {"interval": "60s", "timeout": "20s", "max_load_per_cpu": 1000, "max_device_busy": 1.0}
    return {
        "ceph": {**ceph, "map": "always", "admin_sockets": [f"{cluster.folder}/run/*-osd.*.asok"]},
        "devices": {"disk_exclude": "ram.*|zram.*"},
        "probes": [
            {"type": "rados-canary", "name": "objects", "osds": ["all"], "rate": 3},
            {"type": "rbd-fio", "name": "image", "runtime": "5s", "image_size": "16MiB", **often},
        ],
    }


def _record(folder: Path, config: dict[str, Any]) -> None:
    """As on the day of acceptance, in short: the note about it is in the file."""
    argv = [*COMMAND, "baseline", "record", "--force", "--runs", "5", "--run-duration", "6s"]
    argv += ["--storage.path", str(folder / "state"), "--config.file", str(write_config(folder, config))]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _suspects(server: Prometheus) -> set[tuple[str, str]]:
    found = server.query('plumbline:osd_suspect:info{verdict!="peer"}')
    return {(labels["ceph_daemon"], labels["verdict"]) for labels, _ in found}


def _told(server: Prometheus) -> bool:
    return bool(server.query(f'ALERTS{{alertname="PlumblineOsdSlowDisk",alertstate="firing",ceph_daemon="{GUILTY}"}}'))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
