"""Ceph's daemons on this host, without a Ceph command: which devices belong to OSDs, whether a monitor or manager runs.

    /var/lib/ceph/osd/ceph-71/block → /dev/ceph-1b2c/osd-block-5d6e      packages (ceph-volume, and ceph-disk before)
    /var/lib/ceph/<fsid>/osd.71/block.db → /dev/ceph-9f8e/osd-db-7a6b    cephadm
    /var/lib/rook/<namespace>/<fsid>_<osd uuid>/block → /dev/sdb         Rook; the file ``whoami`` there has the number

``block`` is the data; ``block.db`` and ``block.wal`` are faster devices for the metadata.
https://docs.ceph.com/en/latest/ceph-volume/lvm/prepare/, …/ceph-volume/lvm/systemd/ (units
``ceph-volume@lvm-71-<osd fsid>``), …/dev/ceph-volume/lvm/ (tags); volumes that ceph-volume creates itself are named
``osd-block-<osd fsid>``. Rook: pkg/operator/ceph/cluster/osd/spec.go.

Access: packages give ``/var/lib/ceph`` to the group ``ceph``; cephadm and Rook keep their directories for root. Anyone
may read the enabled units and the names of volumes, which suffice only for package-installed OSDs on LVM. The label at
the start of an OSD's device would say everything, but reading a device can hang, so it is not read.

    /var/lib/ceph/mon/ceph-stor01, /etc/systemd/system/ceph-mgr.target.wants/ceph-mgr@stor01.service    packages
    /var/lib/ceph/<fsid>/mon.stor01, …/ceph-<fsid>.target.wants/ceph-<fsid>@mon.stor01.service          cephadm
    /var/lib/rook/mon-a                                                        Rook; its managers leave nothing
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.sources.disk.blocktree import BlockNode
from plumbline.sources.kernel.sysfs import entries, link_text, read_text

OSD, DB, WAL = "osd", "osd-db", "osd-wal"
_LINKS = {"block": OSD, "block.db": DB, "block.wal": WAL}
_TYPES = {"block": OSD, "data": OSD, "db": DB, "wal": WAL}
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_UNIT = re.compile(rf"ceph-volume@lvm-(\d+)-({_UUID})\.service")
_VOLUME = re.compile(rf"osd-(block|data|db|wal)-({_UUID})")
_MOUNT_POINT = re.compile(rf"/var/lib/ceph/(?:osd/[^/]+-|{_UUID}/osd\.)(\d+)")
_ANY = re.compile(r".+")
_HEAD_OF_CEPHADM = re.compile(r"(?:mon|mgr)\..+")
_HEAD_TARGET = re.compile(rf"ceph-(?:mon|mgr|{_UUID})\.target\.wants")
_HEAD_UNIT = re.compile(rf"ceph-(?:(?:mon|mgr)@|{_UUID}@(?:mon|mgr)\.).+\.service")
_HEAD_OF_ROOK = re.compile(r"mon-[a-z]+")
# ID_PART_ENTRY_TYPE of ceph-disk, and later of ceph-volume simple. https://github.com/ceph/ceph src/ceph-disk
_PARTITION_TYPES = {
    "4fbd7e29-9d25-41b8-afd0-062c0ceff05d": OSD,  # data
    "cafecafe-9b03-4f30-b4c6-b4b80ceff106": OSD,  # block
    "30cd0809-c2b2-499c-8879-2d6b78529876": DB,
    "5ce17fce-4087-4169-b7ff-056cc58473f9": WAL,
}


class OsdLink(Struct, frozen=True):
    """The OSD uses a device for ``kind``: the one at ``path``, or the one with ``number``."""

    osd: str
    kind: str
    path: str = ""
    number: str = ""


class OsdLinks(Struct, frozen=True):
    """Links from the daemons' directories; ``unreadable``: directories that could not be read."""

    links: tuple[OsdLink, ...] = ()
    unreadable: tuple[Path, ...] = ()


