"""The configuration: strict YAML in, frozen structs out, one clear line for every mistake.

An unknown key, a wrong type or an impossible value raises :class:`ConfigError` with file, dotted key, value and
reason; nothing is applied. Without a file the defaults below are the configuration: no root, no Ceph, no other
program, loopback only.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import yaml
from msgspec import Meta

from plumbline import __version__
from plumbline.config_types import CREDENTIAL, Duration, QuietHours, Strict, secret_problem
from plumbline.core.answers import read_named
from plumbline.errors import ConfigError
from plumbline.probe_config import PROBE_NAME, CanaryConfig, FioConfig, ProbeConfig, check_probe
from plumbline.storage_names import reserved
from plumbline.workloads import WorkloadCatalogue

DEFAULT_LISTEN_ADDRESS = "127.0.0.1:10047"
"""Loopback, because no authentication is set; the port lies outside 9100-9999, which is fully allocated."""

MAX_CHARACTERS, MAX_NODES, MAX_DEPTH = 4 << 20, 100_000, 50
"""Of one YAML file: a site file of a thousand entries has 30,000 values, none is nested deeper than ten levels."""
SCHEMA_VERSION = 1
"""Raised when a key's meaning changes; a new key needs none: an older release says which key it does not know."""
MIN_HEALTH_INTERVAL_S = 60.0
MAX_CEPH_TIMEOUT_S = 30.0
"""Half of the lease of the cluster's lock: it has to be renewed in time."""
_LONGEST_WORDS = 300

T = TypeVar("T")
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class WebConfig(Strict, frozen=True):
    """The HTTP side."""

    listen_address: str = DEFAULT_LISTEN_ADDRESS
    """``host:port``; ``[::1]:port`` for IPv6; port 0 takes a free one. Other than loopback, say who may come in."""
    config_file: str | None = None
    """TLS, client certificates, users and headers, in the format that exporters share (docs/web.md); read anew at a
    reload, and when it or a certificate changes. As the flag ``--web.config.file``."""
    max_requests: Annotated[int, Meta(ge=1, le=1000)] = 40
    """Requests under way at once; one more gets 503. As node_exporter's flag of that name."""


class DevicesConfig(Strict, frozen=True):
    """Which devices are reported (regular expressions, matched against the whole name), and which are Ceph's."""

    disk_exclude: str = r"(?:loop|ram|zram|fd|sr|nbd)\d+"
    """Disks to leave out."""
    disk_partitions: bool = False
    """True: the counters (collector `disk`) of partitions, too, as `device="sda1"`. What goes to a partition counts on
    its disk as well: sums over devices then count it twice."""
    health_interval: Duration = Duration(300.0)
    """How often a disk is asked for its health (SMART), at least `1m`; a sleeping disk is left asleep."""
    nic_exclude: str = r""
    """Network devices to leave out, e.g. `veth.*|cali.*` on a container host."""
    ceph_public: tuple[str, ...] = ()
    """Network devices of Ceph's public network, by name. Empty: found out from ceph.conf, else from open sockets."""
    ceph_cluster: tuple[str, ...] = ()
    """The same for the cluster network."""


class BaselineConfig(Strict, frozen=True):
    """Which baselines exist and which may judge."""

    files: tuple[str, ...] = ()
    """Site files, read at start and reload; ``baseline.yaml`` in the storage path (what ``plumbline baseline
    record`` writes) is always read when it exists."""
    judge: dict[str, str] = msgspec.field(default_factory=dict)
    """Device class → documented profile that judges it here, e.g. ``{ssd: unnoba-2020}``. Another site's
    hardware: without an entry a documented profile is shown and judges nothing."""


class CephConfig(Strict, frozen=True):
    """The cluster this node belongs to. Without a configuration file of Ceph nothing here is used."""

    conf: str = "/etc/ceph/ceph.conf"
    """Ceph's configuration file: where the monitors are."""
    user: str = "plumbline"
    """cephx user, without `client.`; `plumbline ceph setup` makes it."""
    keyring: str | None = None
    """Its key: a file, or `credential:NAME`, which systemd hands the service. ``None``: what Ceph's configuration says,
    `/etc/ceph/ceph.client.plumbline.keyring` by default."""
    pool: str = "plumbline-probe"
    """Our pool for objects, and for the lock that lets one heavy probe run at a time in the cluster."""
    rbd_pool: str = "plumbline-rbd"
    """Our pool for images."""
    osd_bench_user: str | None = None
    """cephx user for `osd-bench` probes, without `client.`. Ceph lets nobody bench an OSD who has not all rights on all
    OSDs, so this is one of its own, made by `plumbline ceph setup --osd-bench`. ``None``: OSDs are not benched."""
    osd_bench_keyring: str | None = None
    """Its key, a file or `credential:NAME`. ``None``: what Ceph's configuration says."""
    admin_sockets: tuple[str, ...] = (
        "/run/ceph/*-osd.*.asok",
        "/run/ceph/*/*-osd.*.asok",
        "/var/lib/rook/exporter/*-osd.*.asok",
    )
    """Where the OSDs of this host have their admin sockets: packages, cephadm, Rook. Absolute paths with `*`."""
    map: Literal["auto", "always", "never"] = "auto"
    """Whether this node asks what the cluster map says (`plumbline_ceph_osd_*`, `plumbline_ceph_pool_*`), every minute.
    One node a cluster would do; `auto`: where a monitor or a manager is set up. `always` on one node where that is seen
    nowhere, not on all of them: each costs the monitors and the manager its questions."""
    timeout: Duration = Duration(5.0)
    """Of each question to the monitors and each operation on an object, in whole seconds, `1s` to `30s`."""


