"""The configuration: strict YAML in, frozen structs out, one clear line for every mistake.

An unknown key, a wrong type or an impossible value raises :class:`ConfigError` with file, dotted key, value and
reason; nothing is applied. Without a file the defaults below are the configuration: no root, no Ceph, no other
program, loopback only.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import yaml
from msgspec import Meta

from plumbline.errors import ConfigError
from plumbline.workloads import WorkloadCatalogue

DEFAULT_LISTEN_ADDRESS = "127.0.0.1:10047"
"""Loopback, because no authentication is set; the port lies outside 9100-9999, which is fully allocated."""

COLLECTORS = (
    "array",
    "baseline",
    "bond",
    "canary",
    "channel",
    "coalesce",
    "device",
    "disk",
    "diskpresence",
    "diskuse",
    "ethtool",
    "finding",
    "health",
    "infiniband",
    "interrupts",
    "latency",
    "link",
    "linkmode",
    "offload",
    "pause",
    "pcie",
    "probe",
    "queue",
    "ring",
    "softnet",
    "sysctl",
    "tcp",
    "topology",
)
"""The names that ``collectors:`` and ``--collector.<name>`` know; the composition root holds one of each."""

MIN_HEALTH_INTERVAL_S = 60.0

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_UNITS_B = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
T = TypeVar("T")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class Duration(float):
    """Seconds; written as Prometheus writes durations: ``500ms``, ``15s``, ``5m``, ``6h``, ``1d``, ``1w``."""

    @classmethod
    def parse(cls, text: object) -> Duration:
        """Raise ``ValueError`` with the accepted forms for anything else."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", text) if isinstance(text, str) else None
        if not match:
            raise ValueError("expected a duration such as 500ms, 15s, 5m, 6h or 1d")
        return cls(float(match[1]) * _UNITS_S[match[2]])


class Size(int):
    """Bytes; written with a binary unit: ``4KiB``, ``64MiB``, ``1GiB``. MB is refused: it is another number."""

    @classmethod
    def parse(cls, text: object) -> Size:
        """Raise ``ValueError`` with the accepted forms for anything else."""
        if isinstance(text, int) and not isinstance(text, bool):
            return cls(text)
        match = re.fullmatch(r"(\d+)\s*(B|KiB|MiB|GiB|TiB|)", text) if isinstance(text, str) else None
        if not match:
            raise ValueError("expected bytes or a size such as 64MiB or 1GiB (binary units only)")
        return cls(int(match[1]) * _UNITS_B[match[2]])


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Unknown keys are refused, values never change after loading."""


class WebConfig(_Strict, frozen=True):
    """The HTTP side."""

    listen_address: str = DEFAULT_LISTEN_ADDRESS
    """``host:port``; ``[::1]:port`` for IPv6; port 0 takes a free one."""
    max_requests: Annotated[int, Meta(ge=1, le=1000)] = 40
    """Requests under way at once; one more gets 503. As node_exporter's flag of that name."""


class DevicesConfig(_Strict, frozen=True):
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


class CanaryConfig(_Strict, frozen=True, tag_field="type", tag="canary"):
    """The continuous light probe: single operations at Poisson-distributed moments in a file of our own."""

    name: str
    """The `probe` label; lower-case letters, digits, `.`, `_`, `-`."""
    workloads: tuple[str, ...] = ("randread-4k-qd1-j1", "randwrite-4k-qd1-j1-dsync")
    """Catalogue ids, one for each operation; single O_DIRECT operations only (qd1-j1)."""
    directory: str | None = None
    """``None``: a directory of the probe's name in the storage path."""
    device_class: str | None = None
    """``None``: what the kernel says of the device below the directory."""
    file_size: Size | None = None
    """``None``: 1 GiB on rotational disks (more than their own cache), 16 MiB on others."""
    rate: Annotated[float, Meta(gt=0, le=100)] | None = None
    """Operations a second, all workloads together. ``None``: 1 on rotational disks, 10 on others."""
    stuck_after: Duration = Duration(10.0)
    """An operation in flight for longer makes ``plumbline_probe_success`` 0."""
    enabled: bool = True
    """False: as if it were not in the file."""


