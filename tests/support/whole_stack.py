"""All there is, together: a real Ceph with clients, the daemon with every probe, a real Prometheus with all rules.

Beside them recorded hosts (``played_host.py``), as another cluster in the same Prometheus: hardware that test machines
haven't. For the tests that look at every panel, and by hand for drawing previews, until Ctrl-C::

    PYTHONPATH=tests:. python -m support.whole_stack
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.scheduler import splay

from .ceph_cluster import CephCluster, ceph_cluster
from .ceph_probes import set_up
from .daemon import Daemon, eventually, run, running, write_config
from .iperf3 import iperf3_server
from .played_host import played_hosts
from .ports import free_port
from .prometheus import CLUSTER, Prometheus, prometheus
from .rules import rendered

ROOT = Path(__file__).parents[2]
RECORDED = "recorded"
"""The recorded hosts' ``cluster``."""
HOSTS = {
    "storage1:10047": "storage_node",
    "storage2:10047": "storage_node",
    "array1:10047": "array_node",
    "fabric1:10047": "fabric_node",
    "pcie1:10047": "pcie_node",
    "virtual1:10047": "virtual_machine",
}
SCRAPE_S = 5
"""Also how often rules are evaluated: all of them at once cost a second of a small machine."""
IMAGES = "images"
"""A pool with an image that a client works on."""
SITE = """\
schema_version: 1
entries:
- {workload: randwrite-4k-qd1-j1, device_class: ssd, rate_iops: 50, iops: 50, throughput: 200 KiB/s,
   latency: {p50: 1ms, p99: 2ms, mean: 1ms}}
- {workload: rados-ops-4k, operation: read, device_class: hdd, latency: {p50: 1ms, p99: 5ms}, tolerance_ratio: 1.5}
- {workload: rados-ops-4k, operation: write, device_class: hdd, latency: {p50: 20us, p99: 100us}, tolerance_ratio: 1.5}
- {workload: rbd-randwrite-4k-qd1-j1, device_class: hdd, latency: {p50: 10ms, p99: 100ms}, iops: 100,
   throughput: 400 KiB/s, tolerance_ratio: 1.5}
- {workload: rados-write-4m-t16, device_class: hdd, throughput: 50 MiB/s, latency: {mean: 1s}}
- {workload: osd-bench-4k, device_class: hdd, iops: 500, throughput: 2 MiB/s}
- {workload: icmp-rtt-56, device_class: 10g, latency: {p50: 163us, p99: 300us}}
- {workload: tcp-throughput-s1, operation: transmit, device_class: 10g, throughput: 9.4 Gb/s}
"""
"""Baselines of what is not recorded first. RADOS' writes are held against a better cluster: something must be wrong."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What runs; ``instance`` is the daemon's."""

    daemon: Daemon
    prometheus: Prometheus
    instance: str
    ceph: CephCluster


@contextlib.contextmanager
def whole_stack(folder: Path, cluster: CephCluster) -> Iterator[Stack]:
    """Started, with the disk canary's baseline recorded; ``folder`` is on a disk."""
    with contextlib.ExitStack() as stack:
        ceph = stack.enter_context(set_up(cluster, timeout_s=20.0, osd_bench=True))
        cluster.add_pool(IMAGES, application="rbd")
        stack.callback(cluster.remove_pool, IMAGES)
        stack.enter_context(_client(cluster))
        users = {
            "conf": ceph.conf,
            "keyring": ceph.keyring,
            "osd_bench_user": ceph.osd_bench_user,
            "osd_bench_keyring": ceph.osd_bench_keyring,
        }
        port = free_port()
        stack.enter_context(iperf3_server("127.0.0.1", port))
        config = _configuration(folder, cluster, f"127.0.0.1:{port}", users | {"timeout": "20s"})
        recorded = run(
            "baseline", "record", "--probe", "canary", "--force", "--runs", "3", "--run-duration", "1s",
            "--storage.path", folder / "state", "--config.file", write_config(folder, config),
        )  # fmt: skip
        assert recorded.returncode == 0, recorded.stderr
        daemon = stack.enter_context(running(folder, config=config, prefix=_not_as_advised(folder)))
        target = daemon.url.removeprefix("http://")
        hosts = stack.enter_context(played_hosts(HOSTS))
        managers = [f"127.0.0.1:{port}" for port in cluster.managers.values()]
        scrapes: list[dict[str, Any]] = [
            {"job_name": "ceph", "honor_labels": True, "static_configs": [_static(managers, cluster=CLUSTER)]},
            {
                "job_name": "recorded",
                "static_configs": [
                    _static([at], cluster=RECORDED, instance=name, job="plumbline") for name, at in hosts.items()
                ],
            },
        ]
        # as a site has it: so the rules find that this is the host its OSDs name
        instance = f"{os.uname().nodename}:10047"
        server = stack.enter_context(
            prometheus(
                folder,
                target=target,
                interval_s=SCRAPE_S,
                rules=_rules(folder),
                scrapes=scrapes,
                instance=instance,
                full=True,
            )
        )
        yield Stack(daemon, server, instance, cluster)


