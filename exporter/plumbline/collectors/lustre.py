"""Lustre's imports, health and network counters, as metrics."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.kernel.lustre import LustreReading

_IMPORT = ("import", "target")

UP = gauge(
    "plumbline_lustre_import_up",
    "1: this host is connected to the target (FULL), or would connect at once (IDLE); 0: it is not. Absent: an"
    " administrator deactivated it.",
    _IMPORT,
)
INFO = gauge(
    "plumbline_lustre_import_info", "The state of the import, in the kernel's word; always 1.", (*_IMPORT, "state")
)
ATTEMPTS = counter(
    "plumbline_lustre_connection_attempts_total",
    "Attempts to connect; an idle import makes one when it is used again.",
    _IMPORT,
)
TIMEOUTS = counter("plumbline_lustre_timeouts_total", "Requests that got no answer in time.", _IMPORT)
HEALTHY = gauge(
    "plumbline_lustre_healthy",
    "1: healthy; 0: a target of this host cannot write, its threads answer nothing in time, or Lustre met a bug.",
)
LNET_ERRORS = counter("plumbline_lnet_errors_total", "Errors of LNet, Lustre's network.")
LNET_MESSAGES = counter("plumbline_lnet_messages_total", "Messages of LNet.", ("direction",))
LNET_BYTES = counter("plumbline_lnet_bytes_total", "Data of LNet's messages.", ("direction",))
LNET_DROPS = counter("plumbline_lnet_drops_total", "Messages that LNet received and dropped.")


def samples(reading: LustreReading) -> Iterator[Sample]:
    for connection in reading.imports:
        labels = (connection.name, connection.target)
        up = connection.connected
        yield INFO, (*labels, connection.state), 1
        yield from known(
            labels,
            (UP, None if up is None else int(up)),
            (ATTEMPTS, connection.attempts),
            (TIMEOUTS, connection.timeouts),
        )
    if reading.healthy is not None:
        yield HEALTHY, (), int(reading.healthy)
    if (lnet := reading.lnet) is not None:
        yield LNET_ERRORS, (), lnet.errors
        yield LNET_DROPS, (), lnet.dropped
        for direction, messages, octets in (
            ("receive", lnet.received, lnet.received_octets),
            ("transmit", lnet.sent, lnet.sent_octets),
        ):
            yield LNET_MESSAGES, (direction,), messages
            yield LNET_BYTES, (direction,), octets


def _read(host: Host, skip: SkipHook) -> LustreReading:
    reading = host.parts.latest(LustreReading)
    for name, reason in reading.skipped:
        skip(name, reason)
    return reading


COLLECTOR = Collector(
    "lustre",
    declared(globals()),
    _read,
    samples,
    skip_reasons=ITEM_REASONS,
    origin="`/proc/fs/lustre`, `/sys/fs/lustre`, and below `/sys/kernel/debug` where a release has them there;"
    " written from Lustre's source and published captures, not run on a Lustre",
    sized_by=("Lustre: import",),
)
