"""A Ceph that cephadm has bootstrapped on one host, with OSDs on loop devices and its own monitoring.

Ceph's image is of the packages of the Debian that has the release, with cephadm's script and module; nothing is pulled.
The host stays Debian 12 for each: a later one's systemd wants control groups of version 2.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .daemon import eventually
from .loops import Loops
from .page_commands import ROOT
from .podman import Podman
from .systemd_host import ADDRESS, IMAGES, Host, systemd_host

CEPH, SUITE = os.environ.get("PLUMBLINE_CEPH", "16:bookworm").split(":")
"""Its release, by make's ``CEPH=18``, and the Debian that has it."""
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
BOOTSTRAP = """
podman run --rm --network=none --entrypoint cat {image} /usr/sbin/cephadm > /usr/sbin/cephadm
chmod 755 /usr/sbin/cephadm
ln -s python3 /usr/bin/python3.14
cephadm --image {image} bootstrap --mon-ip {address} --config /root/first.conf --skip-pull --skip-dashboard \\
    --skip-monitoring-stack --skip-firewalld --allow-overwrite --single-host-defaults
"""
"""By the release's own script, which runs with another Python than the one that it asks for."""


def ceph_image(podman: Podman, release: str, suite: str) -> str:
    """The name of the image of a release, of the packages of the Debian that has it."""
    name = f"localhost/ceph:{release}"
    podman.build([
        f"--target=ceph-{release}", f"--build-arg=BASE={podman.base(suite)}", "-t", name,
        f"--volume={ROOT}/requirements:/requirements:ro", str(IMAGES),
    ])  # fmt: skip
    return name


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
    image = ceph_image(podman, CEPH, SUITE)
    for target in MONITORING:
        stage = "no-grafana" if target == "grafana" else target
        podman.build([f"--target={stage}", "-t", f"localhost/{target}:debian", str(IMAGES)])
    loops = Loops(folder)
    try:
        # before the host starts: a device that comes later is none of its own
        disks = tuple(f"/dev/{loops.sparse(GIB)}" for _ in range(OSDS))
        with systemd_host(podman, "stor01") as host:
            host.write("/root/first.conf", CONFIGURATION)
            host.run(BOOTSTRAP.format(image=image, address=ADDRESS), timeout_s=1200)
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
