"""Queries Prometheus for a review in four steps: who was scraped, how many series, the data, the hours of changes."""

from plumbline.capacity.facts import facts_of
from plumbline.capacity.facts import queries as what_if_queries
from plumbline.core.words import moment
from plumbline.errors import PlumblineError
from plumbline.report import capacity, changes, classes, events
from plumbline.report.attainment import attainment, coverage, figure_offenders, pool_services
from plumbline.report.model import Coverage, Review
from plumbline.report.period import Period
from plumbline.report.queries import CAPACITY, FORECASTS, Queries
from plumbline.sources.prometheus.api import read_retention
from plumbline.sources.prometheus.queries import Server


def gather(server: Server, period: Period, *, cluster: str | None, made_s: float, version: str) -> Review:
    """The facts of a review. Raises :class:`PlumblineError` if nothing was observed or the cluster is unknown."""
    queries = Queries(period, cluster)
    seen = _selected(coverage(server.answers(tuple(queries.coverage()))["nodes seen"], period), server, queries)
    sizes = {
        key.removeprefix("size of "): int(max((value for track in tracks for _, value in track.points), default=0))
        for key, tracks in server.answers(tuple(queries.sizes())).items()
    }
    answers = server.answers((*queries.everything(sizes), *classes.queries(queries)))
    looked, candidates = changes.candidates(answers, period)
    hours = tuple(changes.closer(candidates, queries, period))
    facts = facts_of(server.answers(tuple(what_if_queries(period.end_s, cluster))))
    recorded = events.recorded(answers["baselines"], period)
    alerts = events.alerts_of(answers, period)
    return Review(
        period=period,
        made_s=made_s,
        version=version,
        source=server.url,
        coverage=seen,
        attainment=attainment(answers, period),
        services=pool_services(answers),
        figures=figure_offenders(answers, period),
        disks=events.offenders(alerts, answers["disks against peers"], period, label="device", layer="disk"),
        osds=events.offenders(alerts, answers["OSDs against peers"], period, label="ceph_daemon", layer="osd"),
        changes=changes.changes_of(candidates, server.answers(hours) if hours else {}, recorded),
        changes_looked_at=looked,
        classes=capacity.classes(answers, period),
        pools=capacity.pools(answers),
        headroom=capacity.headroom(answers, period),
        findings=events.finding_histories(answers, period),
        firings=events.firings(alerts),
        wear=events.worn(answers),
        recorded=recorded,
        upgrades=events.upgrades(answers),
        absent=tuple(name for key, (name, _, _) in {**CAPACITY, **FORECASTS}.items() if not answers[f"capacity {key}"]),
        facts=tuple(facts.values()),
        drifts=classes.drifts(answers),
        retention_s=read_retention(server.url, timeout_s=server.timeout_s, access=server.access),
    )


def _selected(seen: tuple[Coverage, ...], server: Server, queries: Queries) -> tuple[Coverage, ...]:
    period = queries.period
    if not seen:
        raise PlumblineError(
            f"{server.url}: no Plumbline data from {moment(period.start_s)} to {moment(period.end_s)}; does"
            " it scrape Plumbline (plumbline_build_info), and does it keep that long (--storage.tsdb.retention.time)?"
        )
    if queries.cluster is None:
        return seen
    mine = tuple(row for row in seen if row.cluster == queries.cluster)
    if not mine:
        names = ", ".join(filter(None, (row.cluster for row in seen)))
        there = f"there are: {names}" if names else "no series has that label"
        raise PlumblineError(f"{server.url}: no cluster {queries.cluster!r} in the period; {there}")
    return mine
