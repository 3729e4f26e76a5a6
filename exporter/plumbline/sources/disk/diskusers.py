"""What uses each disk: OSDs, volumes, arrays, pools, filesystems, swap, through partitions and any stack of devices.

All data comes from small files and from memory of kernel, udev and systemd; no device is opened, no command is run.

Not covered: the vdev within a ZFS pool, a volume group without an active volume, the disk below a file (loop devices
end here), and the OSD of a device where its files are unreadable (:mod:`~plumbline.sources.ceph.ceph_osds`).
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.sources.ceph import ceph_osds
from plumbline.sources.disk import lvm
from plumbline.sources.disk.blocktree import BlockNode, BlockTree, node_at, read_block_tree
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.mounts import Mount, mount_named, read_mounts, read_swaps

T = TypeVar("T")

_MULTI_DEVICE = ("btrfs", "bcachefs")
STACKS = frozenset({"lvm", "dm", "md", "bcache"})  # kinds that are themselves block devices


class DirectUse(Struct, frozen=True):
    """``node``, a disk, partition or stacked device, is used as ``kind`` by ``name``; empty: user unknown."""

    node: str
    kind: str  # osd, osd-db, osd-wal, lvm, dm, md, zfs, bcache, filesystem, swap
    name: str


class DiskUsers(Struct, frozen=True):
    """How the devices are stacked, and what uses them."""

    tree: BlockTree
    direct: tuple[DirectUse, ...] = ()
    uses: tuple[tuple[str, str, str], ...] = ()
    """(whole device, kind, name), without duplicates: uses of the device, its partitions or anything stacked on it."""
    unreadable: tuple[Path, ...] = ()  # Ceph directories: OSDs may be missing

    def osds(self) -> dict[str, str]:
        """Whole device → the OSDs whose data it holds (``osd.3,osd.4``), in numeric order."""
        by_osd: dict[str, list[str]] = {}
        for device, kind, name in self.uses:
            if kind == ceph_osds.OSD and name:
                by_osd.setdefault(device, []).append(name)
        return {device: ",".join(sorted(names, key=_number)) for device, names in by_osd.items()}


class DiskUsesReading(NamedTuple):
    """The users, and which devices are reported."""

    users: DiskUsers = DiskUsers(BlockTree({}))
    keep: Callable[[str], bool] = bool


def users_of(tree: BlockTree, direct: Iterable[DirectUse], unreadable: Iterable[Path] = ()) -> DiskUsers:
    """Assign each use to every device below as well."""
    each_once = tuple(dict.fromkeys(direct))
    uses = {
        (device, use.kind, use.name)
        for use in each_once
        for device in tree.below(use.node)
        if device != use.node or use.kind not in STACKS  # a volume uses the devices below it, not itself
    }
    return DiskUsers(tree, each_once, tuple(sorted(uses)), tuple(unreadable))


def read_disk_users(roots: Roots) -> DiskUsers:
    """All uses on this host. :class:`Unavailable` without sysfs; any other unreadable source adds nothing."""
    tree = read_block_tree(roots)
    links = ceph_osds.read_osd_links(roots)
    direct = [*_stacked(tree), *_pools(tree, roots), *_mounted(tree, roots), *_swapped(tree, roots)]
    direct += _of_osds(tree, links, direct, roots)
    return users_of(tree, direct, links.unreadable)


def _stacked(tree: BlockTree) -> Iterator[DirectUse]:
    for node in tree.nodes.values():
        volume = lvm.volume_of(node)
        if volume is not None:
            yield DirectUse(node.name, "lvm", volume.name)
        elif node.dm_name and not node.dm_uuid.startswith(("LVM-", "part")):
            yield DirectUse(node.name, "dm", node.dm_name)
        elif node.lower and not node.dm_name:
            kind = "md" if node.name.startswith("md") else "bcache" if node.name.startswith("bcache") else None
            if kind:
                yield DirectUse(node.name, kind, node.name)


def _pools(tree: BlockTree, roots: Roots) -> Iterator[DirectUse]:
    """A label alone is not a use: disks keep it after a pool is exported. The module lists the imported pools."""
    imported = set(sysfs.entries(roots.proc / "spl" / "kstat" / "zfs"))
    for node in tree.nodes.values():
        pool = node.property("ID_FS_LABEL")
        if node.property("ID_FS_TYPE") == "zfs_member" and pool in imported:
            yield DirectUse(node.name, "zfs", pool)


def _mounted(tree: BlockTree, roots: Roots) -> Iterator[DirectUse]:
    """One use per filesystem, by its first whole-tree mount: bind mounts (Kubernetes makes hundreds) don't count."""
    first: dict[str, Mount] = {}
    for mount in _readable(read_mounts, roots):
        for node in _nodes_of(mount, tree, roots):
            before = first.get(node.name)
            if before is None or (before.root != "/" == mount.root):
                first[node.name] = mount
    for name, mount in first.items():
        osd = ceph_osds.osd_by_mount_point(mount.mount_point)
        yield DirectUse(name, "filesystem", mount.mount_point)
        if osd:
            yield DirectUse(name, ceph_osds.OSD, osd)


