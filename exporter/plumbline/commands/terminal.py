"""``plumbline nic``, ``disk`` and ``check`` on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from plumbline.checks import report
from plumbline.checks.model import Finding, Severity
from plumbline.commands import describe_disks as describedisks
from plumbline.commands import explain
from plumbline.commands.describe_disks import Disk, Layer, Use
from plumbline.commands.explain import Explanation
from plumbline.core.console import line, table
from plumbline.core.units import si


def print_ports(console: Console, ports: Sequence[Explanation]) -> None:
    """``plumbline nic``: each figure with the counters behind it, then what is left out and why."""
    for position, port in enumerate(ports):
        if position:
            line(console, "")
        facts = [port.driver, port.firmware and f"firmware {port.firmware}", port.bus and f"bus {port.bus}"]
        facts.append(port.master and f"in {port.master}")
        line(console, f"{port.device}: {', '.join(filter(None, facts))}", "bold")
        line(console, f"  drop_source {port.drop_source}: {port.why}")
        line(console, f"  read in: {port.source}")
        rows = [
            (
                f"  {figure.family}",
                figure.direction,
                figure.cause,
                str(figure.frames),
                _sum_of(figure) + (" (whole port)" if figure.whole_port else ""),
            )
            for figure in port.figures
        ]
        if rows:
            table(console, ("  Family", "Direction", "Cause", "Frames", "From"), rows)
        if port.not_told:
            line(console, f"  no series, this driver can't tell: {', '.join(port.not_told)}")
        for left in port.left_out:
            line(console, f"  left out: {left.counter} {left.value} ({left.why})")
        if port.pause:
            line(console, f"  flow control: {_flow_control(port.pause)}")
        if port.rings:
            rings = (f"{ring.ring} {_or_unknown(ring.entries)} of {_or_unknown(ring.maximum)}" for ring in port.rings)
            line(console, f"  rings: {', '.join(rings)}")


def print_disks(console: Console, disks: Sequence[Disk]) -> None:
    """``plumbline disk``: one line per disk."""
    rows = [
        (
            disk.device,
            disk.model or "",
            disk.device_class or "",
            disk.transport or "",
            si(disk.size_bytes, "B"),
            disk.scheduler or "",
            ", ".join(_used_by(use) for use in describedisks.in_the_end(disk)),
        )
        for disk in disks
    ]
    table(console, ("Device", "Model", "Class", "Transport", "Size", "Scheduler", "Used by"), rows)


def print_disk(console: Console, disk: Disk) -> None:
    """``plumbline disk NAME``: all that is known, then the stack as a tree."""
    line(console, f"{disk.device}: {disk.model or 'no model'}, {si(disk.size_bytes, 'B')}", "bold")
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
        ("OSD", disk.osd),
        ("stands on", ", ".join(disk.lower)),
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
    return f"{use.kind} {use.name or '(not told whose)'}"


def _sum_of(figure: explain.Figure) -> str:
    parts = "".join(f" {term.sign} {term.counter} {term.value}" for term in figure.terms)
    return parts.removeprefix(" + ") or "nothing"


def _flow_control(pause: explain.Pause) -> str:
    words = {True: "on", False: "off", None: "unknown"}
    frames = {
        "netlink": "counted by the kernel (netlink)",
        "driver": "counted by the driver (see pause above)",
        "": "not counted by anyone",
    }[pause.source]
    if pause.source == "netlink":
        frames += f": {_or_unknown(pause.receive_frames)} received, {_or_unknown(pause.transmit_frames)} transmitted"
    settings = ("receive", pause.receive), ("transmit", pause.transmit), ("autonegotiation", pause.autonegotiate)
    return ", ".join(f"{name} {words[value]}" for name, value in settings) + f"; frames {frames}"


def _or_unknown(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def print_findings(console: Console, findings: Sequence[Finding], *, every: bool = False) -> None:
    """``plumbline check``: what is not met by severity, then what makes the fixes permanent, then how much is met."""
    open_ones = report.not_met(findings)
    for severity, group in open_ones.items():
        line(console, f"{severity.value} ({len(group)})", _SEVERITY_STYLE[severity])
        rows = [(each.subject, each.is_, each.should, each.fix.now if each.fix else "") for each in group]
        table(console, ("Subject", "Is", "Should be", "Fix now"), rows)
        line(console, "")
    shown = [each for group in open_ones.values() for each in group]
    for each in {(one.check, one.why): one for one in shown}.values():
        line(console, f"{each.check}: {each.why}")
        line(console, f"  source: {each.source}", "dim")
        if each.fix and each.fix.caution:
            line(console, f"  take care: {each.fix.caution}")
    for (file, place), contents in report.keeps(shown).items():
        line(console, "")
        line(console, f"To stay, in {file}{f' {place}' if place else ''}:", "bold")
        for text in (text for content in contents for text in content.splitlines()):
            line(console, f"  {text}")
    met = [each for each in findings if each.met]
    if shown:
        line(console, "")
    if every and met:
        line(console, f"met ({len(met)})", "green")
        table(console, ("Subject", "Check", "Is"), [(each.subject, each.check, each.is_) for each in met])
    else:
        summary = report.met_summary(findings)
        line(console, f"met ({len(met)}): {', '.join(_times(name, count) for name, count in summary.items())}")


def _times(name: str, count: int) -> str:
    return name if count == 1 else f"{name} ×{count}"


_SEVERITY_STYLE = {Severity.CRITICAL: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold"}
