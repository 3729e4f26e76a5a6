"""The contents of ``plumbline baseline list`` and ``show``, as the types of ``shown``."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from plumbline.baseline import budget as budgets
from plumbline.baseline.budget import Budget, Stage
from plumbline.baseline.model import BaselineEntry, Source
from plumbline.baseline.narrow import Wanted, narrowed
from plumbline.baseline.profiles import LoadedProfile, Row
from plumbline.baseline.shown import Figure, Shown, ShownBudget, ShownLink, ShownRow, ShownStage, Summary
from plumbline.baseline.site import LoadedSite, SiteEntry
from plumbline.baseline.units import Quantity
from plumbline.errors import BaselineError


def summaries(
    profiles: Mapping[str, LoadedProfile], sites: Sequence[LoadedSite], judge: Mapping[str, str]
) -> tuple[Summary, ...]:
    """All known baselines, strongest source first; ``judge``: the configuration's device class → profile."""
    found = [_site_summary(site) for site in sites]
    for name, loaded in profiles.items():
        classes = _by_class(loaded.entries)
        judges = tuple(sorted(cls for cls, chosen in judge.items() if chosen == name and cls in classes))
        title, entries = loaded.profile.title, len(loaded.entries)
        holds = _holds(loaded)
        found.append(Summary(name, Source.DOCUMENTED, title, "", entries, classes, judges, holds=holds))
    return tuple(sorted(found, key=lambda one: list(Source).index(one.source)))


def show(
    name: str,
    profiles: Mapping[str, LoadedProfile],
    sites: Sequence[LoadedSite],
    *,
    layer: str | None = None,
    device_class: str | None = None,
    workload: str | None = None,
) -> Shown:
    """One profile (by name) or file (by name or path).

    ``workload`` may be a shell pattern, such as ``randwrite-*``. Raises :class:`BaselineError` for an unknown ``name``,
    with similar names.
    """
    wanted = Wanted(layer, device_class, workload)
    for site in sites:
        if name in (site.where, _site_name(site)):
            return narrowed(_shown_site(site), wanted, {})
    if name in profiles:
        loaded = profiles[name]
        classes = {key: hardware.device_class for key, hardware in loaded.profile.hardware.items()}
        return narrowed(_shown_profile(loaded), wanted, loaded.layers, classes)
    known = [*profiles, *map(_site_name, sites)]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or known
    raise BaselineError(name, f"no such baseline; there are: {', '.join(near)}")


def _site_name(site: LoadedSite) -> str:
    return site.entries[0].profile


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
        name=_site_name(site),
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
    return f"written for {file.host}" if file.host else "written by the site"


def _shown_site(site: LoadedSite) -> Shown:
    file = site.file
    facts = {
        "file": site.where,
        "host": file.host,
        "recorded": file.recorded.isoformat() if file.recorded else "",
        "kernel": file.kernel,
        "tools": ", ".join(f"{tool} {version}" for tool, version in file.tools.items()),
        "devices": "; ".join(" ".join(filter(None, (d.name, d.device_class, d.model, d.serial))) for d in file.devices),
    }
    rows = tuple(_site_row(entry, wrote) for entry, wrote in zip(site.entries, file.entries, strict=True))
    facts = {key: value for key, value in facts.items() if value}
    return Shown(_site_name(site), Source(file.source), _site_title(site), facts, rows)


def _site_row(entry: BaselineEntry, wrote: SiteEntry) -> ShownRow:
    printed: list[tuple[str, Quantity | None]] = [
        *((f"latency.{statistic}", figure) for statistic, figure in wrote.latency.items()),
        ("iops", wrote.iops),
        ("throughput", wrote.throughput),
    ]
    notes = [wrote.note] if wrote.note else []
    if wrote.rate_iops:
        notes.append(f"capped at {wrote.rate_iops:g} operations a second per job")
    if wrote.runs and wrote.spread_ratio and wrote.mad_ratio is not None:
        notes.append(
            f"{wrote.runs} runs; highest median over lowest {wrote.spread_ratio:.2f}, MAD {wrote.mad_ratio:.1%}"
        )
    return _row(entry, printed, series=" ".join(filter(None, (entry.device_class, wrote.device))), notes=tuple(notes))


