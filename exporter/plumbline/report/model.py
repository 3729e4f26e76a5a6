"""A review as facts: what was measured, judged and observed of a period. Nothing is worded or drawn here.

Times are Unix seconds, durations seconds, shares 0 to 1, ratios 1 as accepted. ``None``: not known, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.report.period import Period

Days = tuple[tuple[int, float], ...]
"""Beginning of a day, and its value; days without data are left out."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """How long it is."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Coverage:
    """One cluster: for how much of the period any of its nodes was scraped, and when none was."""

    cluster: str
    hosts: int
    """The most that were seen together."""
    observed_s: float
    gaps: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Attainment:
    """One layer of one cluster. A figure is one measured number of one host that a baseline judges."""

    cluster: str
    layer: str
    figures: int
    judged_s: float
    """Of all figures together."""
    beyond_s: float
    """Of all figures together: longer than the period where several are beyond at once."""
    observed_s: float
    """With at least one figure."""
    out_of_line_s: float
    """With at least one figure beyond its tolerance."""
    days: Days
    """Share of the day's judged time within tolerance."""

    @property
    def within(self) -> float:
        """Share of the judged time within tolerance."""
        return 1 - self.beyond_s / self.judged_s


@dataclass(frozen=True, slots=True)
class FigureOffender:
    """A figure that was beyond its tolerance; ``worst`` is its worst day's median ratio, on ``worst_day_s``."""

    cluster: str
    host: str
    layer: str
    what: str
    beyond_s: float
    judged_s: float
    worst: float | None
    worst_day_s: int | None


@dataclass(frozen=True, slots=True)
class PartOffender:
    """A disk or an OSD that alerts named; ``worst`` is its worst day's median ratio to its peers."""

    cluster: str
    host: str
    part: str
    alerts: tuple[str, ...]
    times: int
    total_s: float
    longest_s: float
    worst: float | None
    worst_day_s: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """A level that changed. ``kind`` is ``ratio`` (1 is as accepted) or ``latency`` (seconds).

    ``at_s``: first moment of the new level; ``not_before_s``: the last of the old one, where there is a gap between.
    ``gradual``: it has no moment, ``at_s`` and ``until_s`` are the stretch. ``rerecorded``: the baseline changed then,
    so the ratio may have changed and the hardware not.
    """

    cluster: str
    host: str
    what: str
    kind: str
    at_s: float
    not_before_s: float
    until_s: float
    before: float
    after: float
    gradual: bool
    rerecorded: bool
    days: Days

    @property
    def factor(self) -> float:
        """Above 1 it became worse."""
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class ClassCapacity:
    """One device class of one cluster at the end of the period. Forecasts are by slope (``3d``, ``14d``, ``30d``)."""

    cluster: str
    device_class: str
    used: Days
    days_to_full: tuple[tuple[str, float], ...]
    days_to_unsafe: tuple[tuple[str, float], ...]
    growth: tuple[tuple[str, float], ...]
    """Bytes a second."""
    host_loss: Days
    """The fullest OSD after losing the largest host ÷ the ratio at which backfilling stops; above 1 is unsafe."""
    rebuild_s: float | None


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """One pool at the end of the period."""

    cluster: str
    pool: str
    days_to_full: tuple[tuple[str, float], ...]
    self_healing: bool | None


@dataclass(frozen=True, slots=True)
class Headroom:
    """Used share of what the hardware was measured to do; ``figure`` is iops or throughput."""

    cluster: str
    layer: str
    device_class: str
    figure: str
    days: Days


@dataclass(frozen=True, slots=True)
class FindingFate:
    """A finding that was open in the period. ``fate``: opened, closed, both, throughout, or unknown: it was open and
    then no longer seen. Moments are those of looks, six hours apart."""

    cluster: str
    host: str
    check: str
    subject: str
    severity: str
    fate: str
    first_open_s: float
    last_open_s: float


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert by name and severity: how often it fired, over how many subjects, how long."""

    cluster: str
    alert: str
    severity: str
    layer: str
    subjects: int
    times: int
    total_s: float
    longest_s: float
    longest_on: str
    still: int
    """Firing at the end."""


@dataclass(frozen=True, slots=True)
class Wear:
    """A disk whose rated endurance is being used up. ``left_s`` from the end of the period on."""

    cluster: str
    host: str
    device: str
    model: str
    serial: str
    wear_first: float | None
    wear_last: float | None
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Baselines of one host and layer that were measured within the period."""

    cluster: str
    host: str
    layer: str
    device_class: str
    source: str
    at_s: float
    entries: int


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A version that was not there before: first seen, and on how many of how many it ran at the end."""

    cluster: str
    what: str
    before: tuple[str, ...]
    version: str
    first_s: float
    complete_s: float | None
    """From when no other version was seen; none: others still run."""
    running: int
    of: int


@dataclass(frozen=True, slots=True)
class Review:
    """All of it. ``absent``: what no series told of, with the names that were asked for."""

    period: Period
    made_s: float
    version: str
    source: str
    coverage: tuple[Coverage, ...]
    attainment: tuple[Attainment, ...]
    figures: tuple[FigureOffender, ...]
    disks: tuple[PartOffender, ...]
    osds: tuple[PartOffender, ...]
    changes: tuple[Change, ...]
    changes_looked_at: int
    classes: tuple[ClassCapacity, ...]
    pools: tuple[PoolCapacity, ...]
    headroom: tuple[Headroom, ...]
    findings: tuple[FindingFate, ...]
    firings: tuple[Firing, ...]
    wear: tuple[Wear, ...]
    recorded: tuple[Recorded, ...]
    upgrades: tuple[Upgrade, ...]
    absent: tuple[str, ...]
