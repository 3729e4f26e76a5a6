"""A verdict for each layer that this node measures or knows of, bottom-up, and the suspected layer.

A slow layer slows all layers above it, so the lowest layer that is out of line is suspected, as in the alerts
(``alerts/config/blame.libsonnet``). A layer without a baseline in force is not judged, so it is never good.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from plumbline.checks.model import Finding, Severity
from plumbline.config.workloads import LAYERS
from plumbline.core.units import count_text, factor_text, seconds_text
from plumbline.sources.ceph.osds import OsdState
from plumbline.status import peers, steps
from plumbline.status.model import Comparison, Level, ProbeRow, StatusModel
from plumbline.status.steps import NOTHING, Step

# Layers at the same height are side by side; the height of the others is their index in LAYERS.
_SAME_HEIGHT = {"rbd": 4, "filesystem": 4, "object": 4, "client": 5}
# Findings of other checks belong to the disks and what they are attached to, as in the alerts.
_NETWORK_CHECKS = ("network.", "infiniband.")


class LayerState(StrEnum):
    """The state in words; each maps to a :class:`Level`."""

    OUT_OF_LINE = "out of line"
    WORTH_A_LOOK = "as accepted, worth a look"
    AS_ACCEPTED = "as accepted"
    PARTLY = "as accepted where judged"
    NOT_JUDGED = "not judged here"

    @property
    def level(self) -> Level:
        """Good only if the whole layer was judged."""
        return _LEVELS[self]


_LEVELS = {
    LayerState.OUT_OF_LINE: Level.BAD,
    LayerState.WORTH_A_LOOK: Level.NOTE,
    LayerState.AS_ACCEPTED: Level.GOOD,
    LayerState.PARTLY: Level.NOTE,
    LayerState.NOT_JUDGED: Level.NEUTRAL,
}


class Basis(Struct, frozen=True):
    """One fact on which a verdict is based. ``section``: its section of the page."""

    text: str
    section: str
    level: Level = Level.NEUTRAL
    step: Step = NOTHING


class LayerVerdict(Struct, frozen=True):
    """The verdict on one layer. ``why`` completes "not judged here: …"; ``basis`` has the worst first."""

    layer: str
    state: LayerState
    why: str = ""
    basis: tuple[Basis, ...] = ()
    suspected: bool = False
    above: str = ""  # the suspected layer below if this one is out of line too: this one may only show the effect
    unjudged_below: tuple[str, ...] = ()
    """Layers below a suspected one that are not judged; they may be out of line too."""


@dataclass(slots=True)
class _Seen:
    basis: list[Basis] = field(default_factory=list)
    there: bool = False  # whether this node has any data about the layer

    def add(self, level: Level, text: str, section: str, step: Step = NOTHING) -> None:
        self.basis.append(Basis(text, section, level, step))


def judge_layers(model: StatusModel) -> tuple[LayerVerdict, ...]:
    """The layers that this node measures or knows of, lowest first."""
    verdicts = [entry for layer in LAYERS if (entry := _judge(layer, model)) is not None]
    out = [verdict.layer for verdict in verdicts if verdict.state is LayerState.OUT_OF_LINE]
    if not out:
        return tuple(verdicts)
    lowest = min(map(height, out))
    suspects = " or ".join(layer for layer in out if height(layer) == lowest)
    unjudged = tuple(
        verdict.layer
        for verdict in verdicts
        if verdict.state is LayerState.NOT_JUDGED and height(verdict.layer) < lowest
    )
    return tuple(
        verdict
        if verdict.layer not in out
        else replace(verdict, suspected=True, unjudged_below=unjudged)
        if height(verdict.layer) == lowest
        else replace(verdict, above=suspects)
        for verdict in verdicts
    )


def height(layer: str) -> int:
    """The order from the network up; layers side by side have the same."""
    return _SAME_HEIGHT.get(layer, LAYERS.index(layer) if layer in LAYERS else len(LAYERS))


def _judge(layer: str, model: StatusModel) -> LayerVerdict | None:
    seen = _Seen()
    probes = [row for row in model.probes if row.layer == layer]
    _probes(probes, seen)
    if layer == "network":
        _losses(model, seen)
        _findings((finding for finding in model.open_findings if finding.check.startswith(_NETWORK_CHECKS)), seen)
    elif layer == "disk":
        _disks(model, seen)
        _findings((finding for finding in model.open_findings if not finding.check.startswith(_NETWORK_CHECKS)), seen)
    elif layer == "osd":
        _osds(model, seen)
    if not seen.there:
        return None
    order = (Level.BAD, Level.NOTE, Level.GOOD, Level.NEUTRAL)
    basis = tuple(sorted(seen.basis, key=lambda basis_row: order.index(basis_row.level)))
    state, why = _state(probes, {part.level for part in basis})
    return LayerVerdict(layer, state, why, basis)


def _state(probes: list[ProbeRow], levels: set[Level]) -> tuple[LayerState, str]:
    judged = sum(bool(row.judged) for row in probes)
    if Level.BAD in levels:
        return LayerState.OUT_OF_LINE, ""
    if not judged:
        if not probes:
            return LayerState.NOT_JUDGED, "no probe"
        if any(row.judges for row in probes):
            return LayerState.NOT_JUDGED, "no current result to compare"
        return LayerState.NOT_JUDGED, "no baseline"
    if Level.NOTE in levels:
        return LayerState.WORTH_A_LOOK, ""
    return (LayerState.AS_ACCEPTED, "") if judged == len(probes) else (LayerState.PARTLY, "")


def _probes(probes: list[ProbeRow], seen: _Seen) -> None:
    seen.there |= bool(probes)
    if not probes:
        return
    stuck = [row for row in probes if row.stuck_s is not None]
    failing = [row for row in probes if row.success is False and row.stuck_s is None]
    overdue = [row for row in probes if row.overdue]
    if stuck:
        seen.add(Level.BAD, _counted(stuck, "hangs", "hang"), "probes", steps.probe(stuck[0]))
    if failing:
        seen.add(Level.BAD, _counted(failing, "fails", "fail"), "probes", steps.probe(failing[0]))
    judged = [(row, name, figure) for row in probes for name, figure in row.judged]
    if judged:
        row, name, figure = max(judged, key=lambda row: row[2].excess)
        level = Level.BAD if figure.beyond else Level.GOOD
        beyond = len({id(row) for row, _, figure in judged if figure.beyond})
        many = f"; {beyond} of {len(probes)} measurements beyond" if beyond > 1 else ""
        step = steps.beyond(row, figure.measure) if figure.beyond else NOTHING
        seen.add(level, f"worst: {row.name}, {name} {_ratio(figure)}{many}", "probes", step)
    unjudged = sum(not row.judges for row in probes)
    if unjudged:
        what = "measurements has" if unjudged == 1 else "measurements have"
        seen.add(Level.NEUTRAL, f"{unjudged} of {len(probes)} {what} no baseline", "probes")
    if overdue:
        seen.add(Level.NOTE, _counted(overdue, "is overdue", "are overdue"), "probes", steps.overdue(overdue[0]))


def _ratio(figure: Comparison) -> str:
    """``1.9× slower (degradation ratio 1.90, up to 1.30 is accepted)``."""
    ratio, tolerance = figure.ratio or 0.0, figure.tolerance_ratio or 1.0
    shown = f"{ratio:.2f}" if ratio < 9.95 else factor_text(ratio)
    return f"{figure.word} (degradation ratio {shown}, up to {tolerance:.2f} is accepted)"


def _counted(rows: list[ProbeRow], singular: str, many: str) -> str:
    return f"{rows[0].name} {singular}" if len(rows) == 1 else f"{len(rows)} measurements {many}, first {rows[0].name}"


def _losses(model: StatusModel, seen: _Seen) -> None:
    seen.there |= bool(model.nics)
    grew = [(nic.device, loss) for nic in model.nics for loss in nic.losses if loss.grew and not loss.benign]
    for device, loss in grew:
        level = Level.BAD if loss.out_of_line else Level.NEUTRAL
        step = steps.loss(device, loss) if loss.out_of_line else NOTHING
        seen.add(level, f"{device}: {loss.grown}", "network", step)
    softnet = model.softnet
    if softnet is not None and softnet.dropped_grew:
        level = Level.BAD if softnet.out_of_line else Level.NEUTRAL
        seen.add(level, f"backlog overflow: {softnet.dropped_grew:,} more packets dropped", "softnet", steps.BACKLOG)
    if softnet is not None and softnet.time_squeeze_grew:
        seen.add(Level.NOTE, count_text(softnet.time_squeeze_grew, "more time squeeze"), "softnet", steps.TIME_SQUEEZE)
    if model.nics and not grew and model.window_s is not None:
        seen.add(Level.NEUTRAL, f"no packet lost in the last {seconds_text(round(model.window_s))}", "network")


def _disks(model: StatusModel, seen: _Seen) -> None:
    """Beside each other: that no disk is slower than its peers makes none as accepted."""
    seen.there |= bool(model.disks)
    compared = peers.compare(model.disks, model.window_s)
    for disk in compared.values():
        if disk.out_of_line:
            seen.add(Level.BAD, f"{disk.device}: {disk.text}", "disks", steps.disk(disk.device))
    if not compared:
        return
    alone = len(model.disks) - len(compared)
    rest = f"; {alone} not: idle, of other work, or without peers" if alone else ""
    seen.add(Level.NEUTRAL, f"{count_text(len(compared), 'disk')} compared with equal ones here{rest}", "disks")


def _osds(model: StatusModel, seen: _Seen) -> None:
    seen.there |= bool(model.osds)
    if not model.osds:
        return
    ended = [osd for osd in model.osds if osd.answer is OsdState.ENDED]
    silent = [osd for osd in model.osds if not osd.answers and osd not in ended]
    blocked = [osd for osd in model.osds if osd.blocked]
    slow = [osd for osd in model.osds if osd.slow]
    for level, osds, what in (
        (Level.BAD, silent, "not answering"),
        (Level.BAD, ended, "ended"),
        (Level.BAD, blocked, "with blocked operations"),
        (Level.NOTE, slow, "with slow operations in the last ten minutes"),
    ):
        if osds:
            names = _names([osd.daemon for osd in osds])
            step = steps.SLOW_OSD if osds is slow else steps.osd(osds[0])
            seen.add(level, f"{len(osds)} of {len(model.osds)} OSDs {what}: {names}", "osds", step)
    if not silent and not ended and not blocked:
        seen.add(Level.NEUTRAL, f"{len(model.osds)} OSDs here, all answering", "osds")


def _names(names: list[str]) -> str:
    return ", ".join(names[:4]) + (" …" if len(names) > 4 else "")


def _findings(open_ones: Iterable[Finding], seen: _Seen) -> None:
    counts = Counter(finding.severity for finding in open_ones)
    for severity in Severity:
        if counts[severity]:
            seen.there = True
            level = {Severity.CRITICAL: Level.BAD, Severity.WARNING: Level.NOTE}.get(severity, Level.NEUTRAL)
            seen.add(level, count_text(counts[severity], f"{severity} finding"), "findings", steps.FINDINGS)
