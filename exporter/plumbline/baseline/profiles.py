"""Documented profiles: other sites' published figures, as data (``profiles/*.yaml``), checked when loaded.

A profile keeps what the document prints, and where; base units are computed here. Where the document contradicts
itself, both figures are kept, with the one that is used and why (the head of each file explains the keys).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from plumbline.baseline.arithmetic import Breach, Rule, agree, breaches
from plumbline.baseline.budget import Budget, check_budget
from plumbline.baseline.documented import Contradiction, LeftOut, Method, Picture, Setting, check_named
from plumbline.baseline.files import Latencies, Place, Printed, convert_text
from plumbline.baseline.model import BaselineEntry, Source
from plumbline.baseline.units import Iops, Latency, Throughput, Volume
from plumbline.config.types import Strict
from plumbline.config.workloads import TcpThroughput, Workload, load_catalogue
from plumbline.errors import ConfigError

Figure = Iops | Latency | Throughput


class Document(Strict, frozen=True):
    title: str
    year: int | None  # None: the document does not say
    language: str
    text: str


class Hardware(Strict, frozen=True):
    device_class: str
    description: str
    model: str = ""
    firmware: str = ""
    capacity: Volume | None = None
    where: str = ""
    note: str = ""


class Restated(Printed, frozen=True):
    """A figure of the row that is printed again: iops, throughput, duration or latency.<statistic>."""

    figure: str
    printed: str
    note: str = ""


class NotUsed(Printed, frozen=True):
    """A figure printed for the row that contradicts the one that is used."""

    figure: str
    printed: str
    why: str


class Also(Strict, frozen=True):
    """One statistic of a row's figure as the tool prints it beside the average; shown but not compared. rados bench
    prints the standard deviation, minimum and maximum over its seconds; ping prints ``min/avg/max/mdev``."""

    figure: Literal["iops", "throughput", "latency"]
    statistic: Literal["min", "max", "stddev", "mdev"]
    printed: str
    line: int


class Point(Strict, frozen=True):
    """One row: figures of one operation of one workload, as printed. ``operation`` may be left out if there is one.
    ``retransmits``: TCP segments sent again during a TCP transfer, shown but not compared. ``doubt``: why the row never
    judges, if the arithmetic does not show it."""

    line: int
    workload: str
    operation: str = ""
    iops: Iops | None = None
    throughput: Throughput | None = None
    latency: Latencies = Latencies()
    duration: Latency | None = None
    transferred: Volume | None = None
    retransmits: Annotated[int, msgspec.Meta(ge=0)] | None = None
    breaks: dict[Rule, str] = msgspec.field(default_factory=dict)
    doubt: str = ""
    also: tuple[Also, ...] = ()
    restated: tuple[Restated, ...] = ()
    not_used: tuple[NotUsed, ...] = ()
    note: str = ""


class Series(Strict, frozen=True):
    """Rows of one figure or table: one device, one tool, one command."""

    where: str
    line: int
    hardware: str
    tool: str
    command: str
    points: tuple[Point, ...]
    conditions: str = ""
    note: str = ""


class Profile(Strict, frozen=True):
    """One file of ``profiles/``. ``reasons`` holds sentences that rows share by YAML anchors."""

    schema_version: int
    name: str
    title: str
    document: Document
    hardware: dict[str, Hardware]
    series: tuple[Series, ...]
    reasons: dict[str, str] = msgspec.field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    budgets: tuple[Budget, ...] = ()
    settings: tuple[Setting, ...] = ()
    methods: tuple[Method, ...] = ()


class Row(msgspec.Struct, frozen=True):
    """A point with everything said about it elsewhere in the profile; ``entry`` has its figures in base units."""

    entry: BaselineEntry
    point: Point
    series: Series
    hardware: Hardware
    breaches: tuple[Breach, ...]


class LoadedProfile(msgspec.Struct, frozen=True):
    """A checked profile and its rows, in the document's order."""

    profile: Profile
    rows: tuple[Row, ...]
    layers: dict[str, str]  # The layer of each workload that budgets, methods and pictures name

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def entries(self) -> tuple[BaselineEntry, ...]:
        return tuple(row.entry for row in self.rows)


def load_profiles() -> dict[str, LoadedProfile]:
    """The shipped profiles by name. Raises :class:`BaselineError` for an error in one of them."""
    files = sorted(Path(__file__).with_name("profiles").glob("*.yaml"))
    return {file.stem: parse_profile(file.read_text("utf-8"), file.name) for file in files}


