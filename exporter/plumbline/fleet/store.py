"""The directory of a fleet on the control host. Each file is replaced as a whole and is on disk before the next step.

::

    fleet.json                    the recording: who is due, who is done, who is being measured now
    record.lock, accept.lock      held while a recording, or an acceptance, goes on
    acceptance.pending            an acceptance that is decided, and not in all of the files below yet
    recorded/HOST.yaml            recorded, not accepted yet
    accepted/HOST.yaml, .sig      accepted, and its signature
    classes/CLASS.yaml, .sig      the accepted figures of a class
    acceptances/TIME.json, .sig   each act of acceptance: who, when, which files, on what
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.signature import holds_signature
from plumbline.baseline.site import MAX_BYTES, LoadedSite
from plumbline.core import jsontext
from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.proofs import Content, Kept, Proof
from plumbline.core.storage_names import SIGNATURE
from plumbline.errors import BaselineError, FileRefused, ProbeRefused, StateError
from plumbline.fleet.answers import NodeFault, checked_site, from_node, short
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.storage import holds_baseline

RECORDED, ACCEPTED, CLASSES, ACCEPTANCES = "recorded", "accepted", "classes", "acceptances"
STATE, PENDING = "fleet.json", "acceptance.pending"
YAML = ".yaml"
_MAX_STATE = 64 << 20
_MAX_ACCEPTANCE = 512 << 20  # files of some hundred nodes, even if each is as long as a baseline may be
_KINDS = {RECORDED: "measured", ACCEPTED: "measured", CLASSES: "class"}


class NodeRecording(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    turns: dict[str, NodeRecording] = {}

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


class SignedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline of :data:`ACCEPTED` or :data:`CLASSES`, and its signature. ``name``: without a suffix."""

    folder: str
    name: str
    text: str
    signature: str


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A decided acceptance with all of its files. ``name``: of its own file; ``text``: that file's."""

    name: str
    text: str
    signature: str
    files: tuple[SignedFile, ...]


