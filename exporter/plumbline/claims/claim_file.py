"""The results of claims in the storage path, one file for each: written by ``plumbline probe claim``, read by the
daemon of the node on which that runs.

The writer keeps the whole record (counters, distribution, the last runs), so that the daemon only has to show it. The
daemon takes such a file for what it is, another process's word: it reads only files of its own user, bounded in size
and number, and gives no label a value that this module does not know.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from plumbline.config.workloads import VolumeClaim, load_catalogue
from plumbline.core import jsontext
from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.foreign import one_line
from plumbline.core.proofs import Content
from plumbline.core.storage_names import CLAIM_FILE, claim_file
from plumbline.errors import FileRefused, ParseError, StateError
from plumbline.probes.run.model import Identity
from plumbline.probes.run.result import OperationResult, ProbeResult
from plumbline.probes.run.schedule import ProbeStatus
from plumbline.probes.run.state import ProbeRecord
from plumbline.probes.run.storage import marked

VERSION = 1
KUBERNETES_VERSION = re.compile(r"v?[0-9]{1,4}(\.[0-9]{1,5}){1,3}([+-][A-Za-z0-9.+-]{1,20})?")
MAX_BYTES = 256 << 10  # A record has some ten KiB
MOST = 50  # Claims of one node
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")  # Of an object of Kubernetes, with room for what is appended
STORAGE_CLASS = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
KIND, LAYER, WORKLOAD = "claim", "client", "claim-1g-write-4k"
_LONGEST_S = 7 * 86400.0
_STATISTICS = {"mean", "p50"}  # Of one claim they are the same

_NOTHING = ProbeRecord()

log = logging.getLogger(__name__)


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    storage_class: str
    interval_s: float
    timeout_s: float
    record: ProbeRecord


class ClaimState(msgspec.Struct, frozen=True):
    """One claim: what is measured, how often, and what is known of it."""

    name: str
    storage_class: str
    interval_s: float
    timeout_s: float
    record: ProbeRecord = _NOTHING

    @property
    def identity(self) -> Identity:
        return identity_of(self.name, self.storage_class)

    def status(self, vantage: str) -> ProbeStatus:
        return ProbeStatus(
            self.identity, self.record, interval_s=self.interval_s, timeout_s=self.timeout_s, vantage=vantage
        )


def identity_of(name: str, storage_class: str) -> Identity:
    workload = load_catalogue().by_id[WORKLOAD]
    return Identity(
        probe=f"claim/{name}",
        kind=KIND,
        layer=workload.layer,
        device_class=storage_class,
        workload=workload.id,
        operations=workload.operations,
        config_hash=workload.config_hash(),
        tool="kubernetes",
        target=storage_class,
    )


def parse_claim(data: bytes, *, name: str, source: str) -> ClaimState:
    """Raises :class:`ParseError` for whatever the program that writes these files would not write."""
    try:
        file = jsontext.decode(data, _File)
    except (msgspec.DecodeError, ValueError) as error:
        raise ParseError(source, f"not the result of a claim: {one_line(error)}") from error
    if file.version != VERSION:
        raise ParseError(source, f"version {file.version}; this release reads {VERSION}")
    if not STORAGE_CLASS.fullmatch(file.storage_class):
        raise ParseError(source, "storage_class: not a name of Kubernetes")
    if not all(0 < item <= 60 * _LONGEST_S for item in (file.interval_s, file.timeout_s)):
        raise ParseError(source, "interval_s, timeout_s: expected seconds")
    record = file.record
    results = [item for item in (record.result, record.success, *record.failures) if item is not None]
    wrong = (
        *_wrong(name, file.storage_class, results),
        *(item for run in record.recent for item in _wrong_operations(run)),
    )
    if wrong:
        raise ParseError(source, wrong[0])
    if record.skipped or not record.totals.keys() <= {*VolumeClaim.operations}:
        raise ParseError(source, "record: counts what a claim does not count")
    return ClaimState(name, file.storage_class, file.interval_s, file.timeout_s, record)


def _wrong(name: str, storage_class: str, results: Iterable[ProbeResult]) -> Iterator[str]:
    for result in results:
        if (result.probe, result.layer, result.workload) != (f"claim/{name}", LAYER, WORKLOAD):
            yield "record: the result of another probe"
        if result.device_class != storage_class:
            yield "record: the result of another storage class"
        if not (0 <= result.started < math.inf and 0 <= result.duration <= _LONGEST_S):
            yield "record: a time that can't be"
        if len(result.message) > 1000:
            yield "record: a text that is too long"
        if result.tool_version and not KUBERNETES_VERSION.fullmatch(result.tool_version):
            yield "record: tool_version is not a version of Kubernetes"
        yield from _wrong_operations(result.operations)


def _wrong_operations(operations: Iterable[OperationResult]) -> Iterator[str]:
    for operation in operations:
        only_times = OperationResult(operation=operation.operation, latency=operation.latency)
        if (
            operation.operation not in VolumeClaim.operations
            or operation != only_times
            or not operation.latency.keys() <= _STATISTICS
        ):
            yield "record: a figure that a claim does not have"
        if not all(0 <= value <= _LONGEST_S for value in operation.latency.values()):
            yield "record: a time that can't be"


def read_claims(
    storage: Path, *, known: Iterable[str] = (), quiet: bool = False, of_any_user: bool = False
) -> tuple[tuple[ClaimState, ...], tuple[str, ...]]:
    """Every claim with results here, and what is wrong with the other files, logged unless ``known`` before.
    ``of_any_user``: for a command that looks at the state of a daemon of another user."""
    states: list[ClaimState] = []
    wrong: list[str] = []
    try:
        owner = storage.stat().st_uid if of_any_user else None
        with OwnDirectory.at(storage, owner=owner, follow=True) as own:
            names = [name for name in own.names() if CLAIM_FILE.fullmatch(name)]
            for file in names[:MOST]:
                try:
                    states.append(_read(own, file))
                except FileNotFoundError:
                    continue  # removed just now
                except OSError as error:
                    wrong.append(f"{own.where(file)}: can't be read: {error.strerror}")
                except (FileRefused, ParseError) as error:
                    wrong.append(str(error))
            if len(names) > MOST:
                wrong.append(f"{storage}: more than {MOST} results of claims; only the first are shown")
    except FileNotFoundError:
        pass  # no daemon has run here yet
    except (OSError, FileRefused) as error:
        wrong.append(f"{storage}: {error}")
    for message in set() if quiet else set(wrong) - set(known):
        log.warning("claims: %s", message)
    return tuple(states), tuple(wrong)


def _read(own: OwnDirectory, file: str) -> ClaimState:
    return _parse(own.read(file, MAX_BYTES), file, own.where(file))


def _parse(data: bytes, file: str, where: str) -> ClaimState:
    match = CLAIM_FILE.fullmatch(file)
    name = match[1] if match else ""
    if not NAME.fullmatch(name):
        raise ParseError(where, "not the name of a claim")
    return parse_claim(data, name=name, source=where)


def _is_claim(file: str, descriptor: int) -> bool:
    try:
        _parse(read_whole(descriptor, MAX_BYTES, file), file, file)
    except ParseError:
        return False
    return True


def add_result(storage: Path, state: ClaimState, result: ProbeResult) -> ClaimState:
    """Add a result to the file of ``state``, whose record is not used. A file that can't be read is set aside. Raises
    :class:`StateError` if the storage path is not a daemon's, and for what the system refuses."""
    file = claim_file(state.name)
    with _opened(storage, file) as own:
        new = _File(
            version=VERSION,
            storage_class=state.storage_class,
            interval_s=state.interval_s,
            timeout_s=state.timeout_s,
            record=_record_before(own, file, state).with_result(result),
        )
        own.replace(file, jsontext.encode(new), Content(partial(_is_claim, file)), mode=0o640)
    return ClaimState(state.name, state.storage_class, state.interval_s, state.timeout_s, new.record)


