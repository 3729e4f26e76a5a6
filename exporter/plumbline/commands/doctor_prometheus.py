"""What ``plumbline doctor`` asks Prometheus: is this daemon scraped, do rules see it, do links resolve."""

import socket
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from plumbline.commands.doctor_daemon import RELOADED_AT, Answer, Samples, State, only_loopback
from plumbline.errors import PlumblineError, Unavailable
from plumbline.pages import runbooks
from plumbline.sources.http import read_page
from plumbline.sources.prometheus.access import Access
from plumbline.sources.prometheus.api import Rule, Series, read_alertmanagers, read_rules, read_vector

JOB = "plumbline"
SCRAPED, RULES, DELIVERED = "is it scraped", "do rules see it", "does an Alertmanager get its alerts"
LABELS = "are the labels of Ceph's metrics what rules take them for"
RUNBOOKS, DASHBOARDS = "do links to runbooks resolve", "do links to dashboards resolve"
_PREFIX = "Plumbline"
_SCRAPE, _LOAD, _SEND = (
    "a scrape job: deploy/prometheus/README.md",
    "alerts/out/*.yaml as rule_files: alerts/README.md",
    "alerting.alertmanagers in prometheus.yml: alerts/README.md",
)
_TWO_ADDRESSES = (
    "count by (cluster) (count by (cluster, ceph_daemon) ("
    'group by (cluster, ceph_daemon, cluster_addr) (ceph_osd_metadata{cluster_addr!=""})'
    ' or group by (cluster, ceph_daemon, public_addr) (ceph_mon_metadata{public_addr!=""})) > 1)'
)
_WRONG_HOSTS = "plumbline:osd_hostname_wrong:info"
_LABELLED = "alerts/runbooks/PlumblineCephLabelsWrong.md"
_TRIED = 3  # links of one kind: they differ in the node alone


class Server(Struct, frozen=True):
    """A Prometheus server, and how long one question may take. ``daemon``: its own page."""

    url: str
    timeout_s: float
    access: Access
    daemon: str = ""

    def may_name(self, link: str) -> bool:
        """Whether a link that it names is opened: on its own host, or the daemon's. Any other address would be the
        choice of whoever controls the server, asked from this node."""
        try:
            to, own = urlsplit(link), urlsplit(self.daemon)
            near = to.hostname == urlsplit(self.url).hostname and "@" not in to.netloc
            return near or not to.hostname or to.netloc in (own.netloc, f"{socket.gethostname()}:{own.port}")
        except ValueError:
            return False

    def series_of(self, reloaded_at: float) -> tuple[Series, ...]:
        """Those of the daemon that read its configuration then."""
        return self.query(f"{RELOADED_AT} == {reloaded_at!r}")

    def query(self, text: str) -> tuple[Series, ...]:
        return read_vector(self.url, text, timeout_s=self.timeout_s, access=self.access)


def not_asked() -> list[Answer]:
    return [
        Answer(question, State.NOT_ASKED, "no Prometheus server is named", "--prometheus http://HOST:9090")
        for question in (SCRAPED, RULES, LABELS, DELIVERED, RUNBOOKS, DASHBOARDS)
    ]


def ask_prometheus(server: Server, page: Samples | None) -> list[Answer]:
    """``page``: the daemon's samples; without them nobody can know which series are its."""
    scraped, answers = _scraped(server, page)
    try:
        rules = read_rules(server.url, timeout_s=server.timeout_s, access=server.access)
    except PlumblineError as error:
        unknown = [
            Answer(question, State.MISSING, str(error), "--prometheus URL") for question in (RULES, LABELS, DELIVERED)
        ]
        return [scraped, *unknown]
    shown = [alert.annotations for rule in rules if rule.name.startswith(_PREFIX) for alert in rule.alerts]
    return [
        scraped,
        _judged(server, rules, answers),
        ask_labels(server),
        _delivered(server),
        ask_links(RUNBOOKS, [annotations.get("runbook_url", "") for annotations in shown], server),
        ask_links(DASHBOARDS, [annotations.get("dashboard_url", "") for annotations in shown], server),
    ]


def _scraped(server: Server, page: Samples | None) -> tuple[Answer, Series | None]:
    own = page.get(RELOADED_AT) if page else None
    if not own or page is None:
        says = "the daemon does not answer, so its series are unknown"
        return Answer(SCRAPED, State.MISSING, says, "see above"), None
    try:
        series = server.series_of(own[0].value)
    except PlumblineError as error:
        return Answer(SCRAPED, State.MISSING, str(error), "--prometheus URL"), None
    if not series:
        loopback = "; it listens on loopback alone: web.listen_address" if only_loopback(page) else ""
        says = f"{server.url} has no series of this daemon; one that was just started takes a scrape interval"
        return Answer(SCRAPED, State.MISSING, says, _SCRAPE + loopback), None
    job, instance = series[0].labels.get("job", ""), series[0].labels.get("instance", "")
    if job != JOB:
        says = f"as instance {instance} of the job {job}; rules look for the job {JOB}"
        return Answer(SCRAPED, State.MISSING, says, _SCRAPE), series[0]
    return Answer(SCRAPED, State.WELL, f"by {server.url}, as instance {instance}"), series[0]


