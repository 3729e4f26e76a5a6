"""The facts of a review: what was measured, judged and observed in a period. Wording and drawing happen elsewhere.

Times are Unix seconds, durations seconds, shares 0 to 1; a ratio of 1 is as accepted. ``None`` means unknown, not zero.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from plumbline.capacity.model import Facts
from plumbline.report.period import Period, day_starts
from plumbline.sources.prometheus.api import Track

# (beginning of a day, its value); days without data are left out
Days = tuple[tuple[int, float], ...]


class Span(Struct, frozen=True):
    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


class Coverage(Struct, frozen=True):
    """One cluster: the most hosts seen at once, how much of the period any of them was scraped, and the gaps."""

    cluster: str
    hosts: int
    observed_s: float
    gaps: tuple[Span, ...]


class Attainment(Struct, frozen=True):
    """One layer of one cluster. A figure is one measured number of one host that a baseline judges. ``judged_s`` and
    ``beyond_s`` are sums over all figures, so they may exceed the period; ``observed_s`` is the time with at least one
    figure, ``out_of_line_s`` with at least one beyond its tolerance. ``days`` has the share of the day's judged time
    within tolerance."""

    cluster: str
    layer: str
    figures: int
    judged_s: float
    beyond_s: float
    observed_s: float
    out_of_line_s: float
    days: Days

    @property
    def within(self) -> float:
        """Share of the judged time within tolerance."""
        return 1 - self.beyond_s / self.judged_s


class PoolService(Struct, frozen=True):
    """One pool: how long its placement groups were seen, some of them were unavailable, or had fewer copies than
    configured. The last three are Ceph's own, since it tracks the pool; ``None`` before Ceph 20, or not tracked."""

    cluster: str
    pool: str
    seen_s: float
    unavailable_s: float
    reduced_s: float
    score: float | None = None
    mtbf_s: float | None = None
    mttr_s: float | None = None


class Worst(NamedTuple):
    """The worst day: its median ratio and its beginning."""

    ratio: float
    day_s: int


def worst_days(tracks: Iterable[Track], names: Sequence[str], period: Period) -> dict[tuple[str, ...], Worst]:
    """The day with the highest value of all series with the same values of the labels ``names``."""
    worst: dict[tuple[str, ...], Worst] = {}
    for track in tracks:
        days = [Worst(value, day) for day, value in day_starts(track.points, period).items()]
        if days:
            worst[track.key(names)] = max(*days, worst.get(track.key(names), days[0]))
    return worst


class FigureOffender(Struct, frozen=True):
    """A figure that was beyond its tolerance; ``worst`` has the median ratio to its baseline."""

    cluster: str
    host: str
    layer: str
    what: str
    beyond_s: float
    judged_s: float
    worst: Worst | None


class PartOffender(Struct, frozen=True):
    """A disk or an OSD that alerts named; ``worst`` has the median ratio to its peers."""

    cluster: str
    host: str
    part: str
    alerts: tuple[str, ...]
    times: int
    total_s: float
    longest_s: float
    worst: Worst | None


class Change(Struct, frozen=True):
    """A level that changed. ``unit`` is ``ratio`` (1 is as accepted) or ``s``. ``at_s``: first moment of the new level;
    ``not_before_s``: last moment of the old one, if there is a gap between them. ``gradual``: there is no single
    moment, and the change lasted from ``at_s`` to ``until_s``. ``rerecorded``: the baseline changed at that time, so
    the ratio may have changed without a change of the hardware."""

    cluster: str
    host: str
    what: str
    unit: str
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
        """New level ÷ old level; above 1 it became worse."""
        return self.after / self.before


class ClassCapacity(Struct, frozen=True):
    """One device class of one cluster at the end of the period. Forecasts are by slope (``3d``, ``14d``, ``30d``),
    ``growth`` in bytes per second. ``host_loss``: the fullest OSD after losing the largest host ÷ the ratio at which
    backfilling stops; above 1 is unsafe."""

    cluster: str
    device_class: str
    used: Days
    days_to_full: tuple[tuple[str, float], ...]
    days_to_unsafe: tuple[tuple[str, float], ...]
    growth: tuple[tuple[str, float], ...]
    host_loss: Days
    rebuild_s: float | None


class PoolCapacity(Struct, frozen=True):
    cluster: str
    pool: str
    days_to_full: tuple[tuple[str, float], ...]
    self_healing: bool | None


def soonest(forecasts: Iterable[tuple[str, float]]) -> float:
    """The lowest of some forecasts in days, by slope; infinite if there is none."""
    return min((days for _, days in forecasts), default=math.inf)


class Headroom(Struct, frozen=True):
    """Share in use of the measured capability of the hardware; ``figure`` is iops or throughput."""

    cluster: str
    layer: str
    device_class: str
    figure: str
    days: Days


class FindingHistory(Struct, frozen=True):
    """A finding that was open in the period. ``outcome``: opened, closed, both, throughout, or unknown (open, then no
    longer seen). Times are those of samples six hours apart."""

    cluster: str
    host: str
    check: str
    subject: str
    severity: str
    outcome: str
    first_open_s: float
    last_open_s: float


class Firing(Struct, frozen=True):
    """An alert by name and severity: how often it fired, on how many subjects, how long, and on how many at the end."""

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


class Wear(Struct, frozen=True):
    """A disk whose rated endurance is being used up. ``left_s`` counts from the end of the period."""

    cluster: str
    host: str
    device: str
    model: str
    serial: str
    wear_first: float | None
    wear_last: float | None
    left_s: float | None


class Recorded(Struct, frozen=True):
    cluster: str
    host: str
    layer: str
    device_class: str
    source: str
    at_s: float
    entries: int


class Upgrade(Struct, frozen=True):
    """A version that appeared in the period, and on how many daemons it ran at the end (``running`` of ``of``).
    ``complete_s``: time from which no other version was seen; ``None``: others still run."""

    cluster: str
    what: str
    before: tuple[str, ...]
    version: str
    first_s: float
    complete_s: float | None
    running: int
    of: int


class ClassDrift(Struct, frozen=True):
    """One figure of a class of nodes: the median of what its nodes were accepted with, at the beginning and at the end
    of the period; ``ratio``: degradation, 2 is twice as bad."""

    cluster: str
    fleet_class: str
    what: str
    figure: str
    then: float
    now: float
    ratio: float
    nodes: int


class Review(Struct, frozen=True):
    """The whole review. ``absent``: names of the queried metrics that had no series; ``facts``: what what-if needs, of
    each cluster at the end of the period; ``retention_s``: how long the server keeps samples, if it says so;
    ``earlier``: the review of the period to show beside this one."""

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
    findings: tuple[FindingHistory, ...]
    firings: tuple[Firing, ...]
    wear: tuple[Wear, ...]
    recorded: tuple[Recorded, ...]
    upgrades: tuple[Upgrade, ...]
    absent: tuple[str, ...]
    facts: tuple[Facts, ...] = ()
    services: tuple[PoolService, ...] = ()
    retention_s: float | None = None
    drifts: tuple[ClassDrift, ...] = ()
    earlier: "Review | None" = None
