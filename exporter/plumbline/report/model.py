"""The facts of a review: what was measured, judged and observed in a period. Wording and drawing happen elsewhere.

Times are Unix seconds, durations seconds, shares 0 to 1; a ratio of 1 is as accepted. ``None`` means unknown, not zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.report.period import Period

Days = tuple[tuple[int, float], ...]
"""(beginning of a day, its value); days without data are left out."""


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of time."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """Its length in seconds."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Coverage:
    """One cluster: how much of the period any of its nodes was scraped, and the gaps."""

    cluster: str
    hosts: int
    """The most hosts seen at once."""
    observed_s: float
    gaps: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Attainment:
    """One layer of one cluster. A figure is one measured number of one host that a baseline judges."""

    cluster: str
    layer: str
    figures: int
    judged_s: float
    """Sum over all figures."""
    beyond_s: float
    """Sum over all figures: longer than the period if several are beyond at once."""
    observed_s: float
    """Time with at least one figure."""
    out_of_line_s: float
    """Time with at least one figure beyond its tolerance."""
    days: Days
    """Share of the day's judged time within tolerance."""

    @property
    def within(self) -> float:
        """Share of the judged time within tolerance."""
        return 1 - self.beyond_s / self.judged_s


@dataclass(frozen=True, slots=True)
class FigureOffender:
    """A figure that was beyond its tolerance; ``worst`` is the median ratio of its worst day, ``worst_day_s``."""

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
    """A disk or an OSD that alerts named; ``worst`` is the median ratio to its peers on its worst day."""

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

    ``at_s``: first moment of the new level; ``not_before_s``: last moment of the old one, if there is a gap between
    them. ``gradual``: there is no single moment, and the change lasted from ``at_s`` to ``until_s``. ``rerecorded``:
    the baseline changed at that time, so the ratio may have changed without a change of the hardware.
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
        """New level ÷ old level; above 1 it became worse."""
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
    """Bytes per second, by slope."""
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
    """Share in use of the measured capability of the hardware; ``figure`` is iops or throughput."""

    cluster: str
    layer: str
    device_class: str
    figure: str
    days: Days


@dataclass(frozen=True, slots=True)
class FindingFate:
    """A finding that was open in the period. ``fate``: opened, closed, both, throughout, or unknown (open, then no
    longer seen). Times are those of samples six hours apart."""

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
    """An alert by name and severity: how often it fired, on how many subjects, and how long."""

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
    """Number still firing at the end."""


@dataclass(frozen=True, slots=True)
class Wear:
    """A disk whose rated endurance is being used up. ``left_s`` counts from the end of the period."""

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
    """Baselines of one host and layer that were measured in the period."""

    cluster: str
    host: str
    layer: str
    device_class: str
    source: str
    at_s: float
    entries: int


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A version that appeared in the period, and on how many daemons it ran at the end (``running`` of ``of``)."""

    cluster: str
    what: str
    before: tuple[str, ...]
    version: str
    first_s: float
    complete_s: float | None
    """Time from which no other version was seen; ``None``: others still run."""
    running: int
    of: int


@dataclass(frozen=True, slots=True)
class Review:
    """The whole review. ``absent``: names of the queried metrics that had no series."""

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
