"""One OSD of a real cluster made slow: rules that judge three OSDs within minutes, who watches them, clients' load, a
slow device."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from plumbline.config.model import CephConfig

from .ceph_client import CephClient
from .ceph_cluster import CephCluster
from .daemon import Daemon
from .programs import need
from .prometheus import Prometheus, prometheus
from .rules import rendered
from .throttling import below, throttled

SITE = """{ _config+:: {
  paces+: { compared: '5s', drawn: '5s', remembered: '5s', daily: '5s' },
  ceph+: { window: '1m' },
  disk+: { window: '1m' },
  osd+: { minimumOsds: 3 },
  canary+: {
    shortWindow: '30s', meanLongWindow: '2m', fastWindow: '30s', interval: '5s', slackSeconds: 2,
    minimumOperations: { short: 5, long: 5, fast: 3 }, recoveryWindow: '10s', recoveryLongWindow: '10s',
  },
  alerts+: {
    PlumblineCanaryLatencyExtreme+: { ratio: 3, page+: { 'for': '10s', span: '60s' } },
    PlumblineCanaryLatencyHigh+: { span: '90s', capSpan: '60s', keepFiringFor: '10s' },
    PlumblineCanaryReplicaSlow+: { keepFiringFor: '20s' },
    PlumblineOsdSlowDisk+: { 'for': '5s', keepFiringFor: '20s' },
    PlumblineOsdLimited+: { 'for': '5s', keepFiringFor: '20s' },
    PlumblineOsdQueueing+: { 'for': '5s', keepFiringFor: '20s' },
    PlumblineOsdHeartbeatSlow+: { 'for': '5s', keepFiringFor: '20s' },
  },
} }"""
"""The same rules over a shorter window, for a cluster of three. Over 40 s late messages made a second OSD a suspect.
The daemon asks OSDs every 15 s: without one's answer three have no median, and alerts last over that, as the shipped.
The baseline is measured on a machine that does other things, so a canary is extremely slow sooner."""
PACE = 60
"""Writes a second of the clients, over all OSDs."""


def image(ceph: CephCluster, pool: str) -> None:
    """A pool over all OSDs, and in it an image of the same name for :func:`load`."""
    ceph.add_pool(pool, pg_num=32)
    ceph.run("rbd", "create", "--size=128M", "--object-size=1M", f"{pool}/{pool}")


def asking(ceph: CephCluster, user: CephConfig) -> dict[str, Any]:
    """``ceph`` in the configuration of a daemon that asks these OSDs and is this user."""
    sockets = f"{ceph.folder}/run/*-osd.*.asok"
    return {"admin_sockets": [sockets], "conf": user.conf, "keyring": user.keyring, "timeout": "20s"}


def judging(
    folder: Path, ceph: CephCluster, daemon: Daemon, site: str, *, alertmanager: str = ""
) -> AbstractContextManager[Prometheus]:
    """A Prometheus with the rules of this site, which scrapes the daemon and the cluster's only manager."""
    (port,) = ceph.managers.values()
    return prometheus(
        folder,
        target=daemon.url.removeprefix("http://"),
        interval_s=5,
        rules=rendered(folder, site),
        alertmanager=alertmanager,
        others={"ceph": f"127.0.0.1:{port}"},
    )


def verdicts(server: Prometheus) -> set[tuple[str, str]]:
    """(OSD, verdict)."""
    found = server.query("plumbline:osd_suspect:info")
    return {(labels["ceph_daemon"], labels["verdict"]) for labels, _ in found}


def homes(ceph: CephCluster, var: Path, osds: Iterable[int]) -> None:
    """Below ``var`` the folders where a package's OSDs live, which say whose device is which."""
    home = var / "lib" / "ceph" / "osd"
    home.mkdir(parents=True)
    for number in osds:
        (home / f"ceph-{number}").symlink_to(ceph.folder / "osd" / str(number))


@contextlib.contextmanager
def load(ceph: CephClient, image: str, *options: str) -> Iterator[None]:
    """Fio on an image until the end of the block."""
    argv = [need("fio"), "--name=load", "--ioengine=rbd", "--clientname=admin", f"--pool={image}", f"--rbdname={image}"]
    argv += ["--bs=4k", "--time_based", "--runtime=3600", *options]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ceph.environment) as process:
        try:
            yield
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
        finally:
            process.terminate()
            process.wait(60)


def slow_device(ceph: CephCluster, osd: str, disk: str, writes_per_s: int) -> AbstractContextManager[object]:
    """Writes of ``osd`` to what its loop device ``disk`` lies on: below its own device, so that device is slow."""
    image = Path(f"/sys/block/{disk}/loop/backing_file").read_text().strip()
    return throttled(below(Path(image)), [ceph.pid(osd)], write_iops_device=writes_per_s)
