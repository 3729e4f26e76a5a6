"""Which baseline is meant, and the contents of ``plumbline baseline list`` and ``show``, as the types of ``shown``."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from plumbline.baseline import budget as budgets
from plumbline.baseline.budget import Budget, Link, Stage
from plumbline.baseline.model import BaselineEntry, Source
from plumbline.baseline.profiles import LoadedProfile, Point, Row
from plumbline.baseline.shown import Figure, Shown, ShownBudget, ShownLink, ShownRow, ShownStage, Summary
from plumbline.baseline.site import LoadedSite, SiteEntry
from plumbline.core.units import duration_text, si
from plumbline.errors import BaselineError, UnknownName

Loaded = LoadedProfile | LoadedSite


def named(name: str, profiles: Mapping[str, LoadedProfile], sites: Sequence[LoadedSite]) -> list[Loaded]:
    """All known baselines with this name (a file's path is one, too), files first."""
    matching: list[Loaded] = [site for site in sites if name in (site.where, site.name)]
    return [*matching, profiles[name]] if name in profiles else matching


def near_names(name: str, profiles: Mapping[str, LoadedProfile], sites: Sequence[LoadedSite]) -> str:
    """The names similar to ``name``, or all names if none is."""
    names = [*profiles, *(site.name for site in sites)]
    return ", ".join(difflib.get_close_matches(name, names, n=3, cutoff=0.3) or names)


def find(
    name: str,
    profiles: Mapping[str, LoadedProfile],
    sites: Sequence[LoadedSite],
    *,
    read: Callable[[Path], LoadedSite],
) -> Loaded:
    """The profile or file that ``name`` means; ``read`` reads a file that the configuration does not name. The file may
    come from another host: it is only shown here and does not judge. Raises :class:`UnknownName` if nothing has the
    name, and :class:`BaselineError` if more than one baseline has it, and for an invalid file."""
    matching = named(name, profiles, sites)
    if len(matching) > 1:
        where = ", ".join(site.where for site in sites if site.name == name)
        raise BaselineError(name, f"{len(matching)} baselines have this name; say which by its path: {where}")
    if matching:
        return matching[0]
    if "/" in name or Path(name).is_file():
        return read(Path(name))
    raise UnknownName(f"{name}: no such baseline or file; there are: {near_names(name, profiles, sites)}")


def summaries(
    profiles: Mapping[str, LoadedProfile], sites: Sequence[LoadedSite], judge: Mapping[str, str]
) -> tuple[Summary, ...]:
    """All known baselines, strongest source first; ``judge``: the configuration's device class → profile."""
    rows = [_site_summary(site) for site in sites]
    for name, loaded in profiles.items():
        classes, entries = _by_class(loaded.entries), len(loaded.entries)
        judges = tuple(sorted(cls for cls, chosen in judge.items() if chosen == name and cls in classes))
        title = loaded.profile.title
        rows.append(Summary(name, Source.DOCUMENTED, title, "", entries, classes, judges, holds=_holds(loaded)))
    return tuple(sorted(rows, key=lambda summary: list(Source).index(summary.source)))


def show(
    name: str,
    profiles: Mapping[str, LoadedProfile],
    sites: Sequence[LoadedSite],
    *,
    layer: str | None = None,
    device_class: str | None = None,
    workload: str | None = None,
) -> Shown:
    """One profile (by name) or file (by name or path). ``workload`` may be a shell pattern, such as ``randwrite-*``.
    Raises :class:`UnknownName`, with similar names."""
    wanted = Filter(layer, device_class, workload)
    matching = named(name, profiles, sites)
    if not matching:
        raise UnknownName(f"{name}: no such baseline; there are: {near_names(name, profiles, sites)}")
    if isinstance(matching[0], LoadedSite):
        return narrowed(_shown_site(matching[0]), wanted, {})
    loaded = matching[0]
    classes = {key: hardware.device_class for key, hardware in loaded.profile.hardware.items()}
    return narrowed(_shown_profile(loaded), wanted, loaded.layers, classes)


def _by_class(entries: Iterable[BaselineEntry]) -> dict[str, int]:
    return dict(sorted(Counter(entry.device_class for entry in entries).items()))


def _holds(loaded: LoadedProfile) -> dict[str, int]:
    """Counts of what a profile holds besides its rows; zero counts are left out."""
    profile = loaded.profile
    counts = {
        "budgets": len(profile.budgets),
        "settings": len(profile.settings),
        "methods": len(profile.methods),
        "pictures": len(profile.pictures),
        "left out": len(profile.left_out),
        "contradictions": len(profile.contradictions),
        "rows in doubt": sum(bool(row.entry.doubt) for row in loaded.rows),
    }
    return {name: count for name, count in counts.items() if count}


def _site_summary(site: LoadedSite) -> Summary:
    classes = _by_class(site.entries)
    return Summary(
        name=site.name,
        source=Source(site.file.source),
        title=_site_title(site),
        where=site.where,
        entries=len(site.entries),
        device_classes=classes,
        judges=tuple(classes),
        recorded=site.file.recorded.isoformat() if site.file.recorded else "",
    )


def _site_title(site: LoadedSite) -> str:
    file = site.file
    if file.source == "measured":
        return f"recorded on {file.host}"
    if file.source == "class":
        of = f"class {file.fleet_class} ({len(file.hosts)} hosts)"
        return f"accepted figures of {of}, until this host's own are recorded"
    return f"written for {file.host}" if file.host else "written by the site"


def _shown_site(site: LoadedSite) -> Shown:
    file = site.file
    facts = {
        "file": site.where,
        "host": file.host,
        "class": file.fleet_class,
        "hosts": ", ".join(file.hosts),
        "recorded": file.recorded.isoformat() if file.recorded else "",
        "kernel": file.kernel,
        "tools": ", ".join(f"{tool} {version}" for tool, version in file.tools.items()),
        "devices": "; ".join(" ".join(filter(None, (d.name, d.device_class, d.model, d.serial))) for d in file.devices),
    }
    rows = tuple(_site_row(entry, wrote) for entry, wrote in zip(site.entries, file.entries, strict=True))
    facts = {key: value for key, value in facts.items() if value}
    return Shown(site.name, Source(file.source), _site_title(site), facts, rows)


def _site_row(entry: BaselineEntry, wrote: SiteEntry) -> ShownRow:
    notes = [wrote.note] if wrote.note else []
    if wrote.rate_iops:
        notes.append(f"capped at {wrote.rate_iops:g} operations a second per job")
    if wrote.runs and wrote.spread_ratio and wrote.mad_ratio is not None:
        spread = f"highest median over lowest {wrote.spread_ratio:.2f}, MAD {wrote.mad_ratio:.1%}"
        notes.append(f"{wrote.runs} {'hosts' if entry.source is Source.CLASS else 'runs'}; {spread}")
    return _row(entry, wrote, series=f"{entry.device_class} {wrote.device}".strip(), notes=tuple(notes))


def _shown_profile(loaded: LoadedProfile) -> Shown:
    profile = loaded.profile
    document = f"{profile.document.title}, {profile.document.year or 'not dated'} ({profile.document.language})"
    return Shown(
        profile.name,
        Source.DOCUMENTED,
        profile.title,
        {"document": document},
        tuple(_profile_row(row) for row in loaded.rows),
        profile.pictures,
        profile.left_out,
        profile.contradictions,
        tuple(_shown_budget(budget, loaded) for budget in profile.budgets),
        profile.settings,
        profile.methods,
    )


def _shown_budget(budget: Budget, loaded: LoadedProfile) -> ShownBudget:
    return ShownBudget(
        budget.about,
        f"{budget.where}, line {budget.line}",
        budget.workload,
        loaded.layers[budget.workload],
        loaded.profile.hardware[budget.hardware].description,
        budget.tool,
        budget.command,
        tuple(_shown_link(budget, link) for link in budget.links),
        tuple(filter(None, (budget.conditions, budget.note))),
        {stage.name: _stage_note(stage) for stage in budget.stages},
    )


def _shown_link(budget: Budget, link: Link) -> ShownLink:
    stages = []
    for part in budgets.parts(budget, link):
        stage, printed = part.stage, part.printed.text
        stages.append(ShownStage(stage.name, stage.layer, printed, stage.times, part.seconds, part.share_ratio))
    total = Figure("total", link.total.text, link.total.value, "s")
    over = budgets.over(budget, link)
    return ShownLink(link.link, link.device_class, link.line, total, tuple(stages), over, link.breaks)


def _stage_note(stage: Stage) -> str:
    times = "once" if stage.times == 1 else f"{stage.times} times"
    live = f"; measured live by {stage.workload}" if stage.workload else ""
    head = f"layer {stage.layer}, passed {times}{live}; column: {stage.printed}"
    return f"{head}. {stage.note[:1].upper()}{stage.note[1:]}" if stage.note else head


def _profile_row(row: Row) -> ShownRow:
    hardware = row.hardware.model or row.hardware.description
    return _row(
        row.entry,
        row.point,
        series=f"{row.series.where}: {row.entry.device_class}, {hardware}",
        tool=row.series.tool,
        command=row.series.command,
        line=row.point.line,
        judges=not row.entry.doubt,
        breaches=tuple(breach.text for breach in row.breaches),
        notes=tuple(_profile_notes(row)),
    )


def _profile_notes(row: Row) -> Iterator[str]:
    yield from row.point.breaks.values()
    yield from filter(None, (row.point.doubt,))
    for other in row.point.not_used:
        yield f"not used: {other.figure} {other.printed} ({other.where}, line {other.line}): {other.why}"
    if row.point.retransmits is not None:
        during = f" in {row.point.duration.text}" if row.point.duration else ""
        yield f"{row.point.retransmits} segments retransmitted{during}"
    if row.point.also:
        spread = ", ".join(f"{also.figure} {also.statistic} {also.printed}" for also in row.point.also)
        yield f"also printed: {spread}"
    yield from filter(None, (row.point.note, row.series.note, row.series.conditions))


def _row(entry: BaselineEntry, wrote: Point | SiteEntry, **more: Any) -> ShownRow:
    figures = [Figure(f"latency.{name}", figure.text, figure.value, "s") for name, figure in wrote.latency.items()]
    for name, rate, unit in (("iops", wrote.iops, "1/s"), ("throughput", wrote.throughput, "B/s")):
        if rate:
            figures.append(Figure(name, rate.text, rate.value, unit))
    return ShownRow(
        layer=entry.layer,
        device_class=entry.device_class,
        workload=entry.workload,
        operation=entry.operation,
        config_hash=entry.config_hash,
        figures=tuple(figures),
        tolerance_ratio=entry.tolerance_ratio,
        level=_level(entry),
        **more,
    )


def _level(entry: BaselineEntry) -> str:
    """``spread 1m 2.1 %, 5m 0 %; calm after 20 s; load 120 IOPS, 3 MB/s``, of what is known."""
    parts = []
    if entry.level_spread:
        parts.append(
            "spread " + ", ".join(f"{span} {100 * spread:.2g} %" for span, spread in entry.level_spread.items())
        )
    if entry.calm_seconds is not None:
        parts.append(f"calm after {duration_text(entry.calm_seconds)}")
    if entry.load_ops_per_second is not None and entry.load_bytes_per_second is not None:
        load = f"{entry.load_ops_per_second:,.0f} IOPS, {si(entry.load_bytes_per_second, 'B/s')}"
        parts.append(f"load {load}")
    return "; ".join(parts)


class Filter(msgspec.Struct, frozen=True):
    """The filter; ``None`` matches everything. ``workload`` is an id or a shell pattern."""

    layer: str | None = None
    device_class: str | None = None
    workload: str | None = None

    def has(self, layer: str, device_class: str, workload: str) -> bool:
        return (
            self.layer in (None, layer)
            and self.device_class in (None, device_class)
            and (self.workload is None or fnmatchcase(workload, self.workload))
        )


def narrowed(
    shown: Shown, wanted: Filter, layers: Mapping[str, str], classes: Mapping[str, str] | None = None
) -> Shown:
    """``shown``, filtered. ``layers``: workload → layer for workloads named outside the rows; ``classes``: hardware →
    device class. Statements about the whole document (contradictions, figures left out) are shown only without a
    filter. Raises :class:`BaselineError` if nothing is left, listing what there is."""
    if wanted == Filter():
        return shown
    classes = classes or {}

    def matches(workloads: Sequence[str], device_class: str) -> bool:
        return any(wanted.has(layers[workload], device_class, workload) for workload in workloads)

    rows = tuple(row for row in shown.rows if wanted.has(row.layer, row.device_class, row.workload))
    budgets = tuple(budget for entry in shown.budgets for budget in _budget(entry, wanted))
    methods = tuple(method for method in shown.methods if matches(method.workloads, classes.get(method.hardware, "")))
    pictures = tuple(picture for picture in shown.pictures if matches(picture.workloads, ""))
    by_layer = wanted.layer is not None and Filter(wanted.layer) == wanted
    settings = tuple(
        setting for setting in shown.settings if by_layer and setting.check.partition(".")[0] == wanted.layer
    )
    if not (rows or budgets or methods or pictures or settings):
        have = ", ".join(_have(shown, layers, classes)) or "no row"
        reason = f"nothing matches this layer, device class and workload; it has: {have}"
        raise BaselineError(shown.name, reason)
    return msgspec.structs.replace(
        shown,
        rows=rows,
        budgets=budgets,
        methods=methods,
        pictures=pictures,
        settings=settings,
        left_out=(),
        contradictions=(),
    )


def _budget(budget: ShownBudget, wanted: Filter) -> Iterator[ShownBudget]:
    links = tuple(link for link in budget.links if wanted.has(budget.layer, link.device_class, budget.workload))
    if links:
        yield msgspec.structs.replace(budget, links=links)


def _have(shown: Shown, layers: Mapping[str, str], classes: Mapping[str, str]) -> list[str]:
    have = {f"{row.layer} {row.device_class}" for row in shown.rows}
    have |= {f"{budget.layer} {link.device_class}" for budget in shown.budgets for link in budget.links}
    have |= {
        f"{layers[workload]} {classes.get(method.hardware, '')}".rstrip()
        for method in shown.methods
        for workload in method.workloads
    }
    return sorted(have)
