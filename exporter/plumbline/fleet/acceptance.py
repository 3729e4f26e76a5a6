"""Acceptance: what was recorded becomes the baseline, signed, with who, when and on what; classes get their figures."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import BaselineEntry
from plumbline.baseline.record.text import format_record
from plumbline.baseline.site import LoadedSite
from plumbline.core import jsontext
from plumbline.core.units import figure_text
from plumbline.errors import BaselineError
from plumbline.fleet.answers import NodeFault, checked_site, from_node
from plumbline.fleet.classes import ClassSpread, by_class, class_file, class_spread, drift
from plumbline.fleet.store import (
    ACCEPTED,
    CLASSES,
    RECORDED,
    YAML,
    Acceptance,
    AcceptedFile,
    Pending,
    SignedFile,
    Store,
    sha256,
)


class Reviewed(Struct, frozen=True):
    """Every node with figures: those recorded now, and the accepted ones of the others. ``new``: to be accepted;
    ``faults``: nodes whose file here can't be used, which nothing else depends on."""

    nodes: Mapping[str, LoadedSite]
    texts: Mapping[str, str]
    new: tuple[str, ...]
    rows: tuple[ClassSpread, ...]
    faults: Mapping[str, NodeFault] = {}

    @property
    def outliers(self) -> tuple[ClassSpread, ...]:
        """Rows of new nodes that are out of line with their class."""
        return tuple(row for row in self.rows if row.outlier and row.node in self.new)


class Accepted(Struct, frozen=True):
    """What an acceptance did; ``drifted``: one line for each figure of a class that changed, and for each class that
    got no figures."""

    acceptance: Acceptance
    drifted: tuple[str, ...]


def review(store: Store, *, without: Iterable[str] = ()) -> Reviewed:
    """All nodes beside their classes. Raises :class:`BaselineError` if nothing is there."""
    recorded, accepted, left_out = store.loaded(RECORDED), store.loaded(ACCEPTED), set(without)
    if unknown := left_out - {*recorded, *recorded.faults}:
        raise BaselineError(str(store.path), f"nothing recorded of: {', '.join(sorted(unknown))}")
    new = tuple(name for name in recorded if name not in left_out)
    kept = {name: recorded[name] for name in new}
    every = {name: pair for name, pair in accepted.items() if name not in kept} | kept
    faults = {name: fault for name, fault in (accepted.faults | recorded.faults).items() if name not in left_out}
    if not every and not faults:
        raise BaselineError(str(store.path), "nothing is recorded; begin with `plumbline fleet record`")
    nodes = {name: site for name, (_, site) in every.items()}
    rows = [row for name, members in by_class(nodes).items() for row in class_spread(members, name)]
    return Reviewed(nodes, {name: text for name, (text, _) in every.items()}, new, tuple(rows), faults)


def accept(
    store: Store, reviewed: Reviewed, *, by: str, key: str, sign: Callable[[bytes], bytes], although: Iterable[str] = ()
) -> Accepted:
    """Sign and keep what is new, all of it or nothing. A node out of line is refused unless ``although`` names it; then
    it counts in no figure of its class. Call it, and :func:`review` before, while :meth:`Store.alone` is held. Raises
    :class:`BaselineError`."""
    named = set(although)
    odd = sorted({row.node for row in reviewed.outliers} - named)
    if odd:
        reason = (
            f"out of line with their class: {', '.join(odd)}; see `plumbline fleet review`, then mend and record "
            "again, leave out (--without NODE) or accept all the same (--although NODE)"
        )
        raise BaselineError(str(store.path), reason)
    if not reviewed.new:
        raise BaselineError(str(store.path), "nothing new is recorded; `plumbline fleet record` records what changed")
    before, now = store.last_acceptance(), datetime.now(UTC)
    nodes = (before.nodes if before else {}) | {name: _accepted_file(name, reviewed) for name in reviewed.new}
    classes, texts, drifted = _class_files(
        store, reviewed, now=now.replace(microsecond=0), by=by, before=before.classes if before else {}
    )
    acceptance = Acceptance(
        accepted_by=by,
        accepted=now.isoformat(timespec="seconds"),
        key=key,
        now=reviewed.new,
        nodes=nodes,
        classes=classes,
        outliers=tuple(words(row) for row in reviewed.outliers),
    )

    def signed(folder: str, name: str, text: str) -> SignedFile:
        return SignedFile(folder=folder, name=name, text=text, signature=sign(text.encode()).decode())

    text = jsontext.encode(acceptance)
    store.commit(
        Pending(
            name=f"{now:%Y-%m-%dT%H%M%S.%fZ}.json",
            text=text.decode(),
            signature=sign(text).decode(),
            files=(
                *(signed(ACCEPTED, name, reviewed.texts[name]) for name in reviewed.new),
                *(signed(CLASSES, name, text) for name, text in texts.items()),
            ),
        )
    )
    return Accepted(acceptance, drifted)