def parse_profile(text: str, where: str) -> LoadedProfile:
    """Check one profile; ``where`` is its file name. Raises :class:`BaselineError` for any error, including a row that
    contradicts itself without an explanation in ``breaks``, an explanation without a contradiction, and a ``restated``
    figure that differs."""
    profile = convert_text(Profile, text, where=where)
    whole = Place(where)
    if where != f"{profile.name}.yaml":
        raise whole.error("name", "must be the file's name", profile.name)
    rows: dict[tuple[str, str, str, str], Row] = {}
    for s, series in enumerate(profile.series):
        hardware = profile.hardware.get(series.hardware)
        if hardware is None:
            reason = f"the profile has: {', '.join(profile.hardware)}"
            raise whole.at(f"series[{s}]").error("hardware", reason, series.hardware)
        for p, point in enumerate(series.points):
            place = whole.at(f"series[{s}].points[{p}]")
            row = _row(profile, series, hardware, point, place.workload(point.workload), place=place)
            if row.entry.key in rows:
                first = rows[row.entry.key]
                reason = f"is a duplicate; first in {first.series.where}, line {first.point.line}"
                raise place.error("workload", reason, point.workload)
            rows[row.entry.key] = row
    with_budget: set[str] = set()
    for index, budget in enumerate(profile.budgets):
        place = whole.at(f"budgets[{index}]")
        if budget.workload in with_budget:
            raise place.error("workload", "has a budget already", budget.workload)
        with_budget.add(budget.workload)
        check_budget(budget, profile.hardware, place)
    layers = check_named(profile.methods, profile.pictures, profile.hardware, whole)
    layers |= {budget.workload: load_catalogue().by_id[budget.workload].layer for budget in profile.budgets}
    return LoadedProfile(profile, tuple(rows.values()), layers)


def check_judge(judge: Mapping[str, str], profiles: Mapping[str, LoadedProfile], where: str) -> None:
    """Raise :class:`ConfigError` unless the configuration's ``baseline.judge`` names only known profiles."""
    for device_class, name in judge.items():
        if name not in profiles:
            reason = f"no such documented profile; available: {', '.join(profiles)}"
            raise ConfigError(where, reason, key=f"baseline.judge.{device_class}", value=name)


def _row(
    profile: Profile, series: Series, hardware: Hardware, point: Point, workload: Workload, *, place: Place
) -> Row:
    if not (point.iops or point.throughput or any(point.latency.items())):
        raise place.error("", "has no figure; list pictures under pictures")
    if point.retransmits is not None and not isinstance(workload, TcpThroughput):
        raise place.error("retransmits", "only valid for a TCP transfer", point.retransmits)
    texts = _breaches(workload, point, place)
    _check_repeats(point, "restated", point.restated, place)
    _check_repeats(point, "not_used", point.not_used, place)
    _check_spread(point, place)
    doubts = (f"{breach.text}: {point.breaks[breach.rule]}" for breach in texts if breach.doubtful)
    entry = BaselineEntry(
        layer=workload.layer,
        device_class=hardware.device_class,
        workload=workload.id,
        operation=place.operation(point.operation, workload),
        source=Source.DOCUMENTED,
        profile=profile.name,
        config_hash=workload.config_hash(),
        latency=point.latency.seconds(),
        iops=point.iops.value if point.iops else None,
        throughput=point.throughput.value if point.throughput else None,
        note=point.note,
        doubt="; ".join(filter(None, (point.doubt, *doubts))),
    )
    return Row(entry, point, series, hardware, texts)


def _breaches(workload: Workload, point: Point, place: Place) -> tuple[Breach, ...]:
    texts = tuple(
        breaches(
            workload,
            iops=point.iops,
            throughput=point.throughput,
            mean=point.latency.mean,
            duration=point.duration,
            transferred=point.transferred,
        )
    )
    for breach in texts:
        if not point.breaks.get(breach.rule):
            raise place.error(f"breaks.{breach.rule}", f"{breach.text}; say why")
    for rule in point.breaks:
        if rule not in {breach.rule for breach in texts}:
            raise place.error(f"breaks.{rule}", "the row does not break this identity")
    return texts


def _check_repeats(point: Point, name: str, repeats: Sequence[Restated | NotUsed], place: Place) -> None:
    """``restated`` figures agree with the row's; ``not_used`` figures differ, or the row has none."""
    figures: dict[str, Figure | None] = {
        "iops": point.iops,
        "throughput": point.throughput,
        "duration": point.duration,
        **{f"latency.{statistic}": figure for statistic, figure in point.latency.items()},
    }
    for index, repeat in enumerate(repeats):
        key = f"{name}[{index}].printed"
        used, printed = figures.get(repeat.figure), _parsed(repeat.figure, repeat.printed, key, place)
        agreed = used is not None and agree(used, printed)
        if agreed != (name == "restated"):
            raise place.error(key, "agrees with the row" if agreed else "is not the row's figure", repeat.printed)


def _check_spread(point: Point, place: Place) -> None:
    """Each statistic stands once, in its figure's unit, with no minimum above the average or maximum below."""
    averages = {"iops": point.iops, "throughput": point.throughput, "latency": point.latency.mean}
    seen: set[tuple[str, str]] = set()
    for index, also in enumerate(point.also):
        key = f"also[{index}].printed"
        if (also.figure, also.statistic) in seen:
            raise place.error(f"also[{index}]", "is a duplicate", f"{also.figure} {also.statistic}")
        seen.add((also.figure, also.statistic))
        printed, average = _parsed(also.figure, also.printed, key, place), averages[also.figure]
        if average is None:
            continue
        if also.statistic == "min" and printed.exact > average.exact:
            raise place.error(key, f"is above the average {average.text}", also.printed)
        if also.statistic == "max" and printed.exact < average.exact:
            raise place.error(key, f"is below the average {average.text}", also.printed)


def _parsed(figure: str, printed: str, key: str, place: Place) -> Figure:
    kinds: dict[str, type[Figure]] = {"iops": Iops, "throughput": Throughput}
    try:
        return kinds.get(figure, Latency).parse(printed)
    except ValueError as error:
        raise place.error(key, str(error), printed) from None
