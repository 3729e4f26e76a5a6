"""A Ceph 16.2 that cephadm has bootstrapped on one host, with OSDs on loop devices and its own monitoring.

Ceph's image is of Debian's packages, which have cephadm's module; nothing is pulled. Debian 13's and unstable's Ceph
want a systemd that wants control groups of version 2.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .daemon import eventually
from .loops import Loops
from .podman import Podman
from .systemd_host import ADDRESS, IMAGES, Host, systemd_host

IMAGE = "localhost/ceph:16.2.15"
MONITORING = ("prometheus", "alertmanager", "node-exporter", "grafana")
OSDS = 3
GIB = 6
"""ceph-volume calls a disk of less than 5 GiB too small."""
WITHIN_S = 300.0
CONFIGURATION = """\
[mgr]
mgr/cephadm/use_repo_digest = false
[osd]
osd_memory_target = 939524096
"""
"""With the first, no deployment asks a registry for the image's digest."""
BOOTSTRAP = f"""
cephadm --image {IMAGE} bootstrap --mon-ip {ADDRESS} --config /root/first.conf --skip-pull --skip-dashboard \\
    --skip-monitoring-stack --skip-firewalld --allow-overwrite --single-host-defaults
"""


@dataclass(frozen=True, slots=True)
class Cephadm:
    """Running; ``fsid`` is the cluster's, ``disks`` the devices of its OSDs."""

    host: Host
    fsid: str
    disks: tuple[str, ...]

    def daemons(self, kind: str) -> dict[str, dict[str, Any]]:
        """What ``ceph orch ps`` says of the daemons of a type, by name."""
        done = self.host.call(f"ceph orch ps --daemon-type {kind} --format json")
        try:
            found = json.loads(done.stdout)
        except ValueError:  # "No daemons reported", or a manager that begins
            return {}
        return {f"{each['daemon_type']}.{each['daemon_id']}": each for each in found}

    def made(self, disk: str) -> bool:
        """Ask for an OSD; a manager that has just begun makes none and ends with 0."""
        return "Created osd(s)" in self.host.call(f"ceph orch daemon add osd {self.host.name}:{disk} raw").stdout

    def up(self) -> int:
        """How many OSDs are."""
        return int(json.loads(self.host.run("ceph osd stat --format json"))["num_up_osds"])

    def running(self, kind: str, count: int = 1, within_s: float = WITHIN_S) -> None:
        """Wait until so many daemons of a type run."""
        eventually(
            lambda: [each["status_desc"] for each in self.daemons(kind).values()],
            until=lambda seen: seen == ["running"] * count, within_s=within_s, every_s=3,
        )  # fmt: skip


@contextlib.contextmanager
def cephadm_cluster(podman: Podman, folder: Path) -> Iterator[Cephadm]:
    """Healthy but for what one host can't have; ``folder`` is on a disk."""
    for target in ("ceph", *MONITORING):
        name = IMAGE if target == "ceph" else f"localhost/{target}:debian"
        stage = "no-grafana" if target == "grafana" else target
        podman.build([f"--target={stage}", "-t", name, str(IMAGES)])
    loops = Loops(folder)
    try:
        # before the host starts: a device that comes later is none of its own
        disks = tuple(f"/dev/{loops.sparse(GIB)}" for _ in range(OSDS))
        with systemd_host(podman, "stor01") as host:
            host.write("/root/first.conf", CONFIGURATION)
            host.run(BOOTSTRAP, timeout_s=1200)
            cluster = Cephadm(host, host.run("ceph fsid").strip(), disks)
            for count, disk in enumerate(disks, start=1):
                eventually(lambda n=count, at=disk: cluster.made(at) or cluster.up() == n, within_s=WITHIN_S, every_s=3)  # type: ignore[misc]
            cluster.running("osd", OSDS)
            for service in MONITORING:
                option = f"mgr/cephadm/container_image_{service.replace('-', '_')}"
                host.run(f"ceph config set mgr {option} localhost/{service}:debian; ceph orch apply {service}")
            yield cluster
    finally:
        loops.close()
