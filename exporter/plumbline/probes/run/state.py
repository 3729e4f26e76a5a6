"""The state that survives a restart: each periodic probe's latest result, counters and histograms, and the known disks
and paths.

It is one small JSON file, replaced atomically (write, fsync, rename), so that a crash leaves the old or the new file.
An unreadable file is renamed and reported: nothing is lost, and a monitor must start even if its own state is damaged.
The directory is marked as ours (:mod:`.storage`) and locked, because two daemons would overwrite each other.

The file names its schema version. An older version is read, and kept as ``state.json.version-N`` when the first file
of the current schema replaces it, so that an older Plumbline can be restored. A newer version is not damage: it was
written by a newer Plumbline and is not read, moved or overwritten; the start is refused.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from plumbline import __version__
from plumbline.core import jsontext
from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.proofs import Content
from plumbline.core.storage_names import STATE_FILE
from plumbline.core.wall_clock import WallClock, moved
from plumbline.errors import FileRefused, StateError
from plumbline.probes.run.histogram import Count, OperationTotals, add_operations, without_bins
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.state_times import as_of, moved_record
from plumbline.probes.run.storage import Held, acquire, explained, sweep

SCHEMA_VERSION = 3
"""Raised only when an older release would misread the file; fields that it may ignore need no new version."""
READABLE_VERSIONS = (1, 2, 3)
"""Version 1 had no totals and no time of the last tick, version 2 had no figures of runs before the last."""

RECENT_RUNS = 3
"""Number of successful runs whose figures are kept: if two of three exceed a limit, so does their median."""

HISTORY_RUNS = 30  # Enough to show a trend: 240 bytes per operation in memory, 600 in the file

_FAILURES_KEPT = 5
MAX_BYTES = 64 << 20  # A hundred probes need a few hundred KiB; a larger file is not ours

log = logging.getLogger(__name__)


class ProbeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything remembered about one periodic probe; immutable, so that a scrape reads it without a lock."""

    result: ProbeResult | None = None  # The latest finished run, whatever its outcome
    success: ProbeResult | None = None  # The latest successful run
    failures: tuple[ProbeResult, ...] = ()  # The last few runs that did not succeed, newest first, for the status page
    runs: dict[Outcome, Count] = {}
    skipped: dict[str, Count] = {}
    last_skip: str = ""  # Why the latest tick was skipped, in one line; empty after a run
    ticked: float | None = None  # Time of the latest tick, run or skip; Unix seconds
    totals_of: str = ""
    """The experiment that ``totals``, ``recent`` and ``history`` belong to: others start anew."""
    totals: dict[str, OperationTotals] = {}  # By operation: durations over all successful runs
    recent: tuple[tuple[OperationResult, ...], ...] = ()
    """Figures of the last :data:`RECENT_RUNS` successful runs, newest first."""
    history: dict[str, tuple[float, ...]] = {}
    """By operation: the leading figure of the last :data:`HISTORY_RUNS` successful runs, oldest first, for the status
    page. An earlier release ignores it and it may be absent, so it needs no schema version."""

    def with_result(self, result: ProbeResult) -> ProbeRecord:
        """The record after a finished run. Its bins are added to the totals and not kept per run."""
        ok = result.outcome is Outcome.SUCCESS
        experiment = f"{result.config_hash} {result.device_class}"
        same = self.totals_of == experiment
        totals, recent, history = (self.totals, self.recent, self.history) if same else ({}, (), {})
        if ok:
            totals = add_operations(totals, result)
        result = without_bins(result)
        if ok:
            recent = (result.operations, *recent)[:RECENT_RUNS]
            history = _prolonged(history, result.operations)
        return msgspec.structs.replace(
            self,
            result=result,
            success=result if ok else self.success,
            failures=self.failures if ok else (result, *self.failures)[:_FAILURES_KEPT],
            runs={**self.runs, result.outcome: self.runs.get(result.outcome, 0) + 1},
            last_skip="",
            ticked=result.started,
            totals_of=experiment,
            totals=totals,
            recent=recent,
            history=history,
        )

    def with_skip(self, reason: str, message: str, *, at: float | None = None) -> ProbeRecord:
        """The record after a tick, at Unix time ``at``, at which the probe did not run."""
        return msgspec.structs.replace(
            self,
            skipped={**self.skipped, reason: self.skipped.get(reason, 0) + 1},
            last_skip=message,
            ticked=self.ticked if at is None else at,
        )


def _prolonged(
    history: Mapping[str, tuple[float, ...]], operations: Iterable[OperationResult]
) -> dict[str, tuple[float, ...]]:
    longer = dict(history)
    for operation in operations:
        if operation.leading is not None:
            name, latest = operation.operation, operation.leading[1]
            longer[name] = (*longer.get(name, ()), latest)[-HISTORY_RUNS:]
    return longer


class DiskRecord(msgspec.Struct, frozen=True):
    """A disk that is or was present, and when; Unix seconds."""

    device: str
    serial: str
    first_seen: float
    last_seen: float
    slot: str = ""  # when it was first seen; empty where the kernel knows none


