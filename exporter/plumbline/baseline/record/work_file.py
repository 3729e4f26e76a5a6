"""The work file of a recording holds every finished run, so that an interruption costs at most the current run.

It is replaced durably and as a whole after each run: a kill or a power failure leaves the state before or after a run.
The next recording reuses the runs that belong to the same experiment on the same host.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from plumbline.baseline.fingerprint import Fingerprint, changes
from plumbline.baseline.record.statistics import RunFigures
from plumbline.core import jsontext
from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.proofs import Content
from plumbline.core.storage_names import WORK_FILE
from plumbline.errors import FileRefused, StateError

# older runs are repeated, because a baseline shows one day
KEEP_S = 24 * 3600.0
_VERSION = 1
# a thousand runs with a thousand bins each are 30 MiB
_MAX_BYTES = 256 << 20
_CLOCK_SLACK_S = 60.0


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """One finished run of one step. ``parameters`` as in ``Step``; ``finished`` is Unix seconds."""

    step: str
    parameters: str
    finished: float
    figures: tuple[RunFigures, ...]
    tool: str = ""
    tool_version: str = ""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A recording in progress. ``release`` is Plumbline's; another one may use other buckets."""

    version: int
    release: str
    host: str
    fingerprint: Fingerprint
    runs: tuple[KeptRun, ...] = ()


class Resumed(msgspec.Struct, frozen=True):
    """The runs to reuse, and a line that says so; the line is empty if there was nothing to reuse."""

    runs: tuple[KeptRun, ...]
    line: str = ""


class WorkFile:
    """The file; ``release`` and ``host`` are this recording's."""

    def __init__(self, storage: Path, *, release: str, host: str, fingerprint: Fingerprint) -> None:
        self.path = storage / WORK_FILE
        self._work = Work(version=_VERSION, release=release, host=host, fingerprint=fingerprint)

    def resume(self, steps: Mapping[str, str], *, now: float) -> Resumed:
        """Take over the valid runs of ``steps`` (name → parameters); runs of other steps stay in the file for later
        use. ``now`` is Unix seconds. Raises :class:`StateError`."""
        record = self._read()
        if isinstance(record, str):
            return Resumed((), record)
        resumed, kept = judge(record, self._work, steps, now=now)
        self._work = msgspec.structs.replace(self._work, runs=kept)
        return resumed

    def forget(self, steps: frozenset[str], *, now: float) -> None:
        """Discard the runs of ``steps`` and keep the others. Raises :class:`StateError`."""
        record = self._read()
        if not isinstance(record, str):
            _, kept = judge(record, self._work, {}, now=now)
            self._work = msgspec.structs.replace(self._work, runs=tuple(run for run in kept if run.step not in steps))
            self._write()

    def keep(self, run: KeptRun) -> None:
        """Add a run, durably. Raises :class:`StateError` if it can't be written, before hours of measuring are lost."""
        self._work = msgspec.structs.replace(self._work, runs=(*self._work.runs, run))
        self._write()

    def remove(self) -> None:
        """Remove the file after the baseline is written. Raises :class:`StateError`."""
        if self.path.parent.exists():
            with self._directory("removed") as directory, suppress(FileNotFoundError):
                directory.remove(WORK_FILE, _OURS)

    @contextmanager
    def _directory(self, done: str, loss: str = "") -> Iterator[OwnDirectory]:
        """The storage path; its errors become :class:`StateError`. ``loss``: what an error costs."""
        try:
            with OwnDirectory.at(self.path.parent, follow=True) as directory:
                yield directory
        except OSError as error:
            raise StateError(f"{self.path}: can't be {done}: {error.strerror}{loss}") from error
        except FileRefused as error:
            raise StateError(f"{error}{loss}") from error

    def _read(self) -> Work | str:
        """The content, or a line for the user. A file that is no recording is set aside, so that nothing is lost."""
        with self._directory("read") as directory:
            try:
                return jsontext.decode(directory.read(WORK_FILE, _MAX_BYTES), Work)
            except FileNotFoundError:
                return ""
            except FileRefused as error:
                if error.reason != "too-large":
                    raise
                what = "too large for a recording in progress"
            except msgspec.DecodeError as error:
                what = f"not a recording in progress ({error})"
            return f"{self.path}: {what}; kept as {directory.set_aside(WORK_FILE)}, everything is measured again"

    def _write(self) -> None:
        with self._directory("written", "; the runs would be lost") as directory:
            directory.replace(WORK_FILE, jsontext.encode(self._work), _OURS, mode=0o640)


def is_work(data: bytes) -> bool:
    try:
        jsontext.decode(data, Work)
    except msgspec.DecodeError:
        return False
    return True


_OURS = Content(lambda descriptor: is_work(read_whole(descriptor, _MAX_BYTES, WORK_FILE)))


def judge(then: Work, now_here: Work, steps: Mapping[str, str], *, now: float) -> tuple[Resumed, tuple[KeptRun, ...]]:
    """Which runs of an earlier recording are reused, and which stay in the file. A run is valid if host, release and
    fingerprint are the same, its step has the same parameters, and it is younger than :data:`KEEP_S`."""
    why = _another(then, now_here)
    if why:
        return Resumed((), f"the earlier recording is not continued: {why}; everything is measured again"), ()
    young = tuple(run for run in then.runs if -_CLOCK_SLACK_S <= now - run.finished <= KEEP_S)
    kept = tuple(run for run in young if steps.get(run.step, run.parameters) == run.parameters)
    mine = tuple(run for run in kept if run.step in steps)
    lost = [f"{len(then.runs) - len(young)} older than {KEEP_S / 3600:g} h"] if len(young) < len(then.runs) else []
    changed = Counter(run.step for run in young if run not in kept)
    lost += [f"{count} of {step} (its parameters changed)" for step, count in changed.items()]
    if not mine and not lost:
        return Resumed(()), kept
    line = f"continuing with {len(mine)} finished runs of an earlier recording; --restart measures them again"
    return Resumed(mine, line + (f"; discarded: {', '.join(lost)}" if lost else "")), kept


def _another(then: Work, here: Work) -> str:
    """Why the recording as a whole is another experiment; empty if it is the same."""
    if then.version != _VERSION or then.release != here.release:
        return f"it was made by another release ({then.release})"
    if then.host != here.host:
        return f"it was made on another host ({then.host})"
    changed = changes(then.fingerprint, here.fingerprint)
    return ", ".join(f"{part.part.value} was {part.then}, is {part.now}" for part in changed)