class FioConfig(_Strict, frozen=True, tag_field="type", tag="fio"):
    """A periodic fio run of one catalogue workload in a directory, bounded in size, time and rate."""

    name: str
    """The `probe` label; lower-case letters, digits, `.`, `_`, `-`."""
    workload: str
    """Its id in the catalogue, e.g. `randread-4k-qd16-j1`."""
    directory: str | None = None
    """``None``: a directory of the probe's name in the storage path."""
    device_class: str | None = None
    """``None``: what the kernel says of the device below the directory."""
    interval: Duration = Duration(6 * 3600.0)
    """From start to start; a start that comes while a run is under way is dropped."""
    runtime: Duration = Duration(10.0)
    """Of the measured part; laying out the files comes before, once."""
    timeout: Duration = Duration(60.0)
    """Wall time after which the whole process group is killed."""
    file_size: Size = Size(64 * 2**20)
    """Of each job's file."""
    rate_iops: Annotated[int, Meta(gt=0)] | None = None
    """Cap on operations per second of each job; a capped run is compared only with baselines of the same cap."""
    max_device_busy: Annotated[float, Meta(gt=0, le=1)] = 0.5
    """Skip while the device below was busy for more than this share of the last moments."""
    max_load_per_cpu: Annotated[float, Meta(gt=0)] = 2.0
    """Skip while the one-minute load average per CPU is above this."""
    enabled: bool = True
    """False: as if it were not in the file."""


ProbeConfig = CanaryConfig | FioConfig


class BaselineConfig(_Strict, frozen=True):
    """Which baselines exist and which may judge."""

    files: tuple[str, ...] = ()
    """Site files, read at start and reload; ``baseline.yaml`` in the storage path (what ``plumbline baseline
    record`` writes) is always read when it exists."""
    judge: dict[str, str] = {}
    """Device class → documented profile that judges it here, e.g. ``{ssd: unnoba-2020}``. Another site's
    hardware: without an entry a documented profile is shown and judges nothing."""


def _default_probes() -> tuple[ProbeConfig, ...]:
    return (
        CanaryConfig(name="canary"),
        FioConfig(name="fio-randwrite-4k", workload="randwrite-4k-qd1-j1", rate_iops=50),
    )


class Config(_Strict, frozen=True):
    """The whole configuration file."""

    web: WebConfig = WebConfig()
    """The HTTP side; takes effect at a restart."""
    storage_path: str | None = None
    """State, canary file, recorded baseline. ``None``: systemd's ``$STATE_DIRECTORY``, else
    ``$XDG_STATE_HOME/plumbline``, else ``~/.local/state/plumbline``."""
    collectors: dict[str, bool] = {}
    """Collector name → on or off; all are on by default."""
    devices: DevicesConfig = DevicesConfig()
    """Which devices are reported."""
    probes: tuple[ProbeConfig, ...] = msgspec.field(default_factory=_default_probes)
    """What is measured on purpose. None given: a canary, and fio (`randwrite-4k-qd1-j1`, 50 operations a second)."""
    baseline: BaselineConfig = BaselineConfig()
    """Which baselines exist and which may judge."""


