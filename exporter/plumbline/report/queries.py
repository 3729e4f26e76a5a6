"""The PromQL of the review. ``cluster`` restricts all queries but one; each key names its answer.

A range is queried in pieces, because Prometheus returns at most 11,000 points per series. Queries over many series ask
for whole days one by one: a subquery over a day holds one value per minute of every series in memory, and over a
quarter ninety times as many.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from plumbline.core.words import DAY_S
from plumbline.report.period import MINUTE_S, Period
from plumbline.sources.prometheus.queries import Query, moment, quoted

# Prometheus looks back five minutes for a sample, so a shorter gap would not be visible anyway
COVERAGE_STEP_S = 300
# step of findings and versions: Prometheus then reads one chunk in twelve, of ten thousands of series
LOOK_S = 6 * 3600
ALERT_STEP_S = 60
WINDOW = "WINDOW"
# points per series in one response, below Prometheus's limit
POINTS = 10_000
# points of all series of one query together: 80 MB of Prometheus's memory, a tenth of its default limit
QUERY_POINTS = 5_000_000
FIGURE = "cluster, instance, probe, layer, device_class, workload, operation, statistic"
_CLASS, _POOL = "cluster, device_class", "cluster, pool_id, pool"
# drawn over the days: key → metric, labels, aggregation of several values (a manager's failover leaves two)
CAPACITY = {
    "used": ("plumbline:capacity_used:ratio", _CLASS, "max"),
    "host_loss": ("plumbline:capacity_host_loss:ratio", _CLASS, "max"),
    "headroom": ("plumbline:capacity_headroom:ratio", "cluster, layer, device_class, figure", "max"),
}
# values at the end of the period
FORECASTS = {
    "full": ("plumbline:capacity_time_to_full:days", f"{_CLASS}, slope", "min"),
    "full_pool": ("plumbline:capacity_pool_time_to_full:days", f"{_POOL}, slope", "min"),
    "unsafe": ("plumbline:capacity_time_to_host_loss_unsafe:days", f"{_CLASS}, slope", "min"),
    "growth": ("plumbline:capacity_growth:bytes_per_second", f"{_CLASS}, slope", "max"),
    "healing": ("plumbline:capacity_self_healing:bool", _POOL, "min"),
    "rebuild": ("plumbline:capacity_rebuild:seconds", _CLASS, "max"),
}
# what Ceph 20 says of its pools since it tracks them
TRACKED = {
    "score": "plumbline:pool_availability:ratio",
    "mtbf": "plumbline:pool_mtbf:seconds",
    "mttr": "plumbline:pool_mttr:seconds",
}
# the series that are searched for changes of level
LEVELS = {
    "ratio": ("plumbline:degradation:ratio", 'statistic!~"p9.*|max"'),
    "disk": ("plumbline:disk_latency:p50_seconds", 'operation=~"read|write"'),
    "osd": ("plumbline:osd_latency:mean5m", 'part="total"'),
}
# how much parts differ from their peers
PEERS = {
    "disks": ("plumbline:disk_latency_peers:ratio", "cluster, instance, device"),
    "OSDs": ("plumbline:osd_class:ratio", "cluster, ceph_daemon"),
}


class Queries(Struct, frozen=True):
    """The queries of one period; with ``cluster`` ``None``, for all clusters."""

    period: Period
    cluster: str | None = None

    def sel(self, metric: str, *matchers: str) -> str:
        mine = () if self.cluster is None else (f"cluster={quoted(self.cluster)}",)
        inside = ", ".join(filter(None, (*mine, *matchers)))
        return f"{metric}{{{inside}}}" if inside else metric

    def coverage(self) -> Iterator[Query]:
        """Which clusters were scraped when; of all clusters, so that the error for an unknown cluster can list them."""
        return over("nodes seen", "count by (cluster) (plumbline_build_info)", self.period, COVERAGE_STEP_S)

    def sizes(self) -> Iterator[Query]:
        """The number of series behind each daily query, which decides how many days one request may cover."""
        for key, name in self._daily().items():
            yield from over(f"size of {key}", f"count({name})", self.period, DAY_S)

    def everything(self, sizes: Mapping[str, int]) -> Iterator[Query]:
        """All queries that do not depend on other answers. ``sizes``: key of :meth:`sizes` → number of series."""
        yield from self._attainment(sizes)
        yield from self._pools()
        yield from self._levels(sizes)
        yield from self._alerts()
        yield from self._capacity()
        yield from self._looks()

    def hours(self, kind: str, labels: Mapping[str, str]) -> str:
        metric, _ = LEVELS[kind]
        matchers = (f"{name}={quoted(value)}" for name, value in sorted(labels.items()) if name != "__name__")
        return f"max(quantile_over_time(0.5, {metric}{{{', '.join(matchers)}}}[1h]))"

    def _daily(self) -> dict[str, str]:
        levels = {f"levels {kind}": self.sel(*level) for kind, level in LEVELS.items()}
        peers = {f"{kind} against peers": self.sel(metric) for kind, (metric, _) in PEERS.items()}
        return {"figures": self.sel("plumbline:degradation_beyond:bool"), **levels, **peers}

    def _attainment(self, sizes: Mapping[str, int]) -> Iterator[Query]:
        figures, share = self._daily()["figures"], self.sel("plumbline:layer_beyond:ratio")
        together = days_together(sizes["figures"], DAY_S // MINUTE_S)
        for key, query, days in (
            ("figures beyond", f"max by ({FIGURE}) (sum_over_time({figures}[{WINDOW}]))", together),
            ("figures judged", f"max by ({FIGURE}) (count_over_time({figures}[{WINDOW}]))", together),
            ("layers out of line", f"sum_over_time(({share} > bool 0)[{WINDOW}])", 14),
            ("layers judged", f"count_over_time({share}[{WINDOW}])", 14),
        ):
            yield from each_day(key, query, self.period, "1m", together=days)

    def _pools(self) -> Iterator[Query]:
        unavailable = self.sel("plumbline:pg_unavailable:count")
        for key, seen in (
            ("pools unavailable", f"sum_over_time(({unavailable} > bool 0)[{WINDOW}])"),
            ("pools reduced", f"sum_over_time({self.sel('plumbline:pool_redundancy_reduced:bool')}[{WINDOW}])"),
            ("pools seen", f"count_over_time({unavailable}[{WINDOW}])"),
        ):
            yield from each_day(key, f"max by ({_POOL}) ({seen})", self.period, "1m", together=7)
        for key, metric in TRACKED.items():
            query = f"max by ({_POOL}) (last_over_time({self.sel(metric)}[1d]))"
            yield moment(f"pools {key}", query, self.period.end_s)

    def _levels(self, sizes: Mapping[str, int]) -> Iterator[Query]:
        for key, series in self._daily().items():
            query = f"quantile_over_time(0.5, {series}[{WINDOW}])"
            kind = key.removesuffix(" against peers")
            if kind in PEERS:
                query = f"max by ({PEERS[kind][1]}) ({query}) > 1.1"
            if key != "figures":
                yield from each_day(key, query, self.period, "5m", together=days_together(sizes[key], DAY_S // 300))

    def _alerts(self) -> Iterator[Query]:
        """Only beginnings and ends: an alert that fires for weeks is then two points instead of a hundred thousand."""
        names = ('alertname=~"Plumbline.+"', 'alertname!="PlumblineWatchdog"')
        firing = self.sel("ALERTS", *names, 'alertstate="firing"', 'severity=~"warning|critical"')
        step, first = ALERT_STEP_S, self.period.start_s + ALERT_STEP_S
        yield moment("alerts at first", firing, self.period.start_s)
        yield from over("alerts begun", f"{firing} unless {firing} offset 1m", self.period, step, first_s=first)
        yield from over("alerts ended", f"{firing} offset 1m unless {firing}", self.period, step, first_s=first)

    def _capacity(self) -> Iterator[Query]:
        for key, (metric, by, pick) in CAPACITY.items():
            query = f"{pick} by ({by}) (quantile_over_time(0.5, {self.sel(metric)}[{WINDOW}]))"
            yield from each_day(f"capacity {key}", query, self.period, "30m", together=31)
        for key, (metric, by, pick) in FORECASTS.items():
            query = f"{pick} by ({by}) (last_over_time({self.sel(metric)}[1d]))"
            yield moment(f"capacity {key}", query, self.period.end_s)

    def _looks(self) -> Iterator[Query]:
        finding = "cluster, instance, check, subject, urgency"
        open_ = self.sel("plumbline_finding", 'urgency!="info"')
        last = self.period.end_s - self.period.end_s % LOOK_S
        yield from over("findings open", f"max by ({finding}) ({open_}) == 1", self.period, LOOK_S)
        for key, at in (("first", self.period.start_s), ("last", last)):
            # the last values of six hours: a node that is away for an hour is not gone
            query = f"max by ({finding}) (last_over_time({open_}[6h])) == 0"
            yield moment(f"findings met {key}", query, at)
        versions = {
            "plumbline": f"count by (cluster, version) ({self.sel('plumbline_build_info')})",
            "ceph": "count by (cluster, version) (label_replace(group by (cluster, ceph_daemon, ceph_version) ("
            f'{self.sel("ceph_osd_metadata")}), "version", "$1", "ceph_version", "(?:ceph version )?([0-9.]+).*"))',
        }
        for key, query in versions.items():
            yield from over(f"versions {key}", query, self.period, LOOK_S)
        entry = "cluster, instance, layer, device_class, workload, operation, source"
        measured = self.sel("plumbline_baseline_measured_timestamp_seconds", 'source!="documented"')
        within = f"max by ({entry}) ({measured}) >= {self.period.start_s} < {self.period.end_s}"
        yield from over("baselines", within, self.period, DAY_S, first_s=min(self.period.start_s + DAY_S, last))
        yield moment("baselines", within, self.period.end_s)
        disk = "cluster, instance, device"
        left = self.sel("plumbline:disk_endurance_left:seconds")
        wear, info = self.sel("plumbline_disk_wear_ratio"), self.sel("plumbline_disk_info")
        end = self.period.end_s
        yield moment("endurance left", f"bottomk(20, min by ({disk}) (last_over_time({left}[1d])))", end)
        yield moment("wear last", f"topk(50, max by ({disk}) (last_over_time({wear}[1d])))", end)
        yield moment("wear first", f"max by ({disk}) (last_over_time({wear}[1d]))", self.period.start_s + DAY_S)
        yield moment("disks", f"group by ({disk}, model, serial) (last_over_time({info}[1d]))", end)


def days_together(series: int, points_a_day: int) -> int:
    return max(1, min(31, QUERY_POINTS // (max(series, 1) * points_a_day)))


def over(key: str, query: str, period: Period, step_s: int, *, first_s: int | None = None) -> Iterator[Query]:
    """Queries for the whole period in pieces, from its first moment (or ``first_s``) to its last."""
    start = period.start_s if first_s is None else first_s
    for at in range(start, period.end_s + 1, POINTS * step_s):
        yield Query(key, query, at, min(at + (POINTS - 1) * step_s, period.end_s), step_s)


def each_day(key: str, query: str, period: Period, resolution: str, *, together: int = 1) -> Iterator[Query]:
    """``query`` over each day (replacing its ``WINDOW``), evaluated at the day's last minute, because midnight belongs
    to the next day; ``together`` days in one request. The window is half a minute short: Prometheus 2 includes both
    ends of a window, Prometheus 3 only the last. This window holds the same full minutes in both."""
    days = period.days
    whole = [end - MINUTE_S for start, end in days if end - start == DAY_S]
    daily = query.replace(WINDOW, f"{DAY_S - 30}s:{resolution}")
    for index in range(0, len(whole), together):
        piece = whole[index : index + together]
        yield Query(key, daily, piece[0], piece[-1], DAY_S if len(piece) > 1 else 0)
    start, end = days[-1]
    if end - start < DAY_S:
        yield moment(key, query.replace(WINDOW, f"{end - start - 30}s:{resolution}"), end - MINUTE_S)