class GatesConfig(Strict, frozen=True):
    """What keeps periodic probes from running, and stops one that runs. Each probe's own limits come on top."""

    quiet_hours: tuple[QuietHours, ...] = ()
    """No heavy probe runs then, in local time: `Mon-Fri 08:00-18:00`, `daily 22:00-06:00`."""
    health: Literal["ok", "warn", "any"] = "warn"
    """The worst cluster health at which Ceph's probes run."""
    recovery: bool = False
    """Whether they run during recovery, backfill or a rebalance."""


class NetworkServerConfig(Strict, frozen=True):
    """The other side of other nodes' `iperf3` probes: a server that the daemon keeps, one client at a time."""

    listen: str
    """`address:port` of the network that is measured, e.g. `10.0.0.11:10048`."""
    allow: tuple[str, ...] = ()
    """Addresses or networks that may measure, e.g. `10.0.0.0/24`. None: those of the listening address's network.
    Keeps others' tests out; it is no firewall."""

    @property
    def networks(self) -> tuple[IpNetwork, ...]:
        """``allow``, understood; ``ValueError`` for what is no network."""
        return tuple(ipaddress.ip_network(each) for each in self.allow)


def _default_probes() -> tuple[ProbeConfig, ...]:
    return (
        CanaryConfig(name="canary"),
        FioConfig(name="fio-randwrite-4k", workload="randwrite-4k-qd1-j1", rate_iops=50),
    )


class Config(Strict, frozen=True):
    """The whole configuration file."""

    schema_version: int = SCHEMA_VERSION
    """Of this file's format. A file of a newer Plumbline is refused as such."""
    web: WebConfig = WebConfig()
    """The HTTP side; but for ``config_file`` it takes effect at a restart."""
    storage_path: str | None = None
    """State, canary file, recorded baseline: a directory of Plumbline's own, new or empty at the first start, in which
    nobody else may write. ``None``: systemd's ``$STATE_DIRECTORY``, else ``$XDG_STATE_HOME/plumbline``, else
    ``~/.local/state/plumbline``. Takes effect at a restart."""
    collectors: dict[str, bool] = msgspec.field(default_factory=dict)
    """Collector name → on or off; all are on by default. What was off at the start and needs a capability (`health`,
    `latency`, `pcie`) can't be switched on by a reload: the daemon has given the capability up."""
    devices: DevicesConfig = DevicesConfig()
    """Which devices are reported."""
    probes: tuple[ProbeConfig, ...] = msgspec.field(default_factory=_default_probes)
    """What is measured on purpose. None given: a canary, and fio (`randwrite-4k-qd1-j1`, 50 operations a second)."""
    gates: GatesConfig = GatesConfig()
    """What keeps probes from running."""
    ceph: CephConfig = CephConfig()
    """The cluster this node belongs to."""
    network_server: NetworkServerConfig | None = None
    """The other side of other nodes' throughput probes. ``None``: there is none."""
    vantage: Literal["host", "vm", "container"] | None = None
    """From where this node looks: a label of every probe; takes effect at a restart. ``None``: found out."""
    baseline: BaselineConfig = BaselineConfig()
    """Which baselines exist and which may judge."""


def load(path: Path, catalogue: WorkloadCatalogue) -> Config:
    """Read and check a configuration file; any mistake is one :class:`ConfigError`."""
    return parse(read_text(path, max_bytes=4 * MAX_CHARACTERS), where=str(path), catalogue=catalogue)


