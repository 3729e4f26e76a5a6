"""What this host's disks are and who uses them: ``plumbline disk``. Pure: readings in, a structure for JSON out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from plumbline.errors import Unavailable
from plumbline.sources.disk import diskusers
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.blocktree import BlockNode
from plumbline.sources.disk.diskusers import DiskUsers

# The final users of a disk; volumes and arrays are in between
_SHOWN_FIRST = ("osd", "osd-db", "osd-wal", "zfs", "filesystem", "swap")


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    """Printed and encoded, never decoded."""


class Use(_Said, frozen=True):
    """One use of a disk. An empty name: the user is unknown."""

    kind: str
    name: str


class Layer(_Said, frozen=True):
    """One device of the stack, with its direct uses and the devices on top of it."""

    device: str
    what: str
    uses: tuple[Use, ...]
    upper: tuple[Layer, ...]


class Disk(_Said, frozen=True):
    """One whole disk. ``null``: unknown."""

    device: str
    model: str | None
    serial: str | None
    firmware: str | None
    size_bytes: int
    device_class: str | None
    transport: str | None
    rotational: bool | None
    logical_block_bytes: int | None
    physical_block_bytes: int | None
    scheduler: str | None
    queue_requests: int | None
    queue_depth: int | None
    zoned: str | None
    osd: str
    uses: tuple[Use, ...]
    lower: tuple[str, ...]
    stack: Layer


def describe(devices: Iterable[BlockDevice], users: DiskUsers) -> tuple[Disk, ...]:
    """Every disk with its users."""
    osds = users.osds()
    uses: dict[str, list[Use]] = {}
    for name, kind, user in users.uses:
        uses.setdefault(name, []).append(Use(kind=kind, name=user))
    return tuple(
        Disk(
            device=each.name,
            model=each.model,
            serial=each.serial,
            firmware=each.firmware,
            size_bytes=each.size_bytes,
            device_class=each.device_class,
            transport=each.transport,
            rotational=each.rotational,
            logical_block_bytes=each.logical_block_bytes,
            physical_block_bytes=each.physical_block_bytes,
            scheduler=each.scheduler,
            queue_requests=each.queue_requests,
            queue_depth=each.queue_depth,
            zoned=each.zoned,
            osd=osds.get(each.name, ""),
            uses=tuple(uses.get(each.name, ())),
            lower=each.lower,
            stack=_layer(each.name, users, frozenset()),
        )
        for each in devices
    )


def pick(disks: Sequence[Disk], device: str | None) -> tuple[Disk, ...]:
    """All of them, or the one of that name (``sda``, ``/dev/sda``); :class:`Unavailable` names the existing ones."""
    if device is None:
        return tuple(disks)
    wanted = device.removeprefix("/dev/")
    found = tuple(disk for disk in disks if disk.device == wanted)
    if not found:
        names = ", ".join(disk.device for disk in disks) or "none"
        raise Unavailable(f"no disk {device}; there are: {names}")
    return found


def in_the_end(disk: Disk) -> tuple[Use, ...]:
    """The uses to show in one line: the top of the stack, or else what is built on the disk."""
    top = tuple(use for use in disk.uses if use.kind in _SHOWN_FIRST)
    return top or disk.uses


def _layer(name: str, users: DiskUsers, above: frozenset[str]) -> Layer:
    node = users.tree.nodes.get(name)
    direct = tuple(
        Use(kind=use.kind, name=use.name)
        for use in users.direct
        if use.node == name and use.kind not in diskusers.STACKS
    )
    # A stack has no loops, but this may be a damaged copy of one
    upper = [each for each in users.tree.direct_above(name) if each not in above]
    return Layer(
        device=name,
        what=_what(node, users),
        uses=direct,
        upper=tuple(_layer(each, users, above | {name}) for each in upper),
    )


def _what(node: BlockNode | None, users: DiskUsers) -> str:
    if node is None:
        return ""
    if node.name != node.disk:
        return "partition"
    stacks = (use for use in users.direct if use.node == node.name and use.kind in diskusers.STACKS)
    made = [use.kind if use.name == node.name else f"{use.kind} {use.name}" for use in stacks]
    if node.dm_uuid.startswith("CRYPT-"):
        made = [f"{made[0]} (encrypted)"] if made else ["encrypted"]
    return made[0] if made else node.dm_name
