"""RBD images in use on this host, as their clients see them."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge
from plumbline.sources.ceph.rbd_clients import RbdClientsReading

_IMAGE = ("pool", "image")
_OPERATION = (*_IMAGE, "operation")

INFO = gauge(
    "plumbline_rbd_client_info",
    "An image that this host has open: the driver, the policy of librbd's cache (none: it is off), whether that writes"
    " through until the first flush, and the features where the kernel has mapped it; always 1.",
    (*_IMAGE, "driver", "cache", "until_flush", "features"),
)
OPERATIONS = counter(
    "plumbline_rbd_client_operations_total", "Operations that have ended, since the image was opened.", _OPERATION
)
SECONDS = counter(
    "plumbline_rbd_client_operation_seconds_total",
    "How long these operations took, with librbd and its cache.",
    _OPERATION,
)
BYTES = counter("plumbline_rbd_client_bytes_total", "Data of these operations.", _OPERATION)


def samples(reading: RbdClientsReading) -> Iterator[Sample]:
    for client in reading.clients:
        image = (client.pool, client.image)
        until_flush = "" if client.until_flush is None else str(client.until_flush).lower()
        yield INFO, (*image, client.driver, client.cache, until_flush, client.features), 1
        for operation, counted in client.operations.items():
            yield OPERATIONS, (*image, operation), counted.avgcount
            yield SECONDS, (*image, operation), counted.sum
        for operation, octets in client.octets.items():
            yield BYTES, (*image, operation), octets


def _read(host: Host, skip: SkipHook) -> RbdClientsReading:
    reading = host.parts.latest(RbdClientsReading)
    for item, reason in reading.unread:
        skip(item, reason)
    return reading


COLLECTOR = Collector(
    "rbdclient",
    declared(globals()),
    _read,
    samples,
    skip_reasons=ITEM_REASONS,
    origin="the admin sockets of librbd's clients: `help`, `perf dump`, `config get`; `/sys/bus/rbd`",
)
