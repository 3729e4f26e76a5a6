"""RBD images in use on this host: through librbd, by its clients' admin sockets, and by the kernel's driver.

A client has a socket if its ``ceph.conf`` says so; https://docs.ceph.com/en/latest/rbd/rbd-openstack/ has QEMU's in
``/run/ceph/guests``. What it answers (16.2 and ``src/librbd/LibrbdAdminSocketHook.cc``, ``ImageCtx.cc``)::

    help                   →  {"rbd cache flush vms/disk-1": "flush rbd image vms/disk-1 cache", …}
    perf dump              →  {"librbd-10165bf1bd1d-vms-disk-1": {"rd": 0, "wr": 17876, "wr_bytes": 73220096,
                                "wr_latency": {"avgcount": 17874, "sum": 11.928, "avgtime": 0.000667}, …}, …}
    config get rbd_cache   →  {"rbd_cache": "true"}

Only ``help`` has the image's name in parts: the other one does not say where a pool ``a-b`` ends. Settings are those of
the process: QEMU switches the cache by its own ``cache=``, and ``rbd config image set`` is not seen.

The kernel's driver has no cache of its own. Documentation/ABI/testing/sysfs-bus-rbd and ``src/include/rbd/features.h``
(the bits)::

    /sys/bus/rbd/devices/0/pool       vms
    /sys/bus/rbd/devices/0/pool_ns    tenant; empty or absent: none
    /sys/bus/rbd/devices/0/name       disk-1
    /sys/bus/rbd/devices/0/features   0x000000000000003d
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.ceph.adminsocket import Answer, Ended, Question, ask, decode, find_sockets
from plumbline.sources.ceph.osd_perf import LongRunAverage, parse_option
from plumbline.sources.kernel import sysfs

SOCKETS_MAX, IMAGES_MAX = 128, 256
"""The first by name; a hypervisor has some ten guests with a few disks."""
TIMEOUT_S = 5.0
CACHE, POLICY, UNTIL_FLUSH = "rbd_cache", "rbd_cache_policy", "rbd_cache_writethrough_until_flush"
_OPTIONS = (CACHE, POLICY, UNTIL_FLUSH)
_FLUSH = "rbd cache flush "
_FEATURES = (
    "layering", "striping", "exclusive-lock", "object-map", "fast-diff", "deep-flatten", "journaling", "data-pool",
    "operations", "migrating", "non-primary",
)  # fmt: skip
_Count = Annotated[int, Meta(ge=0)]


class _Counters(Struct, frozen=True):
    rd_latency: LongRunAverage = LongRunAverage()
    wr_latency: LongRunAverage = LongRunAverage()
    discard_latency: LongRunAverage = LongRunAverage()
    flush_latency: LongRunAverage = LongRunAverage()
    rd_bytes: _Count = 0
    wr_bytes: _Count = 0
    discard_bytes: _Count = 0
    opened_time: float = 0.0


class RbdClient(Struct, frozen=True):
    """One image that a process or the kernel has open."""

    pool: str
    image: str  # with its namespace, if it has one: ``tenant/disk-1``
    driver: str  # librbd or krbd
    cache: str = "none"  # the policy, if librbd's cache is on
    until_flush: bool | None = None  # whether the cache writes through until the guest's first flush
    features: str = ""  # of krbd alone
    operations: Mapping[str, LongRunAverage] = field(default_factory=dict)
    octets: Mapping[str, int] = field(default_factory=dict)
    opened_ts: float = 0.0


class RbdClientsReading(Struct, frozen=True):
    clients: tuple[RbdClient, ...]
    unread: tuple[tuple[str, str], ...] = ()  # (socket or device, reason)


def parse_images(data: bytes, *, source: str) -> tuple[tuple[str, str], ...]:
    """Pool and image of each that the process has open, from ``help``; :class:`ParseError` for another form."""
    commands = decode(dict[str, str], data, source=source)
    specs = (name.removeprefix(_FLUSH).partition("/") for name in commands if name.startswith(_FLUSH))
    return tuple((pool, image) for pool, slash, image in specs if slash)


def parse_counters(data: bytes, pool: str, image: str, *, source: str) -> _Counters | None:
    """An image's counters from ``perf dump``; ``None`` if it has none, :class:`ParseError` for another form."""
    ending = f"-{pool}-{image.rpartition('/')[2]}"
    for name, raw in decode(dict[str, msgspec.Raw], data, source=source).items():
        kind, _, rest = name.partition("-")
        if kind == "librbd" and rest[rest.find("-") :] == ending:
            return decode(_Counters, bytes(raw), source=source)
    return None