def _shown_profile(loaded: LoadedProfile) -> Shown:
    profile = loaded.profile
    facts = {
        "document": f"{profile.document.title}, {profile.document.year or 'not dated'} ({profile.document.language})",
    }
    return Shown(
        profile.name,
        Source.DOCUMENTED,
        profile.title,
        facts,
        tuple(_profile_row(row) for row in loaded.rows),
        profile.pictures,
        profile.left_out,
        profile.contradictions,
        tuple(_shown_budget(one, loaded) for one in profile.budgets),
        profile.settings,
        profile.methods,
    )


def _shown_budget(one: Budget, loaded: LoadedProfile) -> ShownBudget:
    hardware = loaded.profile.hardware[one.hardware]
    links = [
        ShownLink(
            link.link,
            link.device_class,
            link.line,
            Figure("total", link.total.text, link.total.value, "s"),
            tuple(
                ShownStage(
                    part.stage.name,
                    part.stage.layer,
                    part.printed.text,
                    part.stage.times,
                    part.seconds,
                    part.share_ratio,
                )
                for part in budgets.parts(one, link)
            ),
            budgets.over(one, link),
            link.breaks,
        )
        for link in one.links
    ]
    return ShownBudget(
        one.about,
        f"{one.where}, line {one.line}",
        one.workload,
        loaded.layers[one.workload],
        hardware.description,
        one.tool,
        one.command,
        tuple(links),
        tuple(filter(None, (one.conditions, one.note))),
        {stage.name: _stage_note(stage) for stage in one.stages},
    )


def _stage_note(stage: Stage) -> str:
    times = "once" if stage.times == 1 else f"{stage.times} times"
    live = f"; measured live by {stage.workload}" if stage.workload else ""
    head = f"layer {stage.layer}, passed {times}{live}; column: {stage.printed}"
    return f"{head}. {stage.note[:1].upper()}{stage.note[1:]}" if stage.note else head


def _profile_row(row: Row) -> ShownRow:
    point = row.point
    printed: list[tuple[str, Quantity | None]] = [
        *((f"latency.{statistic}", figure) for statistic, figure in point.latency.items()),
        ("iops", point.iops),
        ("throughput", point.throughput),
    ]
    hardware = row.hardware.model or row.hardware.description
    return _row(
        row.entry,
        printed,
        series=f"{row.series.where}: {row.entry.device_class}, {hardware}",
        tool=row.series.tool,
        command=row.series.command,
        line=point.line,
        judges=not row.entry.doubt,
        breaches=tuple(breach.found for breach in row.breaches),
        notes=tuple(_profile_notes(row)),
    )


def _profile_notes(row: Row) -> Iterator[str]:
    yield from row.point.breaks.values()
    yield from filter(None, (row.point.doubt,))
    for other in row.point.not_used:
        yield f"not used: {other.figure} {other.printed} ({other.where}, line {other.line}): {other.why}"
    if row.point.retransmits is not None:
        during = f" in {row.point.duration.text}" if row.point.duration else ""
        yield f"{row.point.retransmits} segments sent again{during}"
    if row.point.also:
        spread = ", ".join(f"{also.figure} {also.statistic} {also.printed}" for also in row.point.also)
        yield f"also printed: {spread}"
    yield from filter(None, (row.point.note, row.series.note, row.series.conditions))


def _row(entry: BaselineEntry, printed: Iterable[tuple[str, Quantity | None]], **said: Any) -> ShownRow:
    units = {"iops": "1/s", "throughput": "B/s"}
    return ShownRow(
        layer=entry.layer,
        device_class=entry.device_class,
        workload=entry.workload,
        operation=entry.operation,
        config_hash=entry.config_hash,
        figures=tuple(
            Figure(name, figure.text, figure.value, units.get(name, "s")) for name, figure in printed if figure
        ),
        tolerance_ratio=entry.tolerance_ratio,
        **said,
    )