def read_osd_links(roots: Roots) -> OsdLinks:
    """Read the links of all three layouts."""
    ceph, rook = roots.var / "lib" / "ceph", roots.var / "lib" / "rook"
    unreadable: list[Path] = []
    directories = [(path.name.rpartition("-")[2], path) for path in _children(ceph / "osd", unreadable)]
    for cluster in _children(ceph, unreadable):
        if re.fullmatch(_UUID, cluster.name):
            paths = (path for path in _children(cluster, unreadable) if path.name.startswith("osd."))
            directories += [(path.name.removeprefix("osd."), path) for path in paths]
    for path in (path for namespace in _children(rook, unreadable) for path in _children(namespace, unreadable)):
        if re.fullmatch(f"{_UUID}_{_UUID}", path.name):
            directories.append((read_text(path / "whoami") or "", path))
    links = tuple(link for number, path in directories if number.isdigit() for link in _links_in(f"osd.{number}", path))
    topmost = (path for path in unreadable if not set(path.parents) & set(unreadable))
    return OsdLinks(links, tuple(dict.fromkeys(topmost)))


def read_enabled_units(roots: Roots) -> Mapping[str, str]:
    """OSD fsid → OSD, from the units that ``ceph-volume lvm activate`` enabled."""
    matches = map(_UNIT.fullmatch, entries(roots.etc / "systemd" / "system" / "multi-user.target.wants"))
    return {match[2].lower(): f"osd.{match[1]}" for match in matches if match}


def osd_by_name(volume: str, units: Mapping[str, str]) -> tuple[str, str] | None:
    """(kind, OSD) of a volume that ceph-volume created; the OSD is empty when no unit names it."""
    match = _VOLUME.fullmatch(volume)
    return (_TYPES[match[1]], units.get(match[2].lower(), "")) if match else None


def osd_by_tags(tags: Sequence[str]) -> tuple[str, str] | None:
    """(kind, OSD) of a volume with ceph-volume's tags."""
    values = dict(tag.partition("=")[::2] for tag in tags)
    kind, number = _TYPES.get(values.get("ceph.type", "")), values.get("ceph.osd_id", "")
    return (kind, f"osd.{number}") if kind and re.fullmatch(r"\d{1,9}", number) else None


def osd_by_mount_point(mount_point: str) -> str | None:
    """The OSD whose data directory is a separate filesystem: Filestore, and every OSD made by ceph-disk."""
    match = _MOUNT_POINT.fullmatch(mount_point)
    return f"osd.{match[1]}" if match else None


def kind_of_partition(node: BlockNode) -> str | None:
    """The kind of a partition made by ceph-disk; its type does not say which OSD it belongs to."""
    return _PARTITION_TYPES.get(node.property("ID_PART_ENTRY_TYPE").lower())


def head_daemon(roots: Roots) -> str:
    """A path that shows a monitor or manager; empty: there is none, or none that this user may see."""
    return next(_head_daemons(roots), "")


def _head_daemons(roots: Roots) -> Iterator[str]:
    ceph, rook, units = roots.var / "lib" / "ceph", roots.var / "lib" / "rook", roots.etc / "systemd" / "system"
    for kind in ("mon", "mgr"):
        yield from _matching(ceph / kind)
    for cluster in entries(ceph):
        if re.fullmatch(_UUID, cluster):
            yield from _matching(ceph / cluster, _HEAD_OF_CEPHADM)
    yield from _matching(rook, _HEAD_OF_ROOK)
    for target in entries(units):
        if _HEAD_TARGET.fullmatch(target):
            yield from _matching(units / target, _HEAD_UNIT)


def _matching(directory: Path, pattern: re.Pattern[str] = _ANY) -> Iterator[str]:
    return (str(directory / name) for name in entries(directory) if pattern.fullmatch(name))


def _links_in(osd: str, directory: Path) -> Iterator[OsdLink]:
    for name, kind in _LINKS.items():
        target = link_text(directory / name)
        if target is not None:
            yield OsdLink(osd, kind, target)
        elif number := _number_of(directory / name):  # Rook copies the node of a volume claim
            yield OsdLink(osd, kind, number=number)


def _number_of(path: Path) -> str:
    """A device node's number; empty when there is none."""
    try:
        facts = path.stat()
    except OSError:
        return ""
    return f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}" if stat.S_ISBLK(facts.st_mode) else ""


def _children(directory: Path, unreadable: list[Path]) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except PermissionError:
        unreadable.append(directory)
    except OSError:
        pass
    return []