def _not_as_advised(folder: Path) -> tuple[str, ...]:
    """A command that shows another one a setting against our advice: the machine may have none that is."""
    setting = folder / "tcp_sack"
    setting.write_text("0\n")
    shown = f'mount --bind {setting} /proc/sys/net/ipv4/tcp_sack && exec "$@"'
    return ("unshare", "--mount", "sh", "-euc", shown, "sh")


def _rules(folder: Path) -> Path:
    """The shipped ones, but nobody waits minutes for what is read seldom because fleets are large."""
    every = f"'{SCRAPE_S}s'"
    paces = ", ".join(f"{name}: {every}" for name in ("compared", "drawn", "remembered", "daily"))
    return rendered(folder, f"{{ _config+:: {{ paces+: {{ {paces} }} }} }}")


def _static(targets: list[str], **labels: str) -> dict[str, Any]:
    return {"targets": targets, "labels": labels}


def _configuration(folder: Path, cluster: CephCluster, server: str, ceph: dict[str, Any]) -> dict[str, Any]:
    """Every kind of probe, one after the other within the first minute; only one heavy one runs at a time."""
    site = folder / "site.yaml"
    site.write_text(SITE)
    shared = {"interval": "60s", "timeout": "20s", "max_load_per_cpu": 1000, "max_device_busy": 1.0}
    network = shared | {"device_class": "10g"}
    kinds: list[dict[str, Any]] = [
        {"type": "fio", "device_class": "ssd", "workload": "randwrite-4k-qd1-j1", "rate_iops": 50, "file_size": "4MiB",
         "runtime": "1s", **shared},
        {"type": "rados-bench", "runtime": "1s", "max_objects": 16, **shared},
        {"type": "rbd-fio", "runtime": "1s", "image_size": "16MiB", **shared},
        {"type": "rbd-bench", "total": "1MiB", "image_size": "16MiB", **shared},
        {"type": "osd-bench", "osds": ["osd.1"], "workload": "osd-bench-4k", **shared},
        {"type": "iperf3", "runtime": "1s", "targets": [server], **network},
        {"type": "rtt", "packets": 20, "gap": "10ms", "targets": ["127.0.0.1"], **network},
        {"type": "path-mtu", "targets": ["127.0.0.1"], **network},
    ]  # fmt: skip
    sockets = [f"{cluster.folder}/run/*-osd.*.asok"]
    return {
        "baseline": {"files": [str(site)]},
        "ceph": {**ceph, "map": "always", "admin_sockets": sockets, "client_pools": [*range(1, 10)]},
        "probes": [
            {"type": "canary", "name": "canary", "device_class": "ssd", "rate": 40, "file_size": "4MiB"},
            *({"name": _in_turn(kind, 60, 6 * turn), **kind} for turn, kind in enumerate(kinds)),
            {"type": "rados-canary", "name": "objects", "osds": ["all"], "rate": 6},
        ],
    }


def _in_turn(kind: Mapping[str, Any], interval_s: int, wanted_s: int) -> str:
    """A name by which the scheduler starts this probe ``wanted_s`` seconds into its interval.

    What has a target is a job of its own, named after it: else its port would say when it runs, perhaps always beside
    another heavy one, and so never.
    """
    host = os.uname().nodename
    targets = kind.get("targets", kind.get("osds", ()))
    names = (f"{kind['type']}-{number}" for number in itertools.count())
    return next(
        name for name in names if wanted_s <= splay(host, "/".join((name, *targets)), interval_s) < wanted_s + 3
    )


@contextlib.contextmanager
def _client(cluster: CephCluster) -> Iterator[None]:
    """Somebody who reads and writes a few blocks of an image, all the time."""
    cluster.run("rbd", "create", "--size", "16M", f"{IMAGES}/busy")
    cluster.ceph("config", "set", "mgr", "mgr/prometheus/rbd_stats_pools", IMAGES)
    argv = [
        "fio", "--name=busy", "--ioengine=rbd", "--clientname=admin", f"--pool={IMAGES}", "--rbdname=busy",
        "--rw=randrw", "--bs=4k", "--iodepth=1", "--rate_iops=15,15", "--time_based", "--runtime=86400", "--size=16m",
    ]  # fmt: skip
    with (
        (cluster.folder / "log" / "client").open("wb") as log,
        subprocess.Popen(argv, stdout=log, stderr=log, env=cluster.environment) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def main() -> None:
    """Until Ctrl-C or SIGTERM; says where Prometheus and the daemon are."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with (
        tempfile.TemporaryDirectory(prefix="plumbline-stack-", dir="/var/tmp") as folder,
        ceph_cluster() as cluster,
        whole_stack(Path(folder), cluster) as stack,
    ):
        eventually(lambda: stack.prometheus.query("plumbline:degradation:ratio"), within_s=120)
        print(json.dumps({"prometheus": stack.prometheus.url, "daemon": stack.daemon.url}), flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