def check_writable(storage: Path, name: str) -> None:
    """Raise what :func:`add_result` would raise for the result of this claim, before minutes are spent on it."""
    with _opened(storage, claim_file(name)) as own:
        own.holds(claim_file(name))
        if not os.access(".", os.W_OK, dir_fd=own.fd, effective_ids=True):
            raise PermissionError(errno.EACCES, f"user {os.geteuid()} may not write there, or it is mounted read-only")


@contextmanager
def _opened(storage: Path, file: str) -> Iterator[OwnDirectory]:
    try:
        with OwnDirectory.at(storage, follow=True) as own:
            if not marked(own):
                raise StateError(f"{storage}: no daemon has marked it; start the daemon on this node first")
            yield own
    except FileRefused as error:
        raise StateError(f"{error} (with claims: deploy/kubernetes, Claims of volumes)") from error
    except OSError as error:
        raise StateError(f"{storage}/{file}: can't be written: {error.strerror}") from error


def _record_before(own: OwnDirectory, file: str, state: ClaimState) -> ProbeRecord:
    try:
        before = _read(own, file)
    except FileNotFoundError:
        return _NOTHING
    except ParseError as error:
        log.error("%s; kept as %s, starting afresh", error, own.set_aside(file))
        return _NOTHING
    return before.record if before.storage_class == state.storage_class else _NOTHING
