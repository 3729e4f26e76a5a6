"""A Ceph that cephadm bootstraps in the guest, on control groups of version 2, and ours beside it as deploy/cephadm's
page says: what the daemon sees of an OSD that runs in a container of its own.

The guest has no Ceph: its commands are those of the image. Emulated, the bootstrap takes 20 minutes.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import yaml

from lab import product
from lab.guest import Guest, GuestError
from lab.rows.container import process, rights
from lab.table import Group, NotShown, Row, Seen
from support import cephadm_page, container_page
from support.cephadm_cluster import BOOTSTRAP, CONFIGURATION, GIB, ceph_image
from support.podman import Podman, podman_with_image
from support.scraped import Sample

_RELEASE = {"trixie": "18", "forky": "20"}
_STEP_S = 3600.0
_PLACED_WITHIN_S = 1800.0
_SEEN_WITHIN_S = 900.0
_ADDRESS = "10.0.2.15"
_IMAGES, _OSD = "IMAGES01", "OSD00001"
_IOPS = 300
# one host and one OSD: every pool has one copy
_FIRST = f"""\
{CONFIGURATION}[global]
osd_pool_default_size = 1
osd_pool_default_min_size = 1
mon_allow_pool_size_one = true
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "/var/lib/containers/storage"
runroot = "/run/containers/storage"
[storage.options]
additionalimagestores = ["/images"]
"""
_TOOL = """\
#!/bin/sh
exec podman run --rm --interactive --network=host --volume=/etc/ceph:/etc/ceph --volume=/root:/root --workdir=/root \\
  --entrypoint={tool} {image} "$@"
"""
# cephadm wants a host whose clock somebody keeps; this one's is the emulator's
_CLOCK = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n"


def prepare(guest: Guest) -> None:
    """Healthy with one OSD on a disk of its own; the page's daemon is placed, and sees the OSD's process."""
    image = _given_images(guest)
    _written(guest, "/etc/containers/storage.conf", _STORAGE)
    _written(guest, "/etc/systemd/system/chrony.service", _CLOCK)
    _written(guest, "/root/first.conf", _FIRST)
    for tool in ("ceph", "rbd"):
        _written(guest, f"/usr/local/bin/{tool}", _TOOL.format(tool=tool, image=image))
    guest.run(
        "chmod 755 /usr/local/bin/*; systemctl daemon-reload; systemctl enable --now chrony; systemctl stop plumbline"
    )
    guest.run(f"set -e; mkdir -p /etc/ceph; {BOOTSTRAP.format(image=image, address=_ADDRESS)}", timeout_s=_STEP_S)
    disk = _added_disk(guest, _OSD, GIB << 30)
    made = f"ceph orch daemon add osd $(hostname):/dev/{disk} raw"
    # a manager that has just begun makes none, and ends with 0
    asked = guest.until(
        lambda: guest.run(made, check=False, timeout_s=_STEP_S), lambda said: "Created" in said, within_s=_STEP_S
    )
    if not guest.until(lambda: _up(guest), bool, within_s=_STEP_S):
        raise GuestError(f"no OSD is up: {asked.strip()}")
    guest.run(f"set -e; cd /root; {cephadm_page.PAGE.below('1. User, pools, key').script()}", timeout_s=_STEP_S)
    spec = cephadm_page.uncommented(cephadm_page.with_processes(cephadm_page.GIVEN))
    _written(guest, f"/root/{cephadm_page.SPEC}", yaml.safe_dump(spec, sort_keys=False))
    (argv,) = cephadm_page.PAGE.below("2. The daemon").commands("ceph orch apply")
    guest.run(f"cd /root; {shlex.join(argv)}", timeout_s=_STEP_S)
    if not guest.until(lambda: _container(guest), bool, within_s=_PLACED_WITHIN_S):
        raise GuestError("the orchestrator has placed no daemon of ours")
    product.ready(guest)


def _up(guest: Guest) -> int:
    return int(json.loads(guest.run("ceph osd stat --format json", timeout_s=_STEP_S))["num_up_osds"])


def _written(guest: Guest, path: str, text: str) -> None:
    guest.run(f"mkdir -p $(dirname {path}); printf %s {shlex.quote(text)} >{path}")


def _given_images(guest: Guest) -> str:
    """The guest's podman has Ceph's image and ours, on a disk with a store that this machine has filled: to load an
    archive takes an emulated processor minutes. The name of Ceph's."""
    release = _RELEASE.get(guest.suite)
    if release is None or shutil.which("podman") is None:
        raise NotShown(f"no image of Ceph for {guest.suite}: Debian 13 and 14 have one, and podman builds it here")
    try:
        with tempfile.TemporaryDirectory(dir=guest.folder) as folder, podman_with_image(Path(folder)) as podman:
            ceph = ceph_image(podman, release, guest.suite)
            podman.run("tag", container_page.image(), cephadm_page.IMAGE)
            _store(podman, (ceph, cephadm_page.IMAGE), Path(folder), guest.folder / f"{_IMAGES}.raw")
    except (AssertionError, RuntimeError, subprocess.SubprocessError) as error:
        raise NotShown(f"the images: {error}") from None
    disk = _added_disk(guest, _IMAGES)
    guest.run(f"mkdir -p /images; mount /dev/{disk} /images")
    return ceph


def _store(podman: Podman, images: tuple[str, ...], folder: Path, disk: Path) -> None:
    """A disk with a store that has these images."""
    archive, store = folder / "images.tar", folder / "store"
    podman.run("save", "--multi-image-archive", "--output", str(archive), *images)
    podman.run("--root", str(store), "--runroot", str(folder / "run"), "load", "--quiet", "--input", str(archive))
    archive.unlink()
    try:
        subprocess.run(["mkfs.ext4", "-q", "-d", str(store), str(disk), "8G"], check=True, capture_output=True)
    finally:
        subprocess.run(["umount", str(store / "overlay")], check=False, capture_output=True)


