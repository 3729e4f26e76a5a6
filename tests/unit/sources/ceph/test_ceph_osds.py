from __future__ import annotations

import os
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.ceph.ceph_osds import (
    OsdLink,
    osd_by_mount_point,
    osd_by_name,
    osd_by_tags,
    read_enabled_units,
    read_osd_links,
)

FSID = "0000005D-1111-4222-8333-000000000071"


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (("ceph.osd_id=71", "ceph.type=block"), ("osd", "osd.71")),
        (("ceph.type=data", "ceph.osd_id=0"), ("osd", "osd.0")),
        (("ceph.type=db", "ceph.osd_id=3"), ("osd-db", "osd.3")),
        (("ceph.type=wal", "ceph.osd_id=3"), ("osd-wal", "osd.3")),
        (("ceph.type=journal", "ceph.osd_id=3"), None),
        (("ceph.type=block",), None),
        (("ceph.osd_id=null", "ceph.type=block"), None),
        (("ceph.osd_id=1 2", "ceph.type=block"), None),
        (("mine",), None),
        ((), None),
    ],
)
def test_tags(tags: tuple[str, ...], found: tuple[str, str] | None) -> None:
    assert osd_by_tags(tags) == found


@pytest.mark.parametrize(
    ("volume", "found"),
    [
        (f"osd-block-{FSID.lower()}", ("osd", "osd.71")),
        (f"osd-db-{FSID}", ("osd-db", "osd.71")),
        ("osd-wal-00000000-1111-4222-8333-000000000000", ("osd-wal", "")),
        ("osd-block-0", None),
        ("root", None),
    ],
)
def test_names_of_volumes(tmp_path: Path, volume: str, found: tuple[str, str] | None) -> None:
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    for unit in (f"ceph-volume@lvm-71-{FSID}.service", "ceph-volume@simple-1-x.service", "ssh.service"):
        (wants / unit).symlink_to("/lib/systemd/system/x")
    assert osd_by_name(volume, read_enabled_units(Roots.under(tmp_path))) == found


@pytest.mark.parametrize(
    ("mount_point", "osd"),
    [
        ("/var/lib/ceph/osd/ceph-73", "osd.73"),
        ("/var/lib/ceph/osd/my-cluster-0", "osd.0"),
        (f"/var/lib/ceph/{FSID}/osd.5", "osd.5"),
        ("/var/lib/ceph/osd", None),
        ("/var/lib/ceph/osd/ceph-73/current", None),
        ("/srv/var/lib/ceph/osd/ceph-73", None),
    ],
)
def test_mount_points(mount_point: str, osd: str | None) -> None:
    assert osd_by_mount_point(mount_point) == osd


def test_directories_that_are_no_osds(tmp_path: Path) -> None:
    for name in ("osd/ceph-x", "osd/ceph-1", f"{FSID}/osd.", f"{FSID}/mon.a", f"{FSID}/osd.2", "crash/osd.3"):
        (tmp_path / "var/lib/ceph" / name).mkdir(parents=True)
        (tmp_path / "var/lib/ceph" / name / "block").symlink_to("/dev/sda")
    links = read_osd_links(Roots.under(tmp_path))
    assert links.links == (OsdLink("osd.1", "osd", "/dev/sda"), OsdLink("osd.2", "osd", "/dev/sda"))
    assert read_osd_links(Roots.under(tmp_path / "nowhere")).links == ()


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="making a device node needs root")
def test_a_node_in_the_place_of_a_link(tmp_path: Path) -> None:
    """Rook copies the node of a volume claim; a file there is none."""
    directory = tmp_path / "var/lib/ceph/osd/ceph-4"
    directory.mkdir(parents=True)
    try:
        os.mknod(directory / "block", 0o060600, os.makedev(7, 99))
    except PermissionError as error:
        pytest.skip(f"no device nodes here: {error}")
    (directory / "block.db").write_text("")
    assert read_osd_links(Roots.under(tmp_path)).links == (OsdLink("osd.4", "osd", number="7:99"),)