def _class_files(
    store: Store, reviewed: Reviewed, *, now: datetime, by: str, before: Mapping[str, AcceptedFile]
) -> tuple[dict[str, AcceptedFile], dict[str, str], tuple[str, ...]]:
    """The figures of each class that has a new node; the others stay. Also their texts, and a line for each figure that
    changed and for each class that has none."""
    changed = {reviewed.nodes[name].file.fleet_class for name in reviewed.new}
    odd = {row.node for row in reviewed.rows if row.outlier}

    def checked(text: str, name: str) -> LoadedSite:
        where = str(store.path / CLASSES / (name + YAML))
        return checked_site(text, where=where, host=None)

    def made(name: str, members: Mapping[str, LoadedSite]) -> tuple[str, LoadedSite]:
        typical = {node: site for node, site in members.items() if node not in odd} or members
        text = format_record(class_file(name, typical, when=now, by=by))
        return text, checked(text, name)

    files, texts, lines = dict(before), dict[str, str](), list[str]()
    for name, members in by_class(reviewed.nodes).items():
        if name not in changed or not name:
            continue
        new = from_node(partial(made, name, members))
        if isinstance(new, NodeFault):
            lines.append(f"class {name}: no figures could be made of its nodes: {new.reason}")
            continue
        old = store.text(CLASSES, name + YAML) if name in before else None
        then = from_node(partial(checked, old, name)) if old else None
        lines += _drift_lines(name, None if isinstance(then, NodeFault) else then, new[1])
        texts[name] = new[0]
        files[name] = AcceptedFile(sha256=sha256(new[0]), fleet_class=name, recorded=now.isoformat())
    return files, texts, tuple(lines)


def _drift_lines(name: str, then: LoadedSite | None, now: LoadedSite) -> list[str]:
    software = _software(then, now.file.tools)
    return [f"class {name}: {_drifted(*figure)}{software}" for figure in drift(then, now.entries)]


def _drifted(entry: BaselineEntry, figure: str, ratio: float) -> str:
    what = f"{entry.device_class} {entry.workload} {entry.operation}"
    side = f"{ratio:.2f} times as bad as" if ratio >= 1 else f"{1 / ratio:.2f} times better than"
    return f"{what}: {figure} is {side} what was accepted before"


def _software(then: LoadedSite | None, now: Mapping[str, str]) -> str:
    """What else changed: ``; meanwhile ceph 18.2.7 → 19.2.3``."""
    before = then.file.tools if then else {}
    changed = [f"{tool} {before[tool]} → {now[tool]}" for tool in now if before.get(tool, now[tool]) != now[tool]]
    return f"; meanwhile {', '.join(changed)}" if changed else ""


def _accepted_file(name: str, reviewed: Reviewed) -> AcceptedFile:
    file = reviewed.nodes[name].file
    return AcceptedFile(
        sha256=sha256(reviewed.texts[name]),
        fleet_class=file.fleet_class,
        host=file.host,
        recorded=file.recorded.isoformat() if file.recorded else "",
        fingerprint=file.fingerprint or Fingerprint(),
        beside=tuple(words(row) for row in reviewed.rows if row.node == name),
    )


def words(row: ClassSpread) -> str:
    """``stor03: disk hdd randread-4k-qd1-j1 read: latency.p50 16 ms, its class 8 ms: 2.00 times as bad (…)``."""
    entry, unit = row.entry, row.figure
    own, typical = figure_text(unit, row.value), figure_text(unit, row.middle)
    what = f"{row.node}: {entry.layer} {entry.device_class} {entry.workload} {entry.operation}: {row.figure} {own}"
    side = f"{row.ratio:.2f} times as bad" if row.ratio >= 1 else f"{1 / row.ratio:.2f} times better"
    in_line = "too few nodes to judge" if row.limit is None else f"up to {row.limit:.2f} is in line"
    return f"{what}, its class {typical} ({row.nodes} nodes): {side}; {in_line}"
