"""How block devices are stacked: disks, their partitions, and dm, md and bcache devices built on them.

Kernel: Documentation/ABI/stable/sysfs-block (``slaves``), Documentation/ABI/testing/sysfs-block-dm (``dm/name``,
``dm/uuid``). No device is queried: sysfs and udev's files answer from memory even when a device hangs.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from plumbline.core.roots import Roots
from plumbline.sources.disk.block import is_hidden, required_entries
from plumbline.sources.disk.udevdb import read_block_properties
from plumbline.sources.kernel.sysfs import clean, entries, link_text, read_text

_MAX_LINKS = 8  # /dev/disk/by-id/x → ../../sdb1: one or two are usual
_MAX_STACK = 16  # more levels than anyone builds; guards against a copy of sysfs with a loop in it


class BlockNode(Struct, frozen=True):
    """A disk, a partition or a stacked device, by the kernel's name."""

    name: str
    number: str  # "8:17", as in mountinfo; empty where the kernel shows none
    disk: str  # the whole disk: itself, unless it is a partition
    lower: tuple[str, ...] = ()  # nodes it is built on, including partitions
    dm_name: str = ""
    dm_uuid: str = ""  # its prefix shows the creator: "LVM-", "CRYPT-", "mpath-", "part1-mpath-"
    properties: Mapping[str, bytes] = field(default_factory=dict)  # udev's

    def property(self, name: str) -> str:
        """A udev property as a label; empty when it is absent."""
        return clean(self.properties.get(name, b"")) or ""


class BlockTree(Struct, frozen=True):
    """Every block device except hidden ones, by name."""

    nodes: Mapping[str, BlockNode]

    def by_number(self, number: str) -> BlockNode | None:
        """The device with this number, as mountinfo gives it."""
        return next((node for node in self.nodes.values() if node.number == number), None)

    def below(self, name: str) -> tuple[str, ...]:
        """``name`` itself, then the whole devices below it in every layer, down to the disks."""
        disks_below: dict[str, None] = {}
        level = [name]
        for _ in range(_MAX_STACK):
            disks = [self.nodes[number].disk for number in level if number in self.nodes]
            disks_below.update(dict.fromkeys(disks))
            level = [lower for disk in disks if disk in self.nodes for lower in self.nodes[disk].lower]
        return tuple(disks_below)

    def direct_above(self, name: str) -> tuple[str, ...]:
        """The partitions of ``name`` and the devices stacked directly on it, by name."""
        parts = (node.name for node in self.nodes.values() if node.disk == name != node.name)
        stacked = (node.name for node in self.nodes.values() if name in node.lower)
        return tuple(sorted({*parts, *stacked}))

    def relations(self) -> Iterator[tuple[str, str]]:
        """Yield (stacked device, whole device directly below)."""
        for node in self.nodes.values():
            for lower in dict.fromkeys(self.nodes[number].disk for number in node.lower if number in self.nodes):
                yield node.name, lower


def read_block_tree(roots: Roots) -> BlockTree:
    """Read all of ``/sys/class/block``; :class:`Unavailable` without it."""
    directory = roots.sys / "class" / "block"
    paths = (directory / name for name in required_entries(directory))
    nodes = (_read_node(path, roots) for path in paths if not is_hidden(path))
    return BlockTree({node.name: node for node in nodes if node is not None})


def _read_node(entry: Path, roots: Roots) -> BlockNode | None:
    """``None`` when it has vanished meanwhile."""
    parts = (link_text(entry) or "").split("/")
    if len(parts) < 2:
        return None
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", read_text(entry / "dev") or "")
    partition = (entry / "partition").exists()
    mapped = entry.name.startswith("dm-")
    return BlockNode(
        name=entry.name.replace("!", "/"),
        number=match[0] if match else "",
        disk=parts[-2 if partition else -1].replace("!", "/"),
        lower=() if partition else tuple(name.replace("!", "/") for name in entries(entry / "slaves")),
        dm_name=(read_text(entry / "dm" / "name") or "") if mapped else "",
        dm_uuid=(read_text(entry / "dm" / "uuid") or "") if mapped else "",
        properties=read_block_properties(roots, int(match[1]), int(match[2])) if match else {},
    )


def node_at(path: str, tree: BlockTree, roots: Roots) -> BlockNode | None:
    """The device behind ``/dev/sdb1``, ``/dev/mapper/x``, ``/dev/vg/lv`` or ``/dev/disk/by-partuuid/…``. By number
    where ``/dev`` has the node, otherwise by name, with links resolved by text alone: in a container, or a service with
    PrivateDevices=, ``/dev`` has no disks."""
    for _ in range(_MAX_LINKS):
        if not path.startswith("/dev/"):
            return None
        here = roots.dev / path.removeprefix("/dev/")
        target = link_text(here)
        if target is None:
            return _by_node_number(here, tree) or _by_name(path.removeprefix("/dev/"), tree)
        path = _joined(path, target)
    return None


def _by_node_number(path: Path, tree: BlockTree) -> BlockNode | None:
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISBLK(facts.st_mode):
        return None
    return tree.by_number(f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}")


def _by_name(name: str, tree: BlockTree) -> BlockNode | None:
    if name in tree.nodes:
        return tree.nodes[name]
    first, slash, last = name.partition("/")
    if not slash:
        return None
    mapped = last if first == "mapper" else f"{first.replace('-', '--')}-{last.replace('-', '--')}"
    return next((node for node in tree.nodes.values() if node.dm_name == mapped), None)


def _joined(path: str, target: str) -> str:
    """The target of a link at ``path``, without reading it."""
    parts = [] if target.startswith("/") else path.split("/")[1:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)
