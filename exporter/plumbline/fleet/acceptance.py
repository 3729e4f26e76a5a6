"""Acceptance: what was recorded becomes the baseline, signed, with who, when and on what; classes get their figures."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import BaselineEntry
from plumbline.baseline.record.text import format_record
from plumbline.baseline.site import LoadedSite, parse_site
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.core import jsontext
from plumbline.core.storage_names import SIGNATURE
from plumbline.core.units import figure_text
from plumbline.errors import BaselineError
from plumbline.fleet.classes import Beside, beside, by_class, class_file, drift
from plumbline.fleet.store import (
    ACCEPTANCES,
    ACCEPTED,
    CLASSES,
    RECORDED,
    YAML,
    Acceptance,
    AcceptedFile,
    Store,
    sha256,
)


class Reviewed(Struct, frozen=True):
    """Every node with figures: those recorded now, and the accepted ones of the others. ``new``: to be accepted."""

    nodes: Mapping[str, LoadedSite]
    texts: Mapping[str, str]
    new: tuple[str, ...]
    rows: tuple[Beside, ...]

    @property
    def outliers(self) -> tuple[Beside, ...]:
        """Rows of new nodes that are out of line with their class."""
        return tuple(row for row in self.rows if row.outlier and row.node in self.new)


class Accepted(Struct, frozen=True):
    """What an acceptance did; ``drifted``: one line for each figure of a class that changed."""

    acceptance: Acceptance
    drifted: tuple[str, ...]


def review(store: Store, catalogue: WorkloadCatalogue, *, without: Iterable[str] = ()) -> Reviewed:
    """All nodes beside their classes. Raises :class:`BaselineError` if nothing is there."""
    recorded, accepted = store.loaded(RECORDED, catalogue), store.loaded(ACCEPTED, catalogue)
    left_out = set(without)
    if unknown := left_out - set(recorded):
        raise BaselineError(str(store.path), f"nothing recorded of: {', '.join(sorted(unknown))}")
    new = tuple(name for name in recorded if name not in left_out)
    kept = {name: recorded[name] for name in new}
    every = {name: pair for name, pair in accepted.items() if name not in kept} | kept
    if not every:
        raise BaselineError(str(store.path), "nothing is recorded; begin with `plumbline fleet record`")
    nodes = {name: site for name, (_, site) in every.items()}
    rows = [row for name, members in by_class(nodes).items() for row in beside(members, name)]
    return Reviewed(nodes, {name: text for name, (text, _) in every.items()}, new, tuple(rows))


def accept(
    store: Store,
    reviewed: Reviewed,
    catalogue: WorkloadCatalogue,
    *,
    by: str,
    key: str,
    sign: Callable[[bytes], bytes],
    although: Iterable[str] = (),
) -> Accepted:
    """Sign and keep what is new. A node out of line is refused unless ``although`` names it; then it counts in no
    figure of its class. Signatures come before files, and the acceptance last: after an interruption accept again.
    Raises :class:`BaselineError`."""
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
    nodes = dict(before.nodes) if before else {}
    for name in reviewed.new:
        _keep(store, ACCEPTED, name, reviewed.texts[name], sign)
        nodes[name] = _accepted_file(name, reviewed)
    classes, drifted = _accept_classes(
        store,
        reviewed,
        catalogue,
        now=now.replace(microsecond=0),
        by=by,
        sign=sign,
        before=before.classes if before else {},
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
    text = jsontext.encode(acceptance)
    stem = f"{now:%Y-%m-%dT%H%M%S.%fZ}.json"
    store.write(ACCEPTANCES, stem + SIGNATURE, sign(text).decode())
    store.write(ACCEPTANCES, stem, text.decode())
    for name in reviewed.new:
        store.remove(RECORDED, name + YAML)
    return Accepted(acceptance, drifted)


def _accept_classes(
    store: Store,
    reviewed: Reviewed,
    catalogue: WorkloadCatalogue,
    *,
    now: datetime,
    by: str,
    sign: Callable[[bytes], bytes],
    before: Mapping[str, AcceptedFile],
) -> tuple[dict[str, AcceptedFile], tuple[str, ...]]:
    """The figures of each class that has a new node; the others stay."""
    odd = {row.node for row in reviewed.rows if row.outlier}
    changed = {reviewed.nodes[name].file.fleet_class for name in reviewed.new}
    found, drifted = dict(before), []
    for name, members in by_class(reviewed.nodes).items():
        typical = {node: site for node, site in members.items() if node not in odd} or members
        if name not in changed or not name:
            continue
        file = class_file(name, typical, when=now, by=by)
        text = format_record(file, catalogue)
        where = str(store.path / CLASSES / (name + YAML))
        loaded = parse_site(text, where=where, host=None, catalogue=catalogue)
        old = store.text(CLASSES, name + YAML) if name in before else None
        then = parse_site(old, where=where, host=None, catalogue=catalogue) if old else None
        software = _software(then, file.tools)
        drifted += [f"class {name}: {_drifted(*each)}{software}" for each in drift(then, loaded.entries)]
        _keep(store, CLASSES, name, text, sign)
        found[name] = AcceptedFile(sha256=sha256(text), fleet_class=name, recorded=now.isoformat())
    return found, tuple(drifted)


def _drifted(entry: BaselineEntry, figure: str, ratio: float) -> str:
    what = f"{entry.device_class} {entry.workload} {entry.operation}"
    side = f"{ratio:.2f} times as bad as" if ratio >= 1 else f"{1 / ratio:.2f} times better than"
    return f"{what}: {figure} is {side} what was accepted before"


def _software(then: LoadedSite | None, now: Mapping[str, str]) -> str:
    """What else changed: ``; meanwhile ceph 18.2.7 → 19.2.3``."""
    before = then.file.tools if then else {}
    changed = [f"{tool} {before[tool]} → {now[tool]}" for tool in now if before.get(tool, now[tool]) != now[tool]]
    return f"; meanwhile {', '.join(changed)}" if changed else ""


def _keep(store: Store, folder: str, name: str, text: str, sign: Callable[[bytes], bytes]) -> None:
    store.write(folder, name + YAML + SIGNATURE, sign(text.encode()).decode())
    store.write(folder, name + YAML, text, keep=True)


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


def words(row: Beside) -> str:
    """``stor03: disk hdd randread-4k-qd1-j1 read: latency.p50 16 ms, its class 8 ms: 2.00 times as bad (…)``."""
    entry, unit = row.entry, row.figure
    own, typical = figure_text(unit, row.value), figure_text(unit, row.middle)
    what = f"{row.node}: {entry.layer} {entry.device_class} {entry.workload} {entry.operation}: {row.figure} {own}"
    side = f"{row.ratio:.2f} times as bad" if row.ratio >= 1 else f"{1 / row.ratio:.2f} times better"
    in_line = "too few nodes to judge" if row.limit is None else f"up to {row.limit:.2f} is in line"
    return f"{what}, its class {typical} ({row.nodes} nodes): {side}; {in_line}"
