"""A metadata server with a file system on a real cluster, and a client that works in it without a mount.

The client is Ceph's own (package ``python3-cephfs``), which only the system's Python has.
https://docs.ceph.com/en/latest/cephfs/createfs/
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .ceph_cluster import CephCluster
from .daemon import eventually

NAME = "plumbline-fs"
POOLS = ("plumbline-fs-metadata", "plumbline-fs-data")
PYTHON = "/usr/bin/python3"

_WORK = """
import sys, time
import cephfs
rounds = int(sys.argv[1])
fs = cephfs.LibCephFS()
fs.conf_read_file()
fs.mount()
for number in range(rounds):
    name = f"/file-{number}".encode()
    handle = fs.open(name, "w", 0o644)
    fs.write(handle, b"x" * 4096, 0)
    fs.fsync(handle, 0)
    fs.close(handle)
    fs.stat(name)
    fs.unlink(name)
fs.sync_fs()
if sys.argv[2] == "stay":
    print("mounted", flush=True)
    time.sleep(3600)
fs.shutdown()
"""


@contextmanager
def metadata_server(ceph: CephCluster, name: str = "mds.a") -> Iterator[str]:
    """One that is active; in the end it goes, with its file system and pools."""
    metadata, data = POOLS
    ceph.add_user(name, {"mon": "profile mds", "mgr": "profile mds", "mds": "allow *", "osd": "allow *"})
    try:
        for pool in POOLS:
            ceph.add_pool(pool, pg_num=8, application="cephfs")
        ceph.ceph_all(f"fs new {NAME} {metadata} {data}", f"fs set {NAME} standby_count_wanted 0")
        ceph.start_daemon(name)
        eventually(lambda: _active(ceph), within_s=240.0, every_s=0.5)
        yield name
    finally:
        ceph.kill(name)
        ceph.ceph_all(f"fs fail {NAME}", f"fs rm {NAME} --yes-i-really-mean-it")
        for pool in POOLS:
            ceph.remove_pool(pool)
        ceph.remove_user(name)
        ceph.wait_healthy()


def work(ceph: CephCluster, rounds: int) -> None:
    """Create, write, stat and remove so many files, one after the other."""
    ceph.run(PYTHON, "-c", _WORK, str(rounds), "go")


def _active(ceph: CephCluster) -> bool:
    (mine,) = ceph.ceph_json("fs", "dump")["filesystems"]
    return any(each["state"] == "up:active" for each in mine["mdsmap"]["info"].values())