def _judged(server: Server, rules: Sequence[Rule], own: Series | None) -> Answer:
    loaded = {rule.name for rule in rules if rule.kind == "alerting"}
    expected = runbooks.names()
    missing = [name for name in expected if name not in loaded]
    if not any(name.startswith(_PREFIX) for name in loaded) or (missing and len(missing) == len(expected)):
        return Answer(RULES, State.MISSING, "no alert of Plumbline is loaded", _LOAD)
    if missing:
        says = f"{len(missing)} of {len(expected)} alerts are not loaded: {', '.join(missing[:3])} …"
        return Answer(RULES, State.MISSING, says, f"{_LOAD}, of this version")
    failing = [rule for rule in rules if rule.health == "err"]
    if failing:
        says = f"{len(failing)} rules fail, first {failing[0].name}: {failing[0].last_error[:120]}"
        return Answer(RULES, State.MISSING, says, f"{server.url}/rules?search=&state=unhealthy")
    if own is None:
        says = f"{len(loaded)} alerts are loaded, but have no series of this daemon"
        return Answer(RULES, State.MISSING, says, _SCRAPE)
    labels = (name for name in ("instance", "cluster") if name in own.labels)
    selector = ", ".join(f'{name}="{_escaped(own.labels[name])}"' for name in labels)
    try:
        counted = server.query(f'count({{__name__=~"plumbline:.+", {selector}}})')
    except PlumblineError as error:
        return Answer(RULES, State.MISSING, str(error), "--prometheus URL")
    if not counted:
        says = f"{len(loaded)} alerts are loaded, but no recording rule has made a series of this daemon yet"
        return Answer(RULES, State.MISSING, says, f"{_LOAD}; rules need some minutes after the first scrape")
    return Answer(RULES, State.WELL, f"{len(loaded)} alerts are loaded; {counted[0].value:.0f} recorded series of it")


def ask_labels(server: Server) -> Answer:
    """Two clusters without a label, or pods' names as hostnames: rules would judge the wrong daemons and hosts."""
    try:
        counted = server.query("count(ceph_osd_metadata)")
        if not counted:
            return Answer(LABELS, State.NOT_ASKED, f"{server.url} has no metrics of Ceph", _LABELLED)
        mixed = server.query(_TWO_ADDRESSES)
        wrong = server.query(_WRONG_HOSTS)
    except PlumblineError as error:
        return Answer(LABELS, State.MISSING, str(error), "--prometheus URL")
    says = [
        f"{series.value:.0f} daemons{_of_cluster(series)} have two addresses at once: two clusters are mixed"
        for series in mixed
    ] + [f"hostnames of OSDs{_of_cluster(series)} are not those of their nodes" for series in wrong]
    if says:
        return Answer(LABELS, State.MISSING, "; ".join(says), _LABELLED)
    return Answer(LABELS, State.WELL, f"{counted[0].value:.0f} OSDs, each at one address")


def _of_cluster(series: Series) -> str:
    cluster = series.labels.get("cluster")
    return f" of cluster {cluster}" if cluster else ""


def _delivered(server: Server) -> Answer:
    try:
        managers = read_alertmanagers(server.url, timeout_s=server.timeout_s, access=server.access)
    except PlumblineError as error:
        return Answer(DELIVERED, State.MISSING, str(error), _SEND)
    if not managers:
        return Answer(DELIVERED, State.MISSING, "Prometheus sends alerts to no Alertmanager", _SEND)
    return Answer(DELIVERED, State.WELL, f"Prometheus sends alerts to {', '.join(managers)}")


def ask_links(question: str, links: Iterable[str], server: Server) -> Answer:
    """``links``: of active alerts, of which one always fires. A page that asks for a login is there."""
    setting = (
        "runbookScheme, runbookPort or runbookBaseUrl" if question == RUNBOOKS else "dashboardBaseUrl"
    ) + ": alerts/README.md, your own numbers and links"
    distinct = list(dict.fromkeys(links))
    there = [link for link in distinct if link]
    if not distinct:
        says = "no alert is active, not even PlumblineWatchdog, so none has a link"
        return Answer(question, State.MISSING, says, _LOAD)
    if not there:
        # a site may have no Grafana; runbooks are always somewhere
        state = State.NOT_ASKED if question == DASHBOARDS else State.MISSING
        return Answer(question, state, "alerts have none", setting)
    for link in there[:_TRIED]:
        if not server.may_name(link):
            says = f"{link}: not opened, it is on another host"
            return Answer(question, State.NOT_ASKED, says, "open it in a browser")
        try:
            status = read_page(link, timeout_s=server.timeout_s).status
        except Unavailable as error:
            return Answer(question, State.MISSING, str(error), setting)
        if status >= 400 and status not in (401, 403):
            return Answer(question, State.MISSING, f"{link}: {status}", setting)
    return Answer(question, State.WELL, there[0])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
