"""The configuration: strict YAML parsed into frozen structs, with one clear line for every error.

An unknown key, a wrong type or an impossible value raises :class:`ConfigError` with file, dotted key, value and
reason; nothing is applied. Without a file the defaults below apply: no root, no Ceph, no other program, loopback only.
"""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from plumbline import __version__
from plumbline.config.probes import ProbeConfig
from plumbline.config.probes.disk import CanaryConfig, FioConfig
from plumbline.config.types import CREDENTIAL, Duration, FieldError, QuietHours, Size, Strict, secret_problem
from plumbline.config.workloads import load_catalogue
from plumbline.config.yaml import MAX_CHARACTERS, convert, read_text, read_yaml
from plumbline.errors import ConfigError

DEFAULT_LISTEN_ADDRESS = "127.0.0.1:10047"
"""Loopback, because no authentication is set; the port is outside 9100-9999, which is fully allocated."""

MAX_BYTES = 4 * MAX_CHARACTERS
SCHEMA_VERSION = 1
"""Incremented when a key's meaning changes. A new key needs no increment: an older release names the unknown key."""
MIN_HEALTH_INTERVAL_S = 60.0
MAX_CEPH_TIMEOUT_S = 30.0
"""Half of the lease of the cluster's lock, which must be renewed in time."""

# Arguments of smartctl, which must not look like options.
_NODE = re.compile(r"/dev/[a-z][A-Za-z0-9_/-]{0,63}")
# Not jmb39x, jms56x and intelliprop, whose disks smartctl asks by writing to a sector or a log, and does not restore it
# when it is ended in between.
_BEHIND_CONTROLLER = re.compile(
    r"((sat|scsi)\+)?(3ware|aacraid|areca|cciss|hpt|megaraid|sssraid)(,[0-9]{1,5}(/[0-9]{1,5}){0,2}){1,3}"
)
_BEHIND = "expected a type such as megaraid,8 or cciss,0: 3ware, aacraid, areca, cciss, hpt, megaraid or sssraid"


