"""Baseline files in readable YAML: recorded on this host (``source: measured``), written by the site, or the accepted
figures of a class of nodes (``source: class``, :mod:`plumbline.fleet.classes`).

A hand-written file needs only this::

    schema_version: 1
    entries:
    - workload: randread-4k-qd1-j1
      device_class: nvme
      latency: {p50: 84us, p99: 160us}

``config_hash`` and ``layer`` follow from the workload (and ``rate_iops``, if the probe's rate is limited). A file is
accepted as a whole or not at all: any error is one :class:`BaselineError` with file, key, value and reason.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta

from plumbline.baseline.files import Latencies, Place, convert_text
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import BaselineEntry, Source
from plumbline.baseline.units import Iops, Latency, Quantity, Throughput
from plumbline.config.types import Strict
from plumbline.config.yaml import read_text
from plumbline.core.jsontext import convert
from plumbline.errors import BaselineError, ConfigError

# a node has a few dozen entries; a larger file is not a baseline file
MAX_BYTES = 2**20
_Ratio = Annotated[float, Meta(ge=1, le=1000)]
_Share = Annotated[float, Meta(ge=0, le=1000)]
_Rate = Annotated[float, Meta(ge=0, le=1e15)]


class Device(Strict, frozen=True, omit_defaults=True):
    name: str
    device_class: str
    model: str = ""
    serial: str = ""


class LevelSpread(
    Strict, frozen=True, omit_defaults=True, rename={"one_minute": "1m", "five_minutes": "5m", "thirty_minutes": "30m"}
):
    """By span. A struct instead of a mapping, so that errors name the key."""

    one_minute: _Share | None = None
    five_minutes: _Share | None = None
    thirty_minutes: _Share | None = None

    @classmethod
    def of(cls, by_span: Mapping[str, float]) -> Self:
        return convert(by_span, cls)

    def items(self) -> Iterator[tuple[str, float]]:
        for span in msgspec.structs.fields(self):
            if (spread := getattr(self, span.name)) is not None:
                yield span.encode_name, spread


class IopsAtLatency(Strict, frozen=True, kw_only=True):
    """The most operations per second at which a share of them stays within a latency, and the queue depth for it."""

    target: Latency
    percentile: Annotated[float, Meta(gt=0, le=100)]  # Percentage of operations that took no longer than target
    iops: Iops
    queue_depth: Annotated[int, Meta(ge=1)]


class SiteEntry(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """One operation of one workload. Only ``workload``, ``device_class`` and one figure are needed, and ``operation``
    if the workload has several.

    ``targets``: the measured disks, OSDs or peers if the entry covers several. ``mean_of_runs`` and ``iops_of_runs``
    are recorded if the tool reports no median or no throughput; ``median_of_runs`` is that of ``p50_of_runs``, else of
    ``mean_of_runs``. ``mad_ratio`` (median absolute deviation ÷ median) and ``spread_ratio`` (highest ÷ lowest) are of
    the runs' latencies, else of their rates. ``level_spread``, by span: how far medians of that length strayed upwards
    (their 0.9 quantile ÷ their median − 1); ``calm_seconds``: how long the level stayed beyond the tolerance at most;
    the load is what the disk served for others while it was recorded.
    """

    workload: str
    operation: str = ""
    device_class: Annotated[str, Meta(min_length=1)]
    device: str = ""
    targets: tuple[str, ...] = ()
    rate_iops: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    latency: Latencies = Latencies()
    iops: Iops | None = None
    throughput: Throughput | None = None
    iops_at_latency: IopsAtLatency | None = None
    tolerance_ratio: _Ratio | None = None
    runs: Annotated[int, Meta(ge=1)] | None = None
    p50_of_runs: tuple[Latency, ...] = ()
    mean_of_runs: tuple[Latency, ...] = ()
    throughput_of_runs: tuple[Throughput, ...] = ()
    iops_of_runs: tuple[Iops, ...] = ()
    median_of_runs: Latency | None = None
    mad_ratio: Annotated[float, Meta(ge=0, le=1000)] | None = None
    spread_ratio: Annotated[float, Meta(ge=1, le=1e9)] | None = None
    level_spread: LevelSpread = LevelSpread()
    calm_seconds: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    load_ops_per_second: _Rate | None = None
    load_bytes_per_second: _Rate | None = None
    config_hash: Annotated[str, Meta(pattern=r"^([0-9a-f]{12})?$")] = ""
    note: str = ""


class SiteFile(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """A whole file. A ``measured`` file needs ``host`` and ``recorded``, one of a ``class`` its ``fleet_class``.
    ``name`` is the ``profile`` label; it defaults to the file's name without its suffix. ``recorded_by`` is a user.
    ``fleet_class``: model and role of the node in its fleet. ``hosts``: of a class, the nodes that it was made of; then
    ``runs``, ``mad_ratio`` and ``spread_ratio`` of an entry are of these nodes. The ``fingerprint`` is compared with
    the current one by the daemon and ``plumbline baseline compare``. ``notes``: what the signer must know: few runs, a
    host that was not idle, what was accepted by force, what was left out."""

    schema_version: int
    source: Literal["site", "measured", "class"] = "site"
    name: str = ""
    host: str = ""
    fleet_class: str = ""
    hosts: tuple[str, ...] = ()
    recorded: datetime | None = None
    recorded_by: str = ""
    kernel: str = ""
    tools: dict[str, str] = msgspec.field(default_factory=dict)
    fingerprint: Fingerprint | None = None
    devices: tuple[Device, ...] = ()
    notes: tuple[str, ...] = ()
    entries: tuple[SiteEntry, ...]


class LoadedSite(msgspec.Struct, frozen=True):
    """A checked file; ``entries`` are its figures in base units."""

    where: str
    file: SiteFile
    entries: tuple[BaselineEntry, ...]

    @property
    def name(self) -> str:
        """The ``profile`` label of its entries."""
        return self.entries[0].profile


def read_site(path: Path, *, host: str | None) -> LoadedSite:
    """As :func:`parse_site`, for a file."""
    return parse_site(site_text(path), where=str(path), host=host)


def site_text(path: Path) -> str:
    try:
        return read_text(path, max_bytes=MAX_BYTES)
    except ConfigError as error:
        raise BaselineError(error.where, error.reason) from error


def parse_site(text: str, *, where: str, host: str | None) -> LoadedSite:
    """Check a file's text. ``host`` is this host's name: a measured file of another host is refused, because it would
    judge hardware on which it was not measured. With ``None`` the file is only shown, so any host's is accepted. Raises
    :class:`BaselineError`."""
    file = convert_text(SiteFile, text, where=where)
    place = Place(where)
    if file.recorded is not None and file.recorded.tzinfo is None:
        raise place.error("recorded", "needs a time zone; end it with Z for UTC", str(file.recorded))
    if file.source == "measured":
        _check_measured(file, place, host)
    if file.source == "class" and not file.fleet_class:
        raise place.error("fleet_class", "is required in the baseline of a class")
    return LoadedSite(where, file, tuple(_entries(file, place)))


def _check_measured(file: SiteFile, place: Place, host: str | None) -> None:
    for key in ("host", "recorded"):
        if not getattr(file, key):
            raise place.error(key, "is required in a measured baseline")
    if host is not None and file.host != host:
        reason = (
            f"measured on another host than this one ({host}); record one here with `plumbline baseline record`, "
            "or write source: site to judge this host by it"
        )
        raise place.error("host", reason, file.host)


def _entries(file: SiteFile, whole: Place) -> Iterator[BaselineEntry]:
    if not file.entries:
        raise whole.error("entries", "has no entries; write at least one")
    measured = file.recorded.timestamp() if file.recorded else None
    seen: dict[tuple[str, ...], int] = {}
    for index, entry in enumerate(file.entries):
        place = whole.at(f"entries[{index}]")
        workload = place.workload(entry.workload)
        operation = place.operation(entry.operation, workload)
        _check_figures(entry, place)
        config_hash = entry.config_hash or workload.config_hash(rate_iops=entry.rate_iops)
        identity = (entry.device_class, workload.id, operation, config_hash)
        if identity in seen:
            raise place.error("workload", f"duplicates entries[{seen[identity]}]; keep one", entry.workload)
        seen[identity] = index
        yield BaselineEntry(
            layer=workload.layer,
            device_class=entry.device_class,
            workload=workload.id,
            operation=operation,
            source=Source(file.source),
            profile=file.name or PurePath(whole.where).stem,
            config_hash=config_hash,
            latency=entry.latency.seconds(),
            iops=entry.iops.value if entry.iops else None,
            throughput=entry.throughput.value if entry.throughput else None,
            tolerance_ratio=entry.tolerance_ratio,
            level_spread=dict(entry.level_spread.items()),
            calm_seconds=entry.calm_seconds,
            load_ops_per_second=entry.load_ops_per_second,
            load_bytes_per_second=entry.load_bytes_per_second,
            measured=measured,
            note=entry.note,
        )


def _check_figures(entry: SiteEntry, place: Place) -> None:
    figures = dict(entry.latency.items())
    if not (figures or entry.iops or entry.throughput):
        raise place.error("", "has no figure; write latency, iops or throughput")
    figures.pop("mean", None)  # with a long tail the mean may exceed any percentile
    for (low, below), (high, above) in pairwise(figures.items()):
        if above.exact < below.exact:
            raise place.error(f"latency.{high}", f"is below {low} = {below.text}", above.text)


def encode(value: object) -> object:
    """Hook for msgspec: writes a figure as its text. Raises :class:`NotImplementedError` for other types."""
    if isinstance(value, Quantity):
        return value.text
    raise NotImplementedError(type(value))
