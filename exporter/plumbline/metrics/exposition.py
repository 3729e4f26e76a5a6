"""Collecting for a scrape: every collector is guarded, and concurrent scrapes share one collection.

The scrape is the hot path. It never waits for a device or a command: collectors read the kernel's counters or the
latest value that the scheduler stored. :mod:`plumbline.metrics.rendering` renders the result.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.core.single_flight import Shared
from plumbline.errors import PlumblineError
from plumbline.metrics import self_metrics
from plumbline.metrics.guard import Collector, GuardedCollector, H, SkipHook
from plumbline.metrics.scrape import PAGE_WITHIN_S, Collecting
from plumbline.metrics.snapshot import CollectorHealth, Family, Readings, Snapshot
from plumbline.metrics.spec import Kind, MetricSpec

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

__all__ = ["Collector", "CollectorHealth", "Exposition", "Family", "ScrapeTimeout", "SkipHook", "Snapshot"]


class ScrapeTimeout(PlumblineError):
    """Another request's collection has been running for too long to wait for."""


class Exposition:
    """All collectors of the daemon, and the ``host`` that they read. ``clock``: monotonic seconds; ``process``:
    prometheus_client's families about this process; ``wait_s``: how long a request waits for a collection that another
    one began, a little less than Prometheus's own scrape timeout; ``page_within_s``: how long the collectors may take
    before the running one is abandoned (:mod:`.scrape`)."""

    def __init__(
        self,
        collectors: Iterable[Collector[H, Any]],
        host: H,
        *,
        clock: Callable[[], float],
        logger: logging.Logger,
        process: Callable[[], Iterable[Metric]] | None = None,
        wait_s: float = 9.0,
        page_within_s: float = PAGE_WITHIN_S,
    ) -> None:
        self._clock = clock
        self._collecting = Collecting(clock=clock, page_within_s=page_within_s)
        self._log = logger
        self._process = process
        self._process_failed = False
        self._wait_s = wait_s
        self._shared = Shared(self._collect, wait_s=wait_s)
        self._lock = threading.Lock()  # guards _plan and _retired
        self._plan = _Plan((), frozenset())
        self._retired: dict[str, GuardedCollector] = {}  # switched off by a reload; counters continue when on again
        self.replace(collectors, host)

    def replace(self, collectors: Iterable[Collector[H, Any]], host: H) -> None:
        """Use these collectors and this host from the next collection on; counters of skipped items continue.
        ``ValueError``, with the old collectors kept, for two collectors or two different metrics of the same name."""
        new = tuple(collectors)
        shared = _check(new)
        with self._lock:
            before = self._retired | {guard.collector.name: guard for guard in self._plan.guards}
            guards = tuple(
                GuardedCollector(
                    collector, host, clock=self._clock, logger=self._log, before=before.pop(collector.name, None)
                )
                for collector in new
            )
            self._retired = before
            self._plan = _Plan(guards, shared)

    @property
    def specs(self) -> tuple[MetricSpec, ...]:
        """Every metric that can appear, sorted by name, without collecting anything."""
        with self._lock:
            plan = self._plan
        by_name = {spec.name: spec for guard in plan.guards for spec in guard.collector.specs}
        by_name |= {spec.name: spec for spec in self_metrics.SPECS}
        return tuple(by_name[name] for name in sorted(by_name))

    def scrape(self) -> Snapshot:
        """A collection that began after this call, so it shows any change made before; all callers that arrive during a
        collection share the next one. :class:`ScrapeTimeout` if it takes too long."""
        try:
            return self._shared()
        except TimeoutError:
            raise ScrapeTimeout(
                f"another collection has been running for more than {self._wait_s:g} s: collectors hang, or the host"
                " is short of CPU; the log says which"
            ) from None

    def _collect(self) -> Snapshot:
        with self._lock:
            plan = self._plan
        families: dict[str, Family] = {}
        readings: list[object] = []
        healths = []
        for guard, collected in zip(plan.guards, self._collecting.run(plan.guards, plan.shared), strict=True):
            if guard.collector.listed:
                healths.append(collected.health)
            if collected.reading is not None:
                readings.append(collected.reading)
            for family in collected.families:
                before = families.get(family.spec.name)
                families[family.spec.name] = _joined(before, family) if before else family
        families |= {family.spec.name: family for family in self_metrics.families(healths)}
        ordered = tuple(families[name] for name in sorted(families))
        reasons = {health.name: health.reason for health in healths if health.success and health.reason}
        return Snapshot(ordered, tuple(healths), self._foreign(), Readings.of(*readings, reasons=reasons))

    def _foreign(self) -> tuple[Metric, ...]:
        if self._process is None:
            return ()
        try:
            metrics = tuple(self._process())
        except Exception as error:  # noqa: BLE001  (as for any collector)
            if not self._process_failed:
                self._log.error("process metrics: %s: %s", type(error).__name__, error)
            self._process_failed = True
            return ()
        self._process_failed = False
        return metrics


class _Plan(NamedTuple):
    """The active collectors; ``shared`` names the metrics that several of them declare."""

    guards: tuple[GuardedCollector, ...]
    shared: frozenset[str]


def _joined(first: Family, second: Family) -> Family:
    return Family(first.spec, first.labels + second.labels, [*first.values, *second.values])


def _check(collectors: tuple[Collector[Any, Any], ...]) -> frozenset[str]:
    """The names of metrics that several collectors declare; ``ValueError`` if names clash."""
    for name, count in Counter(collector.name for collector in collectors).items():
        if count > 1:
            raise ValueError(f"{count} collectors are named {name}")
    specs: dict[str, MetricSpec] = {}
    owners: Counter[str] = Counter()
    for owner, declared in (
        ("plumbline", self_metrics.SPECS),
        *((collector.name, collector.specs) for collector in collectors),
    ):
        for spec in declared:
            other = specs.setdefault(spec.name, spec)
            if (other.kind, other.help, other.labels) != (spec.kind, spec.help, spec.labels):
                raise ValueError(f"{owner} declares {spec.name} differently from another collector")
        names = {spec.name for spec in declared}
        if len(names) != len(declared):
            raise ValueError(f"{owner} declares a metric twice")
        owners.update(names)
    written: dict[str, str] = {}
    for spec in specs.values():
        for name in _written_names(spec):
            other_spec = written.setdefault(name, spec.name)
            if other_spec != spec.name:
                raise ValueError(f"{spec.name} and {other_spec} would both write {name}")
    if any(owners[spec.name] > 1 for spec in self_metrics.SPECS):
        raise ValueError("a collector declares one of the exporter's own metrics")
    return frozenset(name for name, count in owners.items() if count > 1)


def _written_names(spec: MetricSpec) -> tuple[str, ...]:
    """Every name that a spec writes into an exposition: of its samples and, in OpenMetrics, of its family."""
    if spec.kind is Kind.COUNTER:
        return (spec.name, spec.name.removesuffix("_total"))
    if spec.kind is Kind.HISTOGRAM:
        return (spec.name, f"{spec.name}_bucket", f"{spec.name}_sum", f"{spec.name}_count")
    return (spec.name,)