def load(path: Path, catalogue: WorkloadCatalogue) -> Config:
    """Read and check a configuration file; any mistake is one :class:`ConfigError`."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(str(path), f"can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), f"is not UTF-8 at byte {error.start}") from error
    return parse(text, where=str(path), catalogue=catalogue)


def parse(text: str, *, where: str, catalogue: WorkloadCatalogue) -> Config:
    """Check configuration text; ``where`` names it in errors. An empty document is the default configuration."""
    data = read_yaml(text, where=where)
    config = convert(Config, {} if data is None else data, where=where)
    _check(config, where, catalogue)
    return config


def read_yaml(text: str, *, where: str) -> Any:
    """YAML with repeated keys refused; ``None`` for an empty document."""
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506  (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{where}:{mark.line + 1}" if mark else where
        raise ConfigError(at, f"not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(where, f"not valid YAML: {' '.join(str(error).split())}") from error


def convert(kind: type[T], data: Any, *, where: str) -> T:
    """``data`` as ``kind``, or :class:`ConfigError` with the dotted key, the value that stood there and why."""
    try:
        return msgspec.convert(data, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        reason, _, path = " ".join(str(error).split()).partition(" - at `")  # a key may hold a line break
        key = path.rstrip("`").removeprefix("$").removeprefix(".")
        unknown = re.match(r"Object contains unknown field `(.*)`", reason)
        if unknown:
            key = f"{key}.{unknown[1]}".lstrip(".")
            raise ConfigError(where, "no such key; see the configuration reference", key=key) from error
        raise ConfigError(where, _lower_first(reason), key=key, value=_value_at(data, key) if key else None) from error


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
    for name in config.collectors:
        if name not in COLLECTORS:
            raise ConfigError(where, f"no such collector; there are: {', '.join(COLLECTORS)}", key=f"collectors.{name}")
    for key in ("disk_exclude", "nic_exclude"):
        value = getattr(config.devices, key)
        try:
            re.compile(value)
        except re.error as error:
            raise ConfigError(where, f"not a regular expression: {error}", key=f"devices.{key}", value=value) from error
    if config.devices.health_interval < MIN_HEALTH_INTERVAL_S:
        raise ConfigError(
            where,
            f"at least {MIN_HEALTH_INTERVAL_S:g}s: every question costs the disk some of its time",
            key="devices.health_interval",
            value=f"{float(config.devices.health_interval):g}s",
        )
    seen: set[str] = set()
    for index, probe in enumerate(config.probes):
        key = f"probes[{index}]"
        if not _NAME.fullmatch(probe.name):
            raise ConfigError(
                where, "use lower-case letters, digits, '.', '_' and '-'", key=f"{key}.name", value=probe.name
            )
        if probe.name in seen:
            raise ConfigError(where, "another probe has this name", key=f"{key}.name", value=probe.name)
        seen.add(probe.name)
        _check_probe(probe, where, key, catalogue)


def _check_probe(probe: ProbeConfig, where: str, key: str, catalogue: WorkloadCatalogue) -> None:
    if isinstance(probe, CanaryConfig):
        if not probe.workloads:
            raise ConfigError(where, "name at least one workload", key=f"{key}.workloads", value=[])
        operations: set[str] = set()
        for workload_id in probe.workloads:
            workload = catalogue.get(workload_id, where=where, key=f"{key}.workloads")
            if workload.layer != "disk" or workload.iodepth * workload.jobs != 1 or not workload.direct:
                raise ConfigError(
                    where,
                    "the canary does single O_DIRECT operations: a disk workload with qd1-j1",
                    key=f"{key}.workloads",
                    value=workload_id,
                )
            if operations & set(workload.operations):
                raise ConfigError(
                    where, "two workloads with the same operation", key=f"{key}.workloads", value=workload_id
                )
            operations |= set(workload.operations)
        if probe.file_size is not None and probe.file_size < 2**20:
            raise ConfigError(where, "at least 1MiB", key=f"{key}.file_size", value=int(probe.file_size))
        return
    workload = catalogue.get(probe.workload, where=where, key=f"{key}.workload")
    if probe.timeout <= probe.runtime:
        raise ConfigError(
            where, "must be longer than runtime", key=f"{key}.timeout", value=f"{float(probe.timeout):g}s"
        )
    if probe.interval < 2 * probe.timeout:
        raise ConfigError(
            where,
            "must be at least twice the timeout, or the probe never rests",
            key=f"{key}.interval",
            value=f"{float(probe.interval):g}s",
        )
    if probe.file_size < workload.block_size:
        raise ConfigError(
            where, "smaller than the workload's block", key=f"{key}.file_size", value=int(probe.file_size)
        )


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
