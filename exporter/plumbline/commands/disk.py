"""``plumbline disk``: this host's disks and who uses them, as text and as JSON."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.console import Console

from plumbline.commands.ceph.admin import Cluster, administrator
from plumbline.commands.node import read_disks
from plumbline.commands.pull import judge
from plumbline.commands.shared import complain, roots, say, show
from plumbline.core.console import line, table
from plumbline.core.roots import Roots
from plumbline.core.units import size_text
from plumbline.errors import ConfigError, PlumblineError, UnknownName
from plumbline.sources.disk import diskusers
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.blocktree import BlockNode
from plumbline.sources.disk.diskusers import DiskUsers
from plumbline.sources.disk.slots import read_slot, switch

# The final users of a disk; volumes and arrays are in between
_SHOWN_FIRST = ("osd", "osd-db", "osd-wal", "zfs", "filesystem", "swap")


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a disk. An empty name: the user is unknown."""

    kind: str
    name: str


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One device of the stack, with its direct uses and the devices on top of it."""

    device: str
    what: str
    uses: tuple[Use, ...]
    upper: tuple[Layer, ...]


class Disk(msgspec.Struct, frozen=True, kw_only=True):
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
    slot: str | None
    slot_lit: bool | None
    osd: str
    uses: tuple[Use, ...]
    lower: tuple[str, ...]
    stack: Layer


def run(options: argparse.Namespace) -> int:
    only, here = options.device and options.device.removeprefix("/dev/"), roots(options)
    if not only:
        for flag, given in (("--locate on", options.locate), ("--safe-to-pull", options.safe_to_pull)):
            if given:
                raise ConfigError(flag.split()[0], f"say which disk: plumbline disk sda {flag}")
    devices, users, skipped = read_disks(config_file=options.config_file, roots=here, only=only)
    disks = pick(describe(devices, users, here), options.device)
    if options.locate:
        return _locate(here, disks[0].device, on=options.locate == "on")
    if options.safe_to_pull:
        return _safe_to_pull(options, disks[0], unreadable=bool(users.unreadable))
    show(options, disks, lambda console: print_disk(console, disks[0]) if only else print_disks(console, disks))
    for device, reason in skipped:
        complain(f"left out: {device}: {reason}")
    for path in users.unreadable:
        complain(f"left out: {path} is not readable, so OSDs may be missing; run this as root")
    return 0


def _locate(here: Roots, device: str, *, on: bool) -> int:
    slot = read_slot(here, device)
    if slot is None:
        raise PlumblineError(
            f"{device}: the kernel lists no slot of it: no SES enclosure and no slot for hot-plugging; where ledmon is"
            f" installed, try: ledctl locate{'' if on else '_off'}=/dev/{device}"
        )
    switch(slot, device, on=on)
    say(f"{device}: the light of {slot.name} is {'on' if on else 'off'}")
    return 0


def _safe_to_pull(options: argparse.Namespace, disk: Disk, *, unreadable: bool) -> int:
    cluster = Cluster(administrator(options), os.environ)
    uses = [(use.kind, use.name) for use in disk.uses]
    answer = judge(disk.device, uses, unreadable=unreadable, cluster=cluster)

    def write(console: Console) -> None:
        verdict, before = ("yes", "on pulling it") if answer.safe else ("no", "first")
        line(console, f"{disk.device}: safe to pull: {verdict}; {answer.reason}", "bold")
        line(console, f"  {before}: {answer.first}")
        if disk.slot:
            line(console, f"  slot: {disk.slot}; plumbline disk {disk.device} --locate on marks it")

    show(options, answer, write)
    return 0 if answer.safe else 1


def describe(devices: Iterable[BlockDevice], users: DiskUsers, here: Roots) -> tuple[Disk, ...]:
    osds = users.osds()
    uses: dict[str, list[Use]] = {}
    for name, kind, user in users.uses:
        uses.setdefault(name, []).append(Use(kind=kind, name=user))
    disks = []
    for device in devices:
        slot = read_slot(here, device.name)
        own = {field: getattr(device, field) for field in Disk.__struct_fields__ if hasattr(device, field)}
        disk = Disk(
            **own,
            device=device.name,
            slot=None if slot is None else slot.name,
            slot_lit=None if slot is None else slot.lit,
            osd=osds.get(device.name, ""),
            uses=tuple(uses.get(device.name, ())),
            stack=_layer(device.name, users, frozenset()),
        )
        disks.append(disk)
    return tuple(disks)


def pick(disks: Sequence[Disk], device: str | None) -> tuple[Disk, ...]:
    """All, or the one of that name (``sda``, ``/dev/sda``); :class:`UnknownName` lists them."""
    picked = tuple(disk for disk in disks if device is None or disk.device == device.removeprefix("/dev/"))
    if device is not None and not picked:
        names = ", ".join(disk.device for disk in disks) or "none"
        raise UnknownName(f"no disk {device}; there are: {names}")
    return picked


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
    upper = [device for device in users.tree.direct_above(name) if device not in above]
    return Layer(
        device=name,
        what=_what(node, users),
        uses=direct,
        upper=tuple(_layer(device, users, above | {name}) for device in upper),
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


def print_disks(console: Console, disks: Sequence[Disk]) -> None:
    rows = [
        (
            disk.device,
            disk.model or "",
            disk.device_class or "",
            disk.transport or "",
            size_text(disk.size_bytes),
            disk.scheduler or "",
            ", ".join(_used_by(use) for use in in_the_end(disk)),
        )
        for disk in disks
    ]
    table(console, ("Device", "Model", "Class", "Transport", "Size", "Scheduler", "Used by"), rows)


def print_disk(console: Console, disk: Disk) -> None:
    line(console, f"{disk.device}: {disk.model or 'no model'}, {size_text(disk.size_bytes)}", "bold")
    rotational = None if disk.rotational is None else "yes" if disk.rotational else "no"
    for name, value in (
        ("serial", disk.serial),
        ("firmware", disk.firmware),
        ("class", disk.device_class),
        ("transport", disk.transport),
        ("rotational", rotational),
        ("zones", disk.zoned),
        ("logical block", disk.logical_block_bytes and f"{disk.logical_block_bytes} B"),
        ("physical block", disk.physical_block_bytes and f"{disk.physical_block_bytes} B"),
        ("scheduler", disk.scheduler),
        ("requests in the queue", disk.queue_requests),
        ("commands the disk takes", disk.queue_depth),
        ("slot", disk.slot and disk.slot + (", its light is on" if disk.slot_lit else "")),
        ("OSD", disk.osd),
        ("built on", ", ".join(disk.lower)),
    ):
        if value not in (None, ""):
            line(console, f"  {name}: {value}")
    line(console, "")
    for text in _tree(disk.stack, "", ""):
        line(console, text)


def _tree(layer: Layer, first: str, rest: str) -> Iterator[str]:
    yield first + _layer_text(layer)
    for upper in layer.upper:
        last = upper is layer.upper[-1]
        yield from _tree(upper, rest + ("└── " if last else "├── "), rest + ("    " if last else "│   "))


def _layer_text(layer: Layer) -> str:
    uses = ", ".join(_used_by(use) for use in layer.uses)
    return layer.device + (f"  {layer.what}" if layer.what else "") + (f"  → {uses}" if uses else "")


def _used_by(use: Use) -> str:
    """An OSD's name already says what it is."""
    if use.kind == "osd" and use.name:
        return use.name
    return f"{use.kind} {use.name or '(owner unknown)'}"