def read_text(path: Path, *, max_bytes: int) -> str:
    """A file that somebody wrote by hand; :class:`ConfigError` for one that is too long, no UTF-8 or can't be read."""
    try:
        data = read_named(path, max_bytes)
    except OSError as error:
        raise ConfigError(str(path), f"can't be read: {error.strerror}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), f"is not UTF-8 at byte {error.start}") from None


def parse(text: str, *, where: str, catalogue: WorkloadCatalogue) -> Config:
    """Check configuration text; ``where`` names it in errors. An empty document is the default configuration."""
    data = read_yaml(text, where=where)
    _check_version(data, where)
    config = convert(Config, {} if data is None else data, where=where)
    _check(config, where, catalogue)
    return config


def _check_version(data: Any, where: str) -> None:
    """First: of a newer file nothing else need be understood."""
    version = data.get("schema_version", SCHEMA_VERSION) if isinstance(data, dict) else SCHEMA_VERSION
    if type(version) is int and version > SCHEMA_VERSION:
        reason = (
            f"written for a newer Plumbline; this one ({__version__}) knows {SCHEMA_VERSION}: install the newer one, or"
            " take the file of before"
        )
        raise ConfigError(where, reason, key="schema_version", value=version)
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ConfigError(where, f"expected {SCHEMA_VERSION}", key="schema_version", value=version)


def read_yaml(text: str, *, where: str) -> Any:
    """YAML with repeated keys refused, bounded in time and memory; ``None`` for an empty document."""
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(where, f"is longer than {MAX_CHARACTERS >> 20} MiB; that is no configuration")
    try:
        _measure(text, where)
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506  (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{where}:{mark.line + 1}" if mark else where
        raise ConfigError(at, f"not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(where, f"not valid YAML: {' '.join(str(error).split())}") from error
    except (AttributeError, LookupError, TypeError, OverflowError) as error:  # of PyYAML's: !!timestamp x, !!bool x
        raise ConfigError(where, "not valid YAML: a value is not what its tag (!!…) says") from error


def _measure(text: str, where: str) -> None:
    """Refuse what would be too much once loaded.

    The C loader recurses: 100,000 brackets end the process by SIGSEGV. Aliases of aliases are a gigabyte in ten lines
    as soon as somebody prints them.
    """
    sizes: dict[str, int] = {}  # anchor → nodes, aliases written out
    open_nodes: list[tuple[str | None, int]] = []  # anchor, nodes before it
    nodes = 0
    for event in yaml.parse(text, Loader=_UniqueKeyLoader):
        at = f"{where}:{event.start_mark.line + 1}" if event.start_mark else where
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, nodes))
            nodes += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = nodes - before
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_nodes):
                raise ConfigError(at, f"not valid here: *{event.anchor} stands inside of what it repeats")
            nodes += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
        if len(open_nodes) > MAX_DEPTH:
            raise ConfigError(at, f"not valid here: nested deeper than {MAX_DEPTH} levels")
        if nodes > MAX_NODES:
            raise ConfigError(at, f"not valid here: more than {MAX_NODES} values, aliases counted each time")