def parse_features(text: str, *, source: str) -> str:
    """The names of the features, by comma; a bit without a name is left out."""
    bits = int(sysfs.matched("0x[0-9a-f]{1,16}", text, "a number in base 16", source)[0], 16)
    return ",".join(name for bit, name in enumerate(_FEATURES) if bits >> bit & 1)


def read_rbd_clients(patterns: Sequence[str], roots: Roots, timeout_s: float = TIMEOUT_S) -> RbdClientsReading:
    """One for each image; of several processes that have it open, that which opened it last. :class:`Unavailable` if no
    image is in use, as far as this user may see."""
    clients: dict[tuple[str, str], RbdClient] = {}
    unread: list[tuple[str, str]] = []
    paths = list(islice(find_sockets(patterns), SOCKETS_MAX))
    questions = [
        question
        for path in paths
        for question in (
            Question(path, "help"),
            Question(path, "perf dump"),
            *(Question(path, "config get", {"var": option}) for option in _OPTIONS),
        )
    ]
    answers = ask(questions, timeout_s=timeout_s)
    asked = len(_OPTIONS) + 2
    for number, path in enumerate(paths):
        try:
            for client in _clients(str(path), answers[number * asked :][:asked]):
                key = (client.pool, client.image)
                if key not in clients or clients[key].opened_ts <= client.opened_ts:
                    clients[key] = client
        except Ended:
            continue
        except ParseError:
            unread.append((str(path), "malformed"))
        except Unavailable:
            unread.append((str(path), "unreadable"))
    for device in sysfs.entries(roots.sys / "bus" / "rbd" / "devices"):
        try:
            client = _mapped(roots, device)
            clients.setdefault((client.pool, client.image), client)
        except ParseError:
            unread.append((f"rbd{device}", "malformed"))
    if not clients and not unread:
        raise Unavailable("no RBD image in use here, or none whose client has an admin socket; see docs/rbd.md")
    return RbdClientsReading(tuple(islice(clients.values(), IMAGES_MAX)), tuple(unread))


def _clients(source: str, answers: Sequence[Answer]) -> list[RbdClient]:
    """The images of one process; raises the first fault among its answers."""
    helped, dumped, *options = [_answered(answer) for answer in answers]
    cache, policy, until_flush = (
        parse_option(answer, option, source=source) for answer, option in zip(options, _OPTIONS, strict=True)
    )
    clients = []
    for pool, image in parse_images(helped, source=source):
        counters = parse_counters(dumped, pool, image, source=source)
        if counters is not None:
            clients.append(
                RbdClient(
                    pool,
                    image,
                    "librbd",
                    cache=policy if cache == "true" else "none",
                    until_flush=until_flush == "true" if cache == "true" else None,
                    operations={
                        "read": counters.rd_latency,
                        "write": counters.wr_latency,
                        "discard": counters.discard_latency,
                        "flush": counters.flush_latency,
                    },
                    octets={
                        "read": counters.rd_bytes,
                        "write": counters.wr_bytes,
                        "discard": counters.discard_bytes,
                    },
                    opened_ts=counters.opened_time,
                )
            )
    return clients


def _answered(answer: Answer) -> bytes:
    if isinstance(answer, PlumblineError):
        raise answer
    return answer


def _mapped(roots: Roots, device: str) -> RbdClient:
    """An image that the kernel has mapped; :class:`ParseError` without a name."""
    base = roots.sys / "bus" / "rbd" / "devices" / device
    pool, namespace, name = (sysfs.read_text(base / file) for file in ("pool", "pool_ns", "name"))
    if pool is None or name is None:
        raise ParseError(str(base), "no pool or name")
    features = sysfs.read_parsed(base / "features", parse_features) or ""
    return RbdClient(pool, f"{namespace}/{name}" if namespace else name, "krbd", features=features)
