"""The daemon about itself: its configuration, saved state, web server, and server for other nodes' probes."""

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, counter, declared, gauge

RELOAD_OK = gauge("plumbline_config_last_reload_successful", "1: the running configuration is the file's; 0: older.")
RELOAD_AT = gauge(
    "plumbline_config_last_reload_success_timestamp_seconds", "When the running configuration was loaded, Unix time."
)
STATE_SAVED = gauge("plumbline_state_last_save_successful", "0: results could not be written and are in memory only.")
WEB_INFO = gauge(
    "plumbline_web_info",
    "Who has access, always 1. reach: loopback or network; encryption: tls or none; authentication: none,"
    " password, certificate or both.",
    ("reach", "encryption", "authentication"),
)
WEB_REFUSED = counter(
    "plumbline_web_requests_refused_total",
    "Refused requests and connections: wrong or no password (authentication), no TLS handshake or certificate"
    " (tls), too many requests or passwords to check (rate), web.max_requests in progress (busy), not HTTP or too"
    " long (malformed), not sent in time (slow), too many connections (crowded).",
    ("reason",),
)
THREAD_FAILURES = counter(
    "plumbline_thread_failures_total",
    "How often a thread of the daemon failed, by purpose; permanent ones are restarted.",
    ("thread",),
)
WEB_GUARDS_LOST = gauge(
    "plumbline_web_guards_lost",
    "Protections of the port (TLS, client certificates, their names, passwords, rate limit) that a reload"
    " removed since the start.",
)


class DaemonState(Struct, frozen=True):
    """The daemon during a scrape. ``since_ts``: when the running configuration was loaded, Unix seconds."""

    reload_ok: bool
    since_ts: float
    state_saved: bool
    web: tuple[str, str, str] | None = None  # As in :data:`WEB_INFO`; ``None``: nothing listens
    web_guards_lost: int = 0  # lost by a reload
    web_refused: Mapping[str, int] = field(default_factory=dict)  # by reason, since the start
    thread_failures: Mapping[str, int] = field(default_factory=dict)  # by the thread's purpose, since the start


def samples(state: DaemonState) -> Iterator[Sample]:
    yield RELOAD_OK, (), int(state.reload_ok)
    yield RELOAD_AT, (), state.since_ts
    yield STATE_SAVED, (), int(state.state_saved)
    if state.web is not None:
        yield WEB_INFO, state.web, 1
        yield WEB_GUARDS_LOST, (), state.web_guards_lost
    for reason, count in state.web_refused.items():
        yield WEB_REFUSED, (reason,), count
    for thread, count in state.thread_failures.items():
        yield THREAD_FAILURES, (thread,), count


COLLECTOR: Collector[Host, DaemonState] = Collector(
    "daemon",
    declared(globals()),
    lambda host, _skip: host.parts.latest(DaemonState),
    samples,
    listed=False,
    needs_daemon=True,
)
