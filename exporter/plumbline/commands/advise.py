"""``plumbline baseline advise``: which documented figures are comparable here, and the configuration that uses them."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml
from rich.console import Console

from plumbline.baseline.advice import Advice, Subject, Via, advise, chosen, probes
from plumbline.baseline.profiles import check_judge
from plumbline.commands.node import Node, osd_classes, read_disks, this_node
from plumbline.commands.shared import show
from plumbline.config.model import Config
from plumbline.core.console import line, table
from plumbline.core.grouping import grouped
from plumbline.errors import PlumblineError, ProbeRefused, Unavailable
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.ceph.osd_lookup import ask_pool_class
from plumbline.probes.disk.raw_disks import STACKED
from plumbline.sources.disk.block import BlockDevice, device_below
from plumbline.sources.disk.diskusers import DiskUsers
from plumbline.sources.net.routes import read_way, resolve, speed_word

_RESOLVED_WITHIN_S = 2.0
# classes of which no document can have figures, because they say nothing of the medium
_NO_MEDIUM = (None, "virtual", "unknown")


class _Suggestions(msgspec.Struct, frozen=True):
    """What is shown. ``judging``: device class → profile, of which ``add_judge`` is not configured yet; ``heavy``: the
    probes left out because they load the cluster or the network."""

    advice: tuple[Advice, ...]
    judging: Mapping[str, str]
    not_looked_at: tuple[str, ...]
    add_probes: tuple[Mapping[str, Any], ...]
    add_judge: Mapping[str, str]
    heavy: tuple[Mapping[str, Any], ...]


def run(options: argparse.Namespace) -> int:
    node = this_node(options)
    if options.profile is not None:
        check_judge({"profile": options.profile}, node.profiles, "--profile")
    missing: list[str] = []
    subjects = [*_disks(node, options, missing), *_peers(node, options, missing), *_ceph(node, options, missing)]
    advice = advise(subjects, node.profiles, node.plan.targets())
    configured = node.config.baseline.judge
    judging = chosen(advice, configured, options.profile or "")
    taken = [probe.name for probe in node.config.probes]
    wanted = probes(advice, judging, taken, heavy=options.heavy)
    names = {probe["name"] for probe in wanted}
    suggestions = _Suggestions(
        advice,
        judging,
        tuple(missing),
        tuple(wanted),
        {cls: profile for cls, profile in judging.items() if cls not in configured},
        tuple(probe for probe in probes(advice, judging, taken, heavy=True) if probe["name"] not in names),
    )
    data = {"host": node.host, **msgspec.structs.asdict(suggestions)}
    show(
        options,
        data,
        lambda console: _print(console, suggestions, default_probes=node.config.probes == Config().probes),
    )
    return 0


def _disks(node: Node, options: argparse.Namespace, missing: list[str]) -> Iterator[Subject]:
    """The disk below the storage path, and the disks that hold OSDs, by class."""
    try:
        devices, users, _ = read_disks(config_file=options.config_file, roots=node.roots)
    except PlumblineError as error:
        missing.append(f"disks: {error}")
        return
    below = _below(node, missing)
    if below is not None:
        device_class, given = _class_of(below, options.device_class)
        yield Subject(Via.FILES, "disk", device_class, (below.name,), below.model or "", given)
    by_class = grouped(_osd_disks(devices, users), lambda disk: _class_of(disk, options.device_class))
    for (device_class, given), disks in by_class.items():
        models = ", ".join(dict.fromkeys(disk.model for disk in disks if disk.model))
        yield Subject(Via.RAW, "disk", device_class, tuple(disk.name for disk in disks), models, given)


def _below(node: Node, missing: list[str]) -> BlockDevice | None:
    try:
        below = device_below(node.storage, node.roots)
    except PlumblineError as error:
        missing.append(f"the disk of {node.storage}: {error}")
        return None
    if below is None:
        missing.append(f"{node.storage}: it is on no disk of this host")
    return below


def _osd_disks(devices: Sequence[BlockDevice], users: DiskUsers) -> list[BlockDevice]:
    """Whole disks that hold data of an OSD; a volume's disks hold it as well."""
    holding = users.osds()
    return [disk for disk in devices if disk.name in holding and not disk.name.startswith(STACKED)]


def _class_of(disk: BlockDevice, given: str | None) -> tuple[str, bool]:
    """The disk's class, and whether it is the one that the user gave, because the kernel can't know the medium."""
    if disk.device_class in _NO_MEDIUM and given is not None:
        return given, True
    return disk.device_class or "unknown", False