def convert(kind: type[T], data: Any, *, where: str) -> T:
    """``data`` as ``kind``, or :class:`ConfigError` with the dotted key, the value that stood there and why."""
    for key, text in _texts(data):
        if "\0" in text:  # the system's calls would refuse it, long after the check
            in_one_line = " ".join(key.split())
            raise ConfigError(where, "holds a NUL, which no path, name or pattern does", key=_cut(in_one_line))
    try:
        return msgspec.convert(data, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        reason, _, path = " ".join(str(error).split()).partition(" - at `")  # a key may hold a line break
        key = path.rstrip("`").removeprefix("$").removeprefix(".")
        unknown = re.match(r"Object contains unknown field `(.*)`", reason)
        if unknown:
            key = f"{key}.{unknown[1]}".lstrip(".")
            raise ConfigError(where, "no such key; see the configuration reference", key=_cut(key)) from error
        value = _value_at(data, key) if key else None
        raise ConfigError(where, _lower_first(_cut(reason)), key=_cut(key), value=value) from error
    except OverflowError as error:
        raise ConfigError(where, "a number is too large for what it stands for") from error


def _texts(data: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text and key in it, with its dotted key."""
    if isinstance(data, str):
        yield key, data
    elif isinstance(data, dict):
        for name, value in data.items():
            at = f"{key}.{name}".removeprefix(".")
            yield at, str(name)
            yield from _texts(value, at)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _texts(value, f"{key}[{index}]")


def convert_secret(kind: type[T], data: Any, *, where: str, reference: str) -> T:
    """:func:`convert` of what may hold secrets: no error shows a value. ``reference``: the page that has its keys."""
    try:
        return convert(kind, {} if data is None else data, where=where)
    except ConfigError as error:
        reason = error.reason.replace("the configuration reference", reference)
        raise ConfigError(where, reason, key=error.key) from None


def _cut(text: str) -> str:
    """Short enough for a line; it may hold all of a long value."""
    return text if len(text) <= _LONGEST_WORDS else f"{text[: _LONGEST_WORDS - 1]}…"


def _decode(kind: type, value: object) -> object:
    parse = getattr(kind, "parse", None)
    if parse is None:
        raise NotImplementedError(kind)
    return parse(value)


def _check(config: Config, where: str, catalogue: WorkloadCatalogue) -> None:
    """What types alone can't say."""
    try:
        split_address(config.web.listen_address)
    except ValueError as error:
        raise ConfigError(where, str(error), key="web.listen_address", value=config.web.listen_address) from None
    for key in ("disk_exclude", "nic_exclude"):
        value = getattr(config.devices, key)
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            raise ConfigError(where, f"not a regular expression: {error}", key=f"devices.{key}", value=value) from error
    if config.devices.health_interval < MIN_HEALTH_INTERVAL_S:
        raise ConfigError(
            where,
            f"at least {MIN_HEALTH_INTERVAL_S:g}s: every question costs the disk some of its time",
            key="devices.health_interval",
            value=f"{float(config.devices.health_interval):g}s",
        )
    if config.network_server is not None:
        _check_network_server(config.network_server, where)
    _check_ceph(config.ceph, where)
    seen: set[str] = set()
    for index, probe in enumerate(config.probes):
        key = f"probes[{index}]"
        if not PROBE_NAME.fullmatch(probe.name):
            raise ConfigError(
                where, "use lower-case letters, digits, '.', '_' and '-'", key=f"{key}.name", value=probe.name
            )
        if isinstance(probe, CanaryConfig | FioConfig) and probe.directory is None and reserved(probe.name):
            # its directory would be called so, in the storage path
            raise ConfigError(
                where, "a file of Plumbline's has this name; choose another", key=f"{key}.name", value=probe.name
            )
        if probe.name in seen:
            raise ConfigError(where, "another probe has this name", key=f"{key}.name", value=probe.name)
        seen.add(probe.name)
        check_probe(probe, where, key, catalogue)


def _check_ceph(ceph: CephConfig, where: str) -> None:
    for index, pattern in enumerate(ceph.admin_sockets):
        if not pattern.startswith("/") or "**" in pattern:
            key = f"ceph.admin_sockets[{index}]"
            raise ConfigError(where, "expected an absolute path; * is understood, ** is not", key=key, value=pattern)
    for name in ("keyring", "osd_bench_keyring"):
        path = getattr(ceph, name)
        if path is not None and path.startswith(CREDENTIAL) and (problem := secret_problem(path)):
            raise ConfigError(where, problem, key=f"ceph.{name}", value=path)
    if not 1 <= ceph.timeout <= MAX_CEPH_TIMEOUT_S:
        raise ConfigError(
            where,
            f"1s to {MAX_CEPH_TIMEOUT_S:g}s: a probe must not wait longer for a cluster that hangs",
            key="ceph.timeout",
            value=f"{float(ceph.timeout):g}s",
        )


def _check_network_server(server: NetworkServerConfig, where: str) -> None:
    key = "network_server.listen"
    try:
        host, port = split_address(server.listen)
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ConfigError(where, "expected address:port, e.g. 10.0.0.11:10048", key=key, value=server.listen) from None
    if port == 0:
        raise ConfigError(where, "other nodes have to know the port", key=key, value=server.listen)
    if address.is_unspecified and not server.allow:
        raise ConfigError(
            where, "name the address of the network that is measured, or say who may in allow", key=key,
            value=server.listen,
        )  # fmt: skip
    try:
        server.networks  # noqa: B018  (asked for its error)
    except ValueError as error:
        raise ConfigError(where, str(error), key="network_server.allow", value=[*server.allow]) from None


def split_address(text: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port`` → host and port; ``:port`` means every address. ``ValueError`` otherwise."""
    match = re.fullmatch(r"(?:\[(?P<six>[0-9a-fA-F:.%]+)\]|(?P<host>[^:\[\]]*)):(?P<port>\d{1,5})", text)
    if not match or int(match["port"]) > 65535:
        raise ValueError("expected host:port, for example 127.0.0.1:10047 or [::1]:10047")
    if match["six"]:
        try:
            ipaddress.IPv6Address(match["six"])
        except ValueError:
            raise ValueError("what stands in [] is not an IPv6 address") from None
    return match["six"] or match["host"] or "", int(match["port"])


class _UniqueKeyLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML lets a repeated key silently win over the first; a config where that happens is refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} stands twice", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]


def _value_at(data: Any, key: str) -> Any:
    """What stood at msgspec's dotted path; ``None`` where the path ends early (``[...]`` is any element)."""
    for part in re.findall(r"[^.\[\]]+|\[\d+\]", key):
        try:
            data = data[int(part[1:-1])] if part.startswith("[") else data[part]
        except (LookupError, TypeError, ValueError):
            return None
    return data


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