def split_address(text: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port`` → host and port; ``:port`` means every address; otherwise ``ValueError``."""
    match = re.fullmatch(r"(?:\[(?P<six>[0-9a-fA-F:.%]+)\]|(?P<host>[^:\[\]]*)):(?P<port>\d{1,5})", text)
    if not match or int(match["port"]) > 65535:
        raise ValueError("expected host:port, for example 127.0.0.1:10047 or [::1]:10047")
    if match["six"]:
        try:
            ipaddress.IPv6Address(match["six"])
        except ValueError:
            raise ValueError("not an IPv6 address in []") from None
    return match["six"] or match["host"] or "", int(match["port"])


class WebConfig(Strict, frozen=True):
    """The web server."""

    listen_address: str = DEFAULT_LISTEN_ADDRESS
    """``host:port``; ``[::1]:port`` for IPv6; port 0 picks a free one. If not loopback, configure who has access."""
    config_file: str | None = None
    """TLS, client certificates, users and headers, in the format shared by exporters (docs/web.md); read again at a
    reload, and when it or a certificate changes. Same as the flag ``--web.config.file``."""
    max_requests: Annotated[int, Meta(ge=1, le=1000)] = 40
    """Concurrent requests; one more gets 503. Same as node_exporter's flag of that name."""

    def __post_init__(self) -> None:
        try:
            split_address(self.listen_address)
        except ValueError as error:
            raise self.mistake("listen_address", str(error)) from None


class DevicesConfig(Strict, frozen=True):
    """Which devices are reported (regular expressions that match the whole name), and which are Ceph's."""

    disk_exclude: str = r"(?:loop|ram|zram|fd|sr|nbd)\d+"
    """Disks to exclude."""
    disk_partitions: bool = False
    """True: also count partitions (collector `disk`), as `device="sda1"`. I/O to a partition counts on its disk too, so
    sums over devices count it twice."""
    disk_queue_buckets: bool = False
    """True: export the buckets of `plumbline_disk_queue_seconds`, 27 for each disk and operation. No rule or dashboard
    reads them; the sum and count, which give the mean wait, are always there."""
    health_interval: Duration = Duration(300.0)
    """How often a disk is asked for its health (SMART), at least `1m`; a sleeping disk is not woken."""
    controller_disks: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Disks behind a RAID controller that shows volumes instead: node → types, as `smartctl --scan` lists them, e.g.
    `{/dev/bus/0: ['megaraid,8']}` or `{/dev/sg0: ['cciss,0']}`. Their health has `device="bus/0:megaraid,8"`. Types:
    `3ware`, `aacraid`, `areca`, `cciss`, `hpt`, `megaraid`, `sssraid`; for others smartctl may write to the disk."""
    nic_exclude: str = r""
    """Network devices to exclude, e.g. `veth.*|cali.*` on a container host."""
    ceph_public: tuple[str, ...] = ()
    """Network devices of Ceph's public network, by name. Empty: detected from ceph.conf, else from open sockets."""
    ceph_cluster: tuple[str, ...] = ()
    """The same for the cluster network."""

    def __post_init__(self) -> None:
        for field in ("disk_exclude", "nic_exclude"):
            try:
                re.compile(getattr(self, field))
            except (re.error, RecursionError, OverflowError) as error:
                raise self.mistake(field, f"not a regular expression: {error}") from error
        for node, kinds in self.controller_disks.items():
            if not _NODE.fullmatch(node):
                raise self.mistake("controller_disks", "expected a node such as /dev/bus/0 or /dev/sg0")
            for kind in kinds:
                if not _BEHIND_CONTROLLER.fullmatch(kind):
                    raise self.mistake("controller_disks", _BEHIND)
        if self.health_interval < MIN_HEALTH_INTERVAL_S:
            reason = f"at least {MIN_HEALTH_INTERVAL_S:g}s: each query interrupts the disk"
            raise self.mistake("health_interval", reason)


class BaselineConfig(Strict, frozen=True):
    """Which baselines exist and which may judge."""

    files: tuple[str, ...] = ()
    """Site files, read at start and reload; ``baseline.yaml`` in the storage path (written by ``plumbline baseline
    record``) is always read if it exists."""
    judge: dict[str, str] = msgspec.field(default_factory=dict)
    """Device class → documented profile that judges it here, e.g. `{ssd: unnoba-2020}`. A documented profile describes
    another site's hardware: without an entry it is shown but judges nothing."""
    allowed_signers: str | None = None
    """A file in the format of `ssh-keygen`'s allowed signers. The recorded baseline, and that of the node's class, are
    then used only with a signature of one of them (`plumbline fleet accept`); any other file is refused. ``None``: no
    signature is asked for."""


class CephConfig(Strict, frozen=True):
    """The cluster this node belongs to. Without a Ceph configuration file nothing here is used."""

    secrets: ClassVar[tuple[str, ...]] = ("keyring", "osd_bench_keyring")
    """Fields that may hold `credential:NAME`."""

    conf: str = "/etc/ceph/ceph.conf"
    """Ceph's configuration file, which names the monitors."""
    user: str = "plumbline"
    """cephx user, without `client.`; `plumbline ceph setup` creates it."""
    keyring: str | None = None
    """Its key: a file, or `credential:NAME`, which systemd gives the service. ``None``: as Ceph's configuration says,
    by default `/etc/ceph/ceph.client.plumbline.keyring`."""
    pool: str = "plumbline-probe"
    """Our pool for objects, and for the lock that lets one heavy probe run at a time in the cluster."""
    rbd_pool: str = "plumbline-rbd"
    """Our pool for images."""
    osd_bench_user: str | None = None
    """cephx user for `osd-bench` probes, without `client.`. Ceph lets only users with all rights on all OSDs bench one,
    so this is a separate user, created by `plumbline ceph setup --osd-bench`. ``None``: OSDs are not benched."""
    osd_bench_keyring: str | None = None
    """Its key, a file or `credential:NAME`. ``None``: as Ceph's configuration says."""
    admin_sockets: tuple[str, ...] = (
        "/run/ceph/*-osd.*.asok",
        "/run/ceph/*/*-osd.*.asok",
        "/var/lib/rook/exporter/*-osd.*.asok",
    )
    """Admin sockets of this host's OSDs: packages, cephadm, Rook. Absolute paths with `*`."""
    client_pools: tuple[int, ...] = ()
    """Pools, by number as in `ceph osd pool ls detail`, whose images, buckets, files and namespaces are listed by how
    many operations they have in flight on this host's OSDs (`plumbline_osd_client_operations`): the twenty with the
    most. The OSDs are asked ten times within a second, every 15 s."""
    client_sockets: tuple[str, ...] = ("/run/ceph/guests/*.asok",)
    """Admin sockets of librbd's clients on this host, such as QEMU. Absolute paths with `*`; 128 are asked."""
    map: Literal["auto", "always", "never"] = "auto"
    """Whether this node queries the cluster map (`plumbline_ceph_osd_*`, `plumbline_ceph_pool_*`) every minute. One
    node a cluster is enough; `auto`: a node where a monitor or a manager is set up does. If that is detected nowhere,
    set `always` on one node, not on all: each node's queries cost the monitors and the manager time."""
    timeout: Duration = Duration(5.0)
    """Timeout of each query to the monitors and each operation on an object, in whole seconds, `1s` to `30s`."""

    def __post_init__(self) -> None:
        for name in ("admin_sockets", "client_sockets"):
            for index, pattern in enumerate(getattr(self, name)):
                if not pattern.startswith("/") or "**" in pattern:
                    raise FieldError(f"{name}[{index}]", "expected an absolute path; * is allowed, ** is not", pattern)
        for field in self.secrets:
            path = getattr(self, field)
            if path is not None and path.startswith(CREDENTIAL) and (problem := secret_problem(path)):
                raise self.mistake(field, problem)
        if not 1 <= self.timeout <= MAX_CEPH_TIMEOUT_S:
            reason = f"1s to {MAX_CEPH_TIMEOUT_S:g}s: a probe must not wait longer for a cluster that hangs"
            raise self.mistake("timeout", reason)


class GatesConfig(Strict, frozen=True):
    """What keeps periodic probes from running, and stops a running one. Each probe's own limits apply as well."""

    quiet_hours: tuple[QuietHours, ...] = ()
    """No heavy probe runs at these times, in local time: `Mon-Fri 08:00-18:00`, `daily 22:00-06:00`."""
    health: Literal["ok", "warn", "any"] = "warn"
    """The worst cluster health at which Ceph's probes run."""
    ignored_checks: tuple[str, ...] = (
        "AUTH_EMERGENCY_CIPHERS_SET",
        "AUTH_INSECURE_CLIENT_KEY_TYPE",
        "AUTH_INSECURE_GLOBAL_ID_RECLAIM",
        "AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED",
        "AUTH_INSECURE_KEYS_ALLOWED",
        "AUTH_INSECURE_KEYS_CREATABLE",
        "AUTH_INSECURE_ROTATING_SERVICE_KEY_TYPE",
        "AUTH_INSECURE_SERVICE_KEY_TYPE",
        "AUTH_INSECURE_SERVICE_TICKETS",
    )
    """Health checks that `health` does not count, because they say nothing of load or data. By default those about
    cephx keys: after an upgrade to Ceph 19.2.6 or 20.2.4 they are errors until all keys are rotated. A list of yours
    replaces this one. Flags, recovery and full OSDs or pools keep probes away in any case."""
    recovery: bool = False
    """Whether Ceph's probes run during recovery, backfill or a rebalance."""

    def __post_init__(self) -> None:
        for index, name in enumerate(self.ignored_checks):
            if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
                raise FieldError(f"ignored_checks[{index}]", "expected a health check's name such as MON_DOWN", name)


DOCUMENTED_PROBE = FioConfig(
    name="documented-randread-4k",
    workload="randread-4k-qd4-j1",
    file_size=Size(2**30),  # more than a disk's own cache
    interval=Duration(24 * 3600.0),
    timeout=Duration(300.0),
)
"""Reads as a document has measured them, once a day, on :data:`DOCUMENTED_CLASSES` alone."""
DOCUMENTED_CLASSES = ("hdd",)
"""Classes of which a document has a latency of :data:`DOCUMENTED_PROBE`, and none of what the default canary reads."""

_DEFAULT_PROBES: tuple[ProbeConfig, ...] = (
    CanaryConfig(name="canary"),
    FioConfig(name="fio-randwrite-4k", workload="randwrite-4k-qd1-j1", rate_iops=50),
    DOCUMENTED_PROBE,
)


class Config(Strict, frozen=True):
    """The whole configuration file."""

    schema_version: int = SCHEMA_VERSION
    """Version of this file's format. A file for a newer Plumbline is refused as such."""
    web: WebConfig = WebConfig()
    """The web server; apart from ``config_file`` it takes effect at a restart."""
    storage_path: str | None = None
    """State, canary file, recorded baseline: a directory used only by Plumbline, new or empty at the first start, that
    nobody else may write to. ``None``: systemd's ``$STATE_DIRECTORY``, else ``$XDG_STATE_HOME/plumbline``, else
    ``~/.local/state/plumbline``. Takes effect at a restart."""
    collectors: dict[str, bool] = msgspec.field(default_factory=dict)
    """Collector name → on or off; all are on by default. For one that is off nothing is read or asked. A collector that
    needs a capability (`health`, `latency`, `pcie`) and was off at the start can't be switched on by a reload: the
    daemon has dropped the capability."""
    devices: DevicesConfig = DevicesConfig()
    """Which devices are reported."""
    probes: tuple[ProbeConfig, ...] = msgspec.field(default_factory=lambda: _DEFAULT_PROBES)
    """The probes to run. By default a canary, fio (`randwrite-4k-qd1-j1`, 50 operations a second), and once a day, if
    the disk is an `hdd`, fio as a document measured such disks (`randread-4k-qd4-j1`, a file of 1 GiB)."""
    gates: GatesConfig = GatesConfig()
    """What keeps probes from running."""
    ceph: CephConfig = CephConfig()
    """The cluster this node belongs to."""
    vantage: Literal["host", "vm", "container"] | None = None
    """Where this node measures from: a label of every probe; takes effect at a restart. ``None``: detected."""
    baseline: BaselineConfig = BaselineConfig()
    """Which baselines exist and which may judge."""

    def __post_init__(self) -> None:
        names: set[str] = set()
        for index, probe in enumerate(self.probes):
            if probe.name in names:
                raise FieldError(f"probes[{index}].name", "another probe has this name", probe.name)
            names.add(probe.name)

    def collects(self, collector: str) -> bool:
        return self.collectors.get(collector, True)


def load(path: Path) -> Config:
    """Read and check a configuration file; any error is one :class:`ConfigError`."""
    return parse(read_text(path, max_bytes=MAX_BYTES), where=str(path))


def parse(text: str, *, where: str) -> Config:
    """Check configuration text; ``where`` names it in errors. An empty document is the default configuration."""
    return checked(read_yaml(text, where=where), where=where)


def checked(data: Any, *, where: str) -> Config:
    """:func:`parse` of what YAML has read."""
    _check_version(data, where)
    config = convert(Config, {} if data is None else data, where=where)
    for index, probe in enumerate(config.probes):
        try:
            probe.chosen(load_catalogue())
        except FieldError as error:
            raise error.at(where, f"probes[{index}]") from None
    return config


def _check_version(data: Any, where: str) -> None:
    """Checked first, because the rest of a newer file may not be understood."""
    version = data.get("schema_version", SCHEMA_VERSION) if isinstance(data, dict) else SCHEMA_VERSION
    if type(version) is int and version == SCHEMA_VERSION:
        return
    reason = f"expected {SCHEMA_VERSION}"
    if type(version) is int and version > SCHEMA_VERSION:
        supported = f"this one ({__version__}) supports {SCHEMA_VERSION}"
        reason = f"written for a newer Plumbline; {supported}: upgrade, or restore the previous file"
    raise ConfigError(where, reason, key="schema_version", value=version)