def _nodes_of(mount: Mount, tree: BlockTree, roots: Roots) -> list[BlockNode]:
    if mount.filesystem not in _MULTI_DEVICE:
        node = tree.by_number(f"{mount.major}:{mount.minor}")
        return [node] if node else []
    named = [node for path in mount.source.split(":") if (node := node_at(path, tree, roots))]
    for filesystem in sysfs.entries(roots.sys / "fs" / mount.filesystem):
        directory = roots.sys / "fs" / mount.filesystem / filesystem / "devices"
        members = {name.replace("!", "/") for name in sysfs.entries(directory)}
        if members & {node.name for node in named}:
            return [tree.nodes[name] for name in sorted(members) if name in tree.nodes]
    return named


def _readable(read: Callable[[Roots], tuple[T, ...]], roots: Roots) -> tuple[T, ...]:
    try:
        return read(roots)
    except PlumblineError:
        return ()


def _swapped(tree: BlockTree, roots: Roots) -> Iterator[DirectUse]:
    for swap in _readable(read_swaps, roots):
        if not swap.is_file:
            node = node_at(swap.path, tree, roots)
            nodes = [node] if node else []
        else:  # by its path alone: accessing the file may hang
            mount = mount_named(swap.path, _readable(read_mounts, roots))
            nodes = _nodes_of(mount, tree, roots) if mount else []
        for node in nodes:
            yield DirectUse(node.name, "swap", swap.path)


def _of_osds(tree: BlockTree, links: ceph_osds.OsdLinks, before: list[DirectUse], roots: Roots) -> Iterator[DirectUse]:
    """Use the best source for each device: the daemon's own link, LVM tags, enabled units, then partition types."""
    assigned = {use.node for use in before if use.kind == ceph_osds.OSD}
    for link in links.links:
        node = tree.by_number(link.number) if link.number else node_at(link.path, tree, roots)
        if node is not None:
            assigned.update((node.name, *tree.below(node.name)))
            yield DirectUse(node.name, link.kind, link.osd)
    tags, units = lvm.read_tags(roots), ceph_osds.read_enabled_units(roots)
    for node in tree.nodes.values():
        if node.name in assigned:
            continue
        volume = lvm.volume_of(node)
        osd_use = volume and (
            ceph_osds.osd_by_tags(tags.get(node.dm_uuid, ())) or ceph_osds.osd_by_name(volume.volume, units)
        )
        if osd_use:
            yield DirectUse(node.name, *osd_use)
        elif (kind := ceph_osds.kind_of_partition(node)) and not (
            kind == ceph_osds.OSD and _disk_is_assigned(node, tree, assigned)
        ):
            yield DirectUse(node.name, kind, "")


def _disk_is_assigned(node: BlockNode, tree: BlockTree, assigned: set[str]) -> bool:
    """ceph-disk gives an OSD two partitions of one disk; the mounted one identifies both."""
    return any(tree.nodes[name].disk == node.disk for name in assigned if name in tree.nodes)


def _number(osd: str) -> tuple[int, str]:
    number = osd.removeprefix("osd.")
    return (int(number) if number.isdecimal() else 0, osd)
