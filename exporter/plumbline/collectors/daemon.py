"""The daemon about itself: its configuration, its notes, its server for other nodes' probes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plumbline.catalogue import Kind, MetricSpec, Sample

RELOAD_OK = MetricSpec(
    "plumbline_config_last_reload_successful",
    Kind.GAUGE,
    "1: the running configuration is the file's; 0: it is older.",
)
RELOAD_AT = MetricSpec(
    "plumbline_config_last_reload_success_timestamp_seconds",
    Kind.GAUGE,
    "When the running configuration was loaded, Unix time.",
)
STATE_SAVED = MetricSpec(
    "plumbline_state_last_save_successful", Kind.GAUGE, "0: results could not be written and live in memory only."
)
SERVER_UP = MetricSpec(
    "plumbline_network_server_up",
    Kind.GAUGE,
    "Whether the server for other nodes' throughput probes listens or serves; absent where none is configured.",
    ("listen",),
)
SPECS: tuple[MetricSpec, ...] = (RELOAD_OK, RELOAD_AT, STATE_SAVED, SERVER_UP)


@dataclass(frozen=True, slots=True)
class DaemonState:
    """At the moment of a scrape. ``since_ts``: when the running configuration was loaded, Unix seconds."""

    reload_ok: bool
    since_ts: float
    state_saved: bool
    server_up: bool | None = None
    """``None``: no server is configured."""
    server_listen: str = ""


def samples(state: DaemonState) -> Iterator[Sample]:
    """What there is of it."""
    if state.server_up is not None:
        yield SERVER_UP, (state.server_listen,), int(state.server_up)
    yield RELOAD_OK, (), int(state.reload_ok)
    yield RELOAD_AT, (), state.since_ts
    yield STATE_SAVED, (), int(state.state_saved)
