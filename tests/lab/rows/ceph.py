"""What a kernel mounts or maps of a Ceph that runs beside the guest and falls silent: an image, a file system."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from lab.guest import Guest, GuestError
from lab.rows import disks
from lab.table import Group, NotShown, Row, Seen
from support.ceph_client import CephError
from support.ceph_cluster import CephCluster, ceph_cluster, missing
from support.ceph_filesystem import NAME, metadata_server

_POOL, _IMAGE = "rbd", "lab"
READS = 50


@contextmanager
def _cluster() -> Iterator[CephCluster]:
    if lacking := missing():
        raise NotShown(f"this machine lacks {', '.join(lacking)}")
    try:
        with ceph_cluster() as ceph:
            yield ceph
    except CephError as error:
        raise NotShown(f"its Ceph: {error}") from None


@contextmanager
def _reachable(guest: Guest, *entities: list[dict[str, str]]) -> Iterator[str]:
    """Daemons by their addresses (Ceph's ``addrvec``) have the same in the guest; the first one's of protocol 1."""
    found = [address["addr"] for each in entities for address in each]
    forwards = [word for each in found for word in ("-R", f"{each}:{each}")]
    argv = guest.client("ssh", "-p")

    def control(what: str) -> None:
        done = subprocess.run([*argv, "-O", what, *forwards, "root@127.0.0.1"], capture_output=True, check=False)
        if done.returncode:
            raise GuestError(f"ssh -O {what}: {done.stderr.decode(errors='replace').strip()}")

    control("forward")
    try:
        yield next(address["addr"] for address in entities[0] if address["type"] == "v1")
    finally:
        control("cancel")


def _monitor(ceph: CephCluster) -> list[dict[str, str]]:
    return list(ceph.ceph_json("mon", "dump")["mons"][0]["public_addrs"]["addrvec"])


def _osds(ceph: CephCluster) -> list[list[dict[str, str]]]:
    return [each["public_addrs"]["addrvec"] for each in ceph.ceph_json("osd", "dump")["osds"]]


def _key(ceph: CephCluster) -> str:
    return ceph.ceph("auth", "get-key", "client.admin").strip()


@contextmanager
def _image(guest: Guest, features: str) -> Iterator[CephCluster]:
    """An image that the guest's kernel has mapped as rbd0."""
    with _cluster() as ceph:
        ceph.add_pool(_POOL, pg_num=8, application="rbd")
        ceph.run("rbd", "create", "--size", "64", "--image-feature", features, f"{_POOL}/{_IMAGE}")
        with _reachable(guest, _monitor(ceph), *_osds(ceph)) as monitor:
            options = f"name=admin,secret={_key(ceph)}"
            guest.run(f"modprobe rbd; echo '{monitor} {options} {_POOL} {_IMAGE}' >/sys/bus/rbd/add_single_major")
            try:
                yield ceph
            finally:
                ceph.heal()
                guest.run("sleep 5; echo 0 force >/sys/bus/rbd/remove_single_major")


def features(guest: Guest) -> Seen:
    """As the cluster has them, by what the kernel says of the mapped image."""
    with _image(guest, "layering,exclusive-lock,object-map,fast-diff") as ceph:
        truth = set(json.loads(ceph.run("rbd", "info", "--format", "json", f"{_POOL}/{_IMAGE}"))["features"])

        def seen() -> set[str]:
            words = guest.scrape().labels("plumbline_rbd_client_info", "features", pool=_POOL, image=_IMAGE)
            return {word for word in ",".join(words).split(",") if word}

        return Seen(truth, guest.until(seen, bool, within_s=120))


def image(guest: Guest) -> Seen:
    """Reads of a mapped image, and one that waits while the OSDs are frozen; by the kernel's counters and ours."""
    with _image(guest, "layering") as ceph:
        return _mapped(guest, ceph)


def _mapped(guest: Guest, ceph: CephCluster) -> Seen:
    guest.run(f"dd if=/dev/rbd0 of=/dev/null bs=4k count={READS} iflag=direct status=none")
    reads = lambda: guest.scrape().get("plumbline_disk_ios_total", device="rbd0", operation="read")  # noqa: E731
    figure = {"reads": guest.until(reads, bool, within_s=120)}
    truth: dict[str, float | None] = {"reads": float(guest.run("awk '{print $1}' /sys/block/rbd0/stat"))}
    for number in ceph.osd_pids:
        ceph.freeze_osd(number)
    truth["in flight"], scrape = disks.held_read("rbd0", guest)
    figure["in flight"] = scrape.get("plumbline_disk_queue_length", device="rbd0")
    return Seen(truth, figure)


def filesystem(guest: Guest) -> Seen:
    """A mounted CephFS while all its daemons are frozen, and after: what a program that asks for its space gets."""
    with _cluster() as ceph, metadata_server(ceph) as server:
        (mine,) = ceph.ceph_json("fs", "dump")["filesystems"]
        active = [each["addrs"]["addrvec"] for each in mine["mdsmap"]["info"].values()]
        with _reachable(guest, _monitor(ceph), *_osds(ceph), *active) as monitor:
            options = f"name=admin,secret={_key(ceph)},mds_namespace={NAME}"
            guest.run(f"mkdir -p /mnt/cephfs && mount -i -t ceph {monitor}:/ /mnt/cephfs -o {options}")
            frozen = ["mon.a", server, *(f"osd.{number}" for number in ceph.osd_pids)]
            try:
                truth, figure = {"mounted": _answers(guest)}, {"mounted": _up(guest, 1.0)}
                for name in frozen:
                    ceph.freeze(name)
                truth["frozen"], figure["frozen"] = _answers(guest), _up(guest, 0.0)
                for name in frozen:
                    ceph.thaw(name)
                figure["back"] = _up(guest, 1.0)
                truth["back"] = _answers(guest)
                return Seen(truth, figure)
            finally:
                ceph.heal()
                guest.run("umount -lf /mnt/cephfs")


def _answers(guest: Guest) -> float:
    said = guest.run(
        "timeout --signal KILL 20 stat --file-system /mnt/cephfs >/dev/null 2>&1 && echo answers", check=False
    )
    return float("answers" in said)


def _up(guest: Guest, expected: float) -> float | None:
    look = lambda: guest.scrape().get("plumbline_mount_up", mountpoint="/mnt/cephfs")  # noqa: E731
    return guest.until(look, lambda up: up == expected, within_s=180)


GROUP = Group(
    "ceph",
    (
        Row("RBD image in the kernel", "its features", features),
        Row("RBD image in the kernel", "its OSDs fall silent", image),
        Row("CephFS in the kernel", "its daemons fall silent", filesystem),
    ),
)