class DiskSeen(msgspec.Struct, frozen=True):
    device: str
    serial: str
    present: bool
    last_seen_ts: float


class DisksSeen(tuple[DiskSeen, ...]):
    """The present disks, and those that left within a week."""


class PathRecord(msgspec.Struct, frozen=True):
    """A path to a multipath disk, and since when it has been gone; Unix seconds, ``None`` while it is there."""

    disk: str  # the disk's identity
    name: str
    transport: str
    address: str
    gone_since: float | None = None


class NewerState(StateError):
    """The existing state was written by a newer Plumbline."""


class _Version(msgspec.Struct, frozen=True):
    """What all schemas have in common."""

    schema_version: int


class _File(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: int
    probes: dict[str, ProbeRecord]
    disks: tuple[DiskRecord, ...] = ()
    paths: tuple[PathRecord, ...] = ()


def read_state(directory: Path) -> Mapping[str, ProbeRecord]:
    """A daemon's state, read without locking, creating or moving anything. Raises :class:`StateError` if unreadable."""
    file = directory / STATE_FILE
    try:
        with OwnDirectory.at(directory, owner=directory.stat().st_uid, follow=True) as opened:
            return _decode(opened.read(STATE_FILE, MAX_BYTES), file).probes
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StateError(f"{file}: can't be read: {error.strerror}") from error
    except FileRefused as error:
        raise StateError(str(error)) from error
    except msgspec.DecodeError as error:
        raise StateError(f"{file}: unreadable state ({error}); the daemon sets it aside at its next start") from error


def open_storage(directory: Path, *, create: bool = True) -> OwnDirectory:
    """The storage path, created or taken, and marked: :func:`.storage.acquire`."""

    def loads(data: bytes) -> bool:
        try:
            _decode(data, directory / STATE_FILE)
        except msgspec.DecodeError:
            return False
        return True

    return acquire(directory, loads, most_bytes=MAX_BYTES, create=create)


def is_state(data: bytes) -> bool:
    """Whether ``data`` is a state file that this Plumbline can read."""
    try:
        _decode(data, Path(STATE_FILE))
    except (msgspec.DecodeError, NewerState):
        return False
    return True


def _decode(data: bytes, file: Path) -> _File:
    """Raises :class:`msgspec.DecodeError` for damaged data, :class:`NewerState` for a later schema."""
    # decoded first: in a later schema nothing else need match
    version = jsontext.decode(data, _Version).schema_version
    if version > SCHEMA_VERSION:
        raise NewerState(
            f"{file}: schema version {version} was written by a newer Plumbline; this one ({__version__}) reads"
            f" {SCHEMA_VERSION} and below. Install the newer one again, or move the file away; {_older_files(file)}"
        )
    content = jsontext.decode(data, _File)
    if version not in READABLE_VERSIONS:
        raise msgspec.ValidationError(f"schema version {version}, which no Plumbline wrote")
    return content


def kept_as(file: Path, version: int) -> Path:
    """Where the last file of an older schema is kept."""
    return file.with_name(f"{file.name}.version-{version}")


def _older_files(file: Path) -> str:
    kept = [path.name for version in reversed(READABLE_VERSIONS) if (path := kept_as(file, version)).exists()]
    return f"{kept[0]} next to it is the last file of this schema" if kept else "the daemon then starts afresh"


class StateStore:
    """The state directory of one daemon. All methods may be called from any thread."""

    def __init__(self, directory: Path, clock: WallClock | None = None) -> None:
        self.directory = directory
        self._clock = clock or WallClock()
        self._file = directory / STATE_FILE
        self._lock = threading.Lock()
        # while open, all writes go there, whatever its path names by then
        self._held: Held | None = None
        self._probes: dict[str, ProbeRecord] = {}
        self.disks: tuple[DiskRecord, ...] = ()
        self.paths: tuple[PathRecord, ...] = ()
        self.save_failed = False
        """True while the newest state is only in memory, not where the next daemon will look (disk full, …)."""
        self._saved = False  # by this process
        # schema of the file that was loaded, until it is replaced
        self._schema_there: int | None = None

    def open(self) -> None:
        """Create, mark and lock the directory, then load its state. Raises :class:`StateError` if that fails."""
        content = self._acquire(create=True)
        now = self._clock.wall()
        self._probes = {name: as_of(record, now) for name, record in content.probes.items()}
        self.disks = tuple(moved(disk, min(0.0, now - disk.last_seen), *_DISK_TIMES) for disk in content.disks)
        self.paths = tuple(
            moved(path, min(0.0, now - (path.gone_since or 0.0)), "gone_since") for path in content.paths
        )

    def follow_clock(self) -> float:
        """Keep the age of everything remembered where the wall clock was set; returns by how much in all, so far."""
        with self._lock:
            jumped_s = self._clock.jumped_s()
            if jumped_s:
                self._probes = {name: moved_record(record, jumped_s) for name, record in self._probes.items()}
                self.disks = tuple(moved(disk, jumped_s, *_DISK_TIMES) for disk in self.disks)
                self.paths = tuple(moved(path, jumped_s, "gone_since") for path in self.paths)
            return self._clock.jumped_in_all_s

    def look(self) -> None:
        """See to it that the newest state is where the next daemon will look: write it again if that failed before, or
        if the directory or the file was replaced or removed since. May block as long as the disk does."""
        with self._lock:
            written = STATE_FILE if self._saved else ""
            if self._held is not None and (self.save_failed or not self._held.in_place(written)):
                self._save()

    def _acquire(self, *, create: bool) -> _File:
        """Open, lock and read the directory that the path leads to now, instead of any before."""
        with explained(self.directory):
            held = Held(open_storage(self.directory, create=create))
            try:
                sweep(held.own)
                content = self._load(held.own)
            except BaseException:
                held.close()
                raise
        self._release()
        self._held = held
        return content

    def close(self) -> None:
        """Release the directory for the next daemon."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def get(self, probe: str) -> ProbeRecord:
        return self._probes.get(probe, _EMPTY)

    def put(self, probe: str, record: ProbeRecord) -> None:
        """Remember, and write to disk. A failed write is logged once and retried at the next ``put``."""
        with self._lock:
            self._probes = {**self._probes, probe: record}
            self._save()

    def keep_disks(self, disks: Iterable[DiskRecord]) -> None:
        """Remember in memory; written with the next ``put``."""
        with self._lock:
            self.disks = tuple(disks)

    def put_disks(self, disks: Iterable[DiskRecord]) -> None:
        """Remember, and write to disk; in memory only while the directory is not open (:meth:`open`)."""
        with self._lock:
            self.disks = tuple(disks)
            if self._held is not None:
                self._save()

    def put_paths(self, paths: Iterable[PathRecord]) -> None:
        """As :meth:`put_disks`."""
        with self._lock:
            self.paths = tuple(paths)
            if self._held is not None:
                self._save()

    def forget_others(self, probes: frozenset[str]) -> None:
        with self._lock:
            self._probes = {name: record for name, record in self._probes.items() if name in probes}

    def _follow(self) -> StateError | None:
        """Use the directory that the path leads to now, with the checks of a start; the state in memory is the newer
        one. Returns why that can't be: then the old directory, wherever it is, gets the state all the same."""
        if self._held is None or self._held.own.same():
            return None
        try:
            self._acquire(create=False)
        except StateError as error:
            return error
        log.info("%s: was replaced by another directory; that is used now", self.directory)
        return None

    def _load(self, own: OwnDirectory) -> _File:
        try:
            content = _decode(own.read(STATE_FILE, MAX_BYTES), self._file)
        except FileNotFoundError:
            return _EMPTY_FILE
        except msgspec.DecodeError as error:
            why = str(error)
        except FileRefused as error:
            if error.reason != "too-large":
                raise
            why = f"larger than {MAX_BYTES >> 20} MiB"
        else:
            self._schema_there = content.schema_version
            return content
        log.error("%s: unreadable state (%s); kept as %s, starting afresh", self._file, why, own.set_aside(STATE_FILE))
        return _EMPTY_FILE

    def _save(self) -> None:
        try:
            elsewhere = self._follow()
            if self._held is None:
                raise StateError(f"{self.directory}: is not open")
            try:
                self._keep_older(self._held.own)
                content = _File(schema_version=SCHEMA_VERSION, probes=self._probes, disks=self.disks, paths=self.paths)
                self._held.own.replace(STATE_FILE, jsontext.encode(content), Content(self._is_state), mode=0o640)
                self._saved = True
            finally:
                if elsewhere is not None:
                    raise elsewhere
        except Exception as error:  # whatever it is: the gauge reports it, and the daemon goes on  # noqa: BLE001
            if not self.save_failed:
                reason = (isinstance(error, OSError) and error.strerror) or str(error) or repr(error)
                log.error("%s: can't be written: %s; results are kept in memory only", self._file, reason)
            self.save_failed = True
            return
        if self.save_failed:
            log.info("%s: written again", self._file)
        self.save_failed = False

    def _keep_older(self, own: OwnDirectory) -> None:
        """Keep the older file before the first one of this schema replaces it: an older release can't read the new."""
        if (there := self._schema_there) is not None and there < SCHEMA_VERSION:
            kept = kept_as(self._file, there).name
            own.replace(kept, own.read(STATE_FILE, MAX_BYTES), Content(self._is_state), mode=0o640)
            log.info("%s: schema version is now %d; the previous file is %s", self._file, SCHEMA_VERSION, kept)
        self._schema_there = None

    def _is_state(self, descriptor: int) -> bool:
        """Whether a file in the directory was written by a daemon."""
        return is_state(read_whole(descriptor, MAX_BYTES, str(self._file)))


_DISK_TIMES = ("first_seen", "last_seen")
_EMPTY = ProbeRecord()
_EMPTY_FILE = _File(schema_version=SCHEMA_VERSION, probes={})