def _added_disk(guest: Guest, serial: str, size: int = 0) -> str:
    """Plugged in while the guest runs; the kernel's name. ``size`` in bytes makes an empty file first."""
    file = guest.folder / f"{serial}.raw"
    if size:
        with file.open("wb") as stream:
            stream.truncate(size)
    inside = f"/lab/{guest.folder.name}/{file.name}"
    guest.qmp("blockdev-add", **{"driver": "raw", "node-name": serial, "file": {"driver": "file", "filename": inside}})
    number = {_IMAGES: 8, _OSD: 9}[serial]
    guest.qmp(
        "device_add", driver="scsi-hd", id=serial, drive=serial, bus="lun1.0", serial=serial, **{"scsi-id": number}
    )

    def found() -> str:
        try:
            return guest.disk(serial)
        except GuestError:
            return ""

    return guest.until(found, bool, within_s=120)


def _container(guest: Guest) -> str:
    """Ours, once it runs."""
    return guest.run("podman ps --quiet --filter name=container-plumbline").strip()


def _settled(guest: Guest, name: str, label: str, wanted: set[str]) -> set[str]:
    """The label's values in the series of this name, once they are those wanted."""

    def look() -> set[str]:
        try:
            return guest.scrape().labels(name, label) - {"canary"}  # the one of the host's disk
        except GuestError:
            return set()

    return guest.until(look, lambda found: found == wanted, within_s=_SEEN_WITHIN_S)


def _osds(guest: Guest) -> set[str]:
    return {f"osd.{number}" for number in json.loads(guest.run("ceph osd ls --format json", timeout_s=_STEP_S))}


def daemon(guest: Guest) -> Seen:
    """Its user and capabilities by the kernel, and what its collectors say."""
    figure = {**rights(guest, process(guest, _container(guest))), "failed": product.failed(guest.scrape())}
    return Seen({"user": "167", "capabilities": 0, "failed": []}, figure)


def seen(name: str, guest: Guest) -> Seen:
    """Which OSDs have a series of this name, and which the cluster has."""
    wanted = _osds(guest)
    return Seen(wanted, _settled(guest, name, "ceph_daemon", wanted))


def canary(guest: Guest) -> Seen:
    """Which OSDs the canary in RADOS judges."""
    wanted = {f"objects/{osd}" for osd in _osds(guest)}
    return Seen(wanted, _settled(guest, "plumbline_canary_latency_seconds_count", "probe", wanted))


def _of_groups(series: list[Sample], unit: str, *, value: bool = True) -> str:
    """OSD, device, operation and figure of each, and whose group it is."""
    return ", ".join(
        " ".join([
            *(each.labels[word] for word in ("ceph_daemon", "device", "operation") if word in each.labels),
            *([f"{each.value:.0f}"] if value else []),
            "its unit" if each.labels["cgroup"] == unit else each.labels["cgroup"],
        ])
        for each in series
    )  # fmt: skip


def limits(guest: Guest) -> Seen:
    """A limit on writes and a quota that systemd sets on the OSD's unit, whose group the container's lies in: by the
    kernel's files of the group that has them."""
    fsid = guest.run("ls /var/lib/ceph").strip()
    unit = f"ceph-{fsid}@osd.0.service"
    group = guest.run(f"systemctl show --property ControlGroup --value {unit}").strip()
    guest.run(f"systemctl set-property --runtime {unit} 'IOWriteIOPSMax=/dev/vda {_IOPS}' CPUQuota=150%")
    limited = f"wiops={_IOPS}" in guest.value(f"/sys/fs/cgroup{group}/io.max")
    quota = guest.value(f"/sys/fs/cgroup{group}/cpu.max").split()[0] != "max"
    (osd,) = guest.run("podman ps --quiet --filter name=-osd-").split()
    below = guest.value(f"/proc/{process(guest, osd)}/cgroup").removeprefix("0::").startswith(f"{group}/")
    truth = {"io": f"osd.0 vda write {_IOPS} its unit", "quota": "osd.0 its unit"}

    def look() -> dict[str, str]:
        page = guest.scrape()
        return {
            "io": _of_groups(page.series("plumbline_osd_cgroup_limit_iops"), group),
            "quota": _of_groups(page.series("plumbline_osd_cgroup_cpu_periods_total"), group, value=False),
        }

    figure = guest.until(look, lambda found: found == truth, within_s=_SEEN_WITHIN_S)
    return Seen(truth if limited and quota and below else None, figure)


def removed(guest: Guest) -> Seen:
    """Containers and directories of the cluster after cephadm removes it; the package's service is back."""
    guest.run("cephadm rm-cluster --force --fsid $(ls /var/lib/ceph)", timeout_s=_STEP_S)
    left = guest.run("podman ps --quiet; ls /var/lib/ceph").split()
    guest.run("systemctl start plumbline")
    product.ready(guest)
    return Seen({"left": "none"}, {"left": ", ".join(left) or "none"})


GROUP = Group(
    "cephadm",
    (
        Row("cephadm", "the page's daemon", daemon),
        Row("cephadm", "OSDs of the map", partial(seen, "plumbline_ceph_osd_in")),
        Row("cephadm", "OSDs' admin sockets", partial(seen, "plumbline_osd_socket_up")),
        Row("cephadm", "limits of an OSD's unit", limits),
        Row("cephadm", "the canary in RADOS", canary),
        Row("cephadm", "removed", removed),
    ),
    prepare,
    long=True,
)