def _peers(node: Node, options: argparse.Namespace, missing: list[str]) -> Iterator[Subject]:
    """The peers given or configured, by the speed of the port that leads there."""
    configured = [host for probe in node.config.probes if probe.enabled for host, _ in probe.peers()]
    hosts = list(dict.fromkeys([*options.peer, *configured]))
    if not hosts:
        missing.append("network: no peer is known; name another storage node with --peer")
    by_class: dict[str, list[str]] = {}
    for host in hosts:
        try:
            way = read_way(resolve(host, within_s=_RESOLVED_WITHIN_S), None, node.roots)
        except (PlumblineError, OSError) as error:
            missing.append(f"network, {host}: {error}")
            continue
        by_class.setdefault(speed_word(way.speed_mbps) if way.speed_mbps else "unknown", []).append(host)
    for device_class, names in by_class.items():
        yield Subject(Via.PEER, "network", device_class, tuple(names))


def _ceph(node: Node, options: argparse.Namespace, missing: list[str]) -> Iterator[Subject]:
    """The OSDs of this host, and our own pools, by class."""
    classes = osd_classes(config_file=options.config_file, roots=node.roots)
    for device_class, osds in grouped(classes, classes.__getitem__).items():
        yield Subject(Via.OSD, "osd", device_class, tuple(sorted(osds)))
    access = CephAccess.of(node.config.ceph)
    try:
        access.check()
    except (ProbeRefused, Unavailable) as error:
        missing.append(f"pools: {error}")
        return
    for via, layer, pool in ((Via.POOL, "rados", access.pool), (Via.IMAGE, "rbd", access.rbd_pool)):
        class_of_pool = ask_pool_class(pool, node.config.ceph, os.environ)
        if class_of_pool is None:
            missing.append(f"pool {pool}: the cluster does not tell its device class")
        else:
            yield Subject(via, layer, class_of_pool, (pool,))


def _print(console: Console, suggestions: _Suggestions, *, default_probes: bool) -> None:
    advice, wanted = suggestions.advice, suggestions.add_probes
    rows = [
        (
            f"{item.subject.layer} {item.subject.device_class}",
            f"{item.subject.via}: {', '.join(item.subject.names)}",
            item.profile or "none",
            "yes" if item.comparable else "no",
            _why(item),
        )
        for item in advice
    ]
    table(console, ("Layer, class", "Here", "Document", "Comparable", "Why"), rows, wraps={"Why": 0})
    for text in suggestions.not_looked_at:
        line(console, f"not looked at: {text}", "yellow")
    hardware = dict.fromkeys(  # a pool and its images have the same
        f"{item.profile}, {item.subject.device_class}: measured on {item.hardware}"
        + (f"; here: {item.subject.about}" if item.subject.about else "")
        for item in advice
        if item.comparable and suggestions.judging.get(item.subject.device_class) == item.profile
    )
    for text in hardware:
        line(console, text)
    line(console, "")
    if wanted or suggestions.add_judge:
        line(console, "Add to the configuration:", "bold")
        for text in _lines(wanted, suggestions.add_judge):
            line(console, f"  {text}")
        if wanted and default_probes:
            line(
                console,
                "A list of probes replaces the default ones: docs/configuration.md has them, to copy.",
                "yellow",
            )
    elif any(item.comparable for item in advice):
        line(console, "Nothing to add: what is comparable is measured, and judged by the configured profiles.")
    else:
        line(
            console,
            "Nothing to add: no documented figure is comparable here; plumbline baseline record makes your own.",
        )
    if suggestions.heavy:
        line(console, "With --heavy also these, which load the cluster or the network:", "bold")
        for text in _lines(suggestions.heavy, {}):
            line(console, f"  {text}")
    if any(probe.get("devices") for probe in wanted):
        line(console, "Reading raw disks takes a right of its own: systemd/README.md, raw-devices.conf.")
    if any(item.subject.device_class in _NO_MEDIUM and item.subject.layer == "disk" for item in advice):
        line(console, "A virtual disk, or one behind a RAID controller, hides its medium: say it by --device-class.")


def _why(item: Advice) -> str:
    if not item.comparable:
        return item.why
    how = f"measured by {item.measured_by}" if item.measured_by else "not measured yet"
    return f"{item.why}; the cheapest is {item.workload}, {item.figure}: {how}"


def _lines(probes: Sequence[Mapping[str, Any]], judge: Mapping[str, str]) -> list[str]:
    """The additions as lines of YAML."""
    lines = ["probes:", *(f"  - {_flow(probe)}" for probe in probes)] if probes else []
    return [*lines, *(["baseline:", f"  judge: {_flow(judge)}"] if judge else [])]


def _flow(value: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.strip()
