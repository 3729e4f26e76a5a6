"""The directory of a fleet on the control host. Each file is replaced as a whole and is on disk before the next step.

::

    fleet.json                    the recording: who is due, who is done, who is being measured now
    record.lock                   held while a recording goes on
    recorded/HOST.yaml            recorded, not accepted yet
    accepted/HOST.yaml, .sig      accepted, and its signature
    classes/CLASS.yaml, .sig      the accepted figures of a class
    acceptances/TIME.json, .sig   each act of acceptance: who, when, which files, on what
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.site import MAX_BYTES, LoadedSite, parse_site
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.core import jsontext
from plumbline.core.files import OwnDirectory
from plumbline.core.storage_names import SIGNATURE
from plumbline.errors import BaselineError, FileRefused, ProbeRefused, StateError
from plumbline.probes.run.gates import HeavyLock

RECORDED, ACCEPTED, CLASSES, ACCEPTANCES = "recorded", "accepted", "classes", "acceptances"
STATE, LOCK = "fleet.json", "record.lock"
YAML = ".yaml"
_MAX_STATE = 64 << 20


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node's part in a recording. ``status``: ``due``, ``running`` (or interrupted), ``recorded``, ``failed``.
    ``anew``: the node refused what it had measured; ``seconds``: how long it took; ``finished``: Unix seconds."""

    fleet_class: str
    domain: str = ""
    status: str = "due"
    error: str = ""
    anew: bool = False
    seconds: float = 0.0
    finished: float = 0.0


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A recording of the fleet, from its first wave to its last. ``options``: what each node records with."""

    version: int = 1
    started: float
    options: tuple[str, ...] = ()
    turns: dict[str, Turn] = {}

    def named(self, *statuses: str) -> tuple[str, ...]:
        return tuple(name for name, turn in self.turns.items() if turn.status in statuses)

    @property
    def over(self) -> bool:
        return not self.named("due", "running", "failed")


class AcceptedFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of an acceptance. ``beside``: figure by figure the node's own and its class's, as text for people."""

    sha256: str
    fleet_class: str
    host: str = ""
    recorded: str = ""
    fingerprint: Fingerprint = Fingerprint()
    beside: tuple[str, ...] = ()


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """Who accepted which files, when, and by which key. ``nodes``: all that are accepted then, by inventory name;
    ``classes``: by class; ``now``: the nodes that this act added; ``outliers``: accepted although they were out of
    line, in words."""

    accepted_by: str
    accepted: str
    key: str
    now: tuple[str, ...]
    nodes: dict[str, AcceptedFile]
    classes: dict[str, AcceptedFile]
    outliers: tuple[str, ...] = ()


class Store:
    """Raises :class:`StateError` where a file can't be read or written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def session(self) -> Session | None:
        data = self._read("", STATE, _MAX_STATE)
        if data is None:
            return None
        try:
            return jsontext.decode(data, Session)
        except msgspec.DecodeError as error:
            raise StateError(f"{self.path / STATE}: no state of a fleet ({error}); move it away") from None

    def keep_session(self, session: Session) -> None:
        self._write("", STATE, jsontext.encode(session))

    def text(self, folder: str, name: str) -> str | None:
        """The text of a baseline, or of a signature (``NAME.yaml.sig``); ``None`` if there is none."""
        data = self._read(folder, name, MAX_BYTES)
        return None if data is None else data.decode("utf-8", "replace")

    def write(self, folder: str, name: str, text: str, *, keep: bool = False) -> None:
        """``keep``: the old file stays as ``.bak``."""
        self._write(folder, name, text.encode(), keep=f"{name}.bak" if keep else "")

    def remove(self, folder: str, name: str) -> None:
        with self._at(folder) as directory:
            directory.remove(name)

    def loaded(self, folder: str, catalogue: WorkloadCatalogue) -> dict[str, tuple[str, LoadedSite]]:
        """Name without suffix → text and content of each baseline there. Raises :class:`BaselineError`, too."""
        found = {}
        for name in self.names(folder, YAML):
            text = self.text(folder, name + YAML) or ""
            where = str(self.path / folder / (name + YAML))
            found[name] = (text, parse_site(text, where=where, host=None, catalogue=catalogue))
        return found

    def names(self, folder: str, suffix: str) -> list[str]:
        if not (self.path / folder).is_dir():
            return []
        with self._at(folder) as directory:
            return [name.removesuffix(suffix) for name in directory.names() if name.endswith(suffix)]

    def last_acceptance(self) -> Acceptance | None:
        names = self.names(ACCEPTANCES, ".json")
        if not names:
            return None
        data = self._read(ACCEPTANCES, f"{names[-1]}.json", _MAX_STATE)
        try:
            return jsontext.decode(data or b"", Acceptance)
        except msgspec.DecodeError as error:
            raise StateError(f"{self.path / ACCEPTANCES / names[-1]}.json: no acceptance ({error})") from None

    def accepted(self, folder: str, files: Mapping[str, AcceptedFile], name: str) -> tuple[str, str] | None:
        """Text and signature of an accepted file, ``None`` if there is none. Raises :class:`BaselineError` if it is
        not the one that was accepted."""
        if name not in files:
            return None
        text, signature = self.text(folder, name + YAML), self.text(folder, name + YAML + SIGNATURE)
        where = str(self.path / folder / (name + YAML))
        if text is None or signature is None:
            raise BaselineError(where, "or its signature is missing; record and accept it again")
        if sha256(text) != files[name].sha256:
            raise BaselineError(where, "changed since it was accepted; nothing is put in place")
        return text, signature

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For one recording at a time. Raises :class:`StateError` while another goes on."""
        with self._at(""):
            pass
        try:
            with HeavyLock(self.path / LOCK).hold("plumbline fleet record"):
                yield
        except ProbeRefused:
            raise StateError(f"{self.path}: another `plumbline fleet record` goes on; wait for its end") from None

    @contextmanager
    def _at(self, folder: str) -> Iterator[OwnDirectory]:
        where = self.path / folder
        try:
            OwnDirectory.make(self.path).close()
            with OwnDirectory.make(where) as directory:
                yield directory
        except FileRefused as error:
            raise StateError(str(error)) from error
        except OSError as error:
            raise StateError(f"{where}: {error.strerror}") from error

    def _read(self, folder: str, name: str, limit: int) -> bytes | None:
        if not (self.path / folder / name).exists():
            return None
        with self._at(folder) as directory:
            return directory.read(name, limit)

    def _write(self, folder: str, name: str, data: bytes, *, keep: str = "") -> None:
        with self._at(folder) as directory:
            directory.replace(name, data, keep=keep)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