class Loaded(dict[str, tuple[str, LoadedSite]]):
    """Baselines by name without suffix: text and content. ``faults``: why others can't be used."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, NodeFault] = {}


class Store:
    """Raises :class:`StateError` where a file can't be read or written. What a reader sees of an acceptance is all of
    it or nothing: one that was interrupted once it was decided is completed first (:meth:`settle`)."""

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
        self._write("", STATE, jsontext.encode(session), proof_of("", STATE))

    def text(self, folder: str, name: str) -> str | None:
        """The text of a baseline, or of a signature (``NAME.yaml.sig``); ``None`` if there is none."""
        data = self._read(folder, name, MAX_BYTES)
        return None if data is None else data.decode("utf-8", "replace")

    def check(self, folder: str, *names: str) -> None:
        """Raise :class:`StateError` if one of these files is not a fleet's own, before anything is written."""
        with self._at(folder) as directory:
            for name in names:
                directory.check(name, proof_of(folder, name))

    def write(self, folder: str, name: str, text: str, *, keep: bool = False) -> None:
        """Only a file of the kind that belongs there is replaced. ``keep``: it stays as ``.bak``."""
        proof = proof_of(folder, name)
        self._write(folder, name, text.encode(), Kept(f"{name}.bak", of=proof) if keep else proof)

    def remove(self, folder: str, name: str) -> None:
        with self._at(folder) as directory:
            directory.remove(name, proof_of(folder, name))

    def loaded(self, folder: str) -> Loaded:
        """Every baseline there; one that can't be used is the fault of its node."""
        self.settle()
        loaded = Loaded()
        for name in self.names(folder, YAML):
            read = from_node(partial(self._checked, folder, name))
            if isinstance(read, NodeFault):
                loaded.faults[name] = read
            else:
                loaded[name] = read
        return loaded

    def _checked(self, folder: str, name: str) -> tuple[str, LoadedSite]:
        where = str(self.path / folder / (name + YAML))
        try:
            text = self.text(folder, name + YAML) or ""
        except StateError as error:
            raise BaselineError(where, short(str(error))) from error
        return text, checked_site(text, where=where, host=None)

    def names(self, folder: str, suffix: str) -> list[str]:
        if not (self.path / folder).is_dir():
            return []
        with self._at(folder) as directory:
            return [name.removesuffix(suffix) for name in directory.names() if name.endswith(suffix)]

    def last_acceptance(self) -> Acceptance | None:
        self.settle()
        names = self.names(ACCEPTANCES, ".json")
        if not names:
            return None
        data = self._read(ACCEPTANCES, f"{names[-1]}.json", _MAX_ACCEPTANCE)
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

    def commit(self, pending: Pending) -> None:
        """Make an acceptance count: with the first file all of it does. Raises before, where a file of others has a
        name of one of its files. Only while :meth:`alone` is held."""
        data = jsontext.encode(pending)
        if len(data) > _MAX_ACCEPTANCE:
            raise BaselineError(str(self.path), "too much for one acceptance; accept in parts, with --without NODE")
        for file in pending.files:  # what can't be replaced is said before anything counts
            with self._at(file.folder) as directory:
                for name in (file.name + YAML, file.name + YAML + SIGNATURE):
                    directory.holds(name)
        for file in pending.files:
            self.check(file.folder, file.name + YAML, file.name + YAML + SIGNATURE)
        self._write("", PENDING, data, proof_of("", PENDING))
        self._complete()

    def settle(self) -> None:
        """Complete an acceptance that was interrupted once it was decided. Raises :class:`StateError` while another
        process completes it."""
        if (self.path / PENDING).exists():
            with self.alone("accept"):
                self._complete()

    def _complete(self) -> None:
        """Each step may have been done before. The acceptance itself comes last: whoever reads it finds its files."""
        data = self._read("", PENDING, _MAX_ACCEPTANCE)
        if data is None:  # completed by another process meanwhile
            return
        try:
            pending = jsontext.decode(data, Pending)
        except msgspec.DecodeError as error:
            raise StateError(f"{self.path / PENDING}: no acceptance ({error}); move it away") from None
        for file in pending.files:
            self._put(file.folder, file.name + YAML, file.text, file.signature)
        self._put(ACCEPTANCES, pending.name, pending.text, pending.signature)
        for file in pending.files:
            if file.folder == ACCEPTED and self._there(RECORDED, file.name + YAML, file.text):
                self.remove(RECORDED, file.name + YAML)
        self.remove("", PENDING)

    def _put(self, folder: str, name: str, text: str, signature: str) -> None:
        if not self._there(folder, name + SIGNATURE, signature):
            self.write(folder, name + SIGNATURE, signature)
        if not self._there(folder, name, text):
            self.write(folder, name, text, keep=True)

    def _there(self, folder: str, name: str, text: str) -> bool:
        return self._read(folder, name, _MAX_ACCEPTANCE) == text.encode()

    @contextmanager
    def alone(self, action: str = "record") -> Iterator[None]:
        """For one recording, or one acceptance, at a time. Raises :class:`StateError` while another goes on."""
        with self._at(""):
            pass
        try:
            with HeavyLock(self.path / f"{action}.lock").hold(f"plumbline fleet {action}"):
                yield
        except ProbeRefused:
            raise StateError(f"{self.path}: another `plumbline fleet {action}` goes on; wait for its end") from None

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

    def _write(self, folder: str, name: str, data: bytes, proof: Proof) -> None:
        with self._at(folder) as directory:
            directory.replace(name, data, proof)


def proof_of(folder: str, name: str) -> Content:
    """What shows that a file of this name in this folder is a fleet's own."""
    if name.endswith(SIGNATURE):
        return Content(holds_signature)
    if folder in _KINDS:
        return holds_baseline(_KINDS[folder])
    return Content(partial(_decodes, _STRUCTS[folder or name]))


def _decodes(kind: type[msgspec.Struct], descriptor: int) -> bool:
    try:
        jsontext.decode(read_whole(descriptor, _MAX_ACCEPTANCE, STATE), kind)
    except msgspec.DecodeError:
        return False
    return True


# by folder, or by name in none
_STRUCTS: dict[str, type[msgspec.Struct]] = {STATE: Session, PENDING: Pending, ACCEPTANCES: Acceptance}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
