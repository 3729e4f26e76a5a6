"""The node's side of a fleet: ``plumbline baseline state`` says what it is, ``install`` takes an accepted baseline."""

import argparse
import os
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path

from plumbline import __version__
from plumbline.background.fingerprint import read_fingerprint
from plumbline.baseline.signature import holds_signature, is_signature, signer
from plumbline.baseline.site import MAX_BYTES, parse_site
from plumbline.commands import shared
from plumbline.config.model import Config
from plumbline.config.options import read_config, storage_path
from plumbline.config.yaml import read_text
from plumbline.core.files import OwnDirectory
from plumbline.core.foreign import decode_json
from plumbline.core.proofs import Content, Kept, exactly
from plumbline.core.roots import Roots
from plumbline.core.storage_names import CANDIDATE, CLASS_FILE, NEXT_SIGNATURE, RECORD_LOCK, RECORDED, SIGNATURE
from plumbline.core.units import count_text
from plumbline.errors import BaselineError, ConfigError, FileRefused, ParseError, ProbeRefused, StateError
from plumbline.fleet.node import FileState, NodeState, Parcel
from plumbline.fleet.store import sha256
from plumbline.fleet.together import Change, change_together
from plumbline.probes.ceph.cluster import CephGuard
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.run_now import check_storage
from plumbline.probes.run.state import open_storage
from plumbline.probes.run.storage import holds_baseline
from plumbline.sources.kernel import sysfs

_NAMES = {"measured": RECORDED, "class": CLASS_FILE}


def run_state(options: argparse.Namespace) -> int:
    config = read_config(options.config_file)
    storage, host = storage_path(options.storage_path, config, os.environ), socket.gethostname()
    roots = shared.roots(options)
    cluster, closed, unreachable = _cluster(config, host)
    shared.print_json(
        NodeState(
            host=host,
            version=__version__,
            model=_model(roots),
            fingerprint=read_fingerprint(roots, environment=os.environ, ceph=config.ceph),
            recording=_recording(storage),
            cluster=cluster,
            closed=closed,
            unreachable=unreachable,
            measured=_file(storage / RECORDED),
            fleet_class=_file(storage / CLASS_FILE),
            candidate=_file(storage / CANDIDATE, text=options.text),
        )
    )
    return 0


def _model(roots: Roots) -> str:
    """The machine's, as its firmware has it: ``PowerEdge R740xd``."""
    return (sysfs.read_text(roots.sys / "class/dmi/id/product_name") or "").strip()


def _cluster(config: Config, host: str) -> tuple[bool, dict[str, str], str]:
    """Whether this node belongs to a cluster; the gates that it closes; why it can't be asked."""
    with closing(CephGuard(config.ceph, config.gates, host=host)) as guard:
        try:
            view = guard.look()
        except ProbeRefused:  # no cluster, or no key for it: nothing here needs it
            return False, {}, ""
    return True, dict(view.closed), "" if view.reachable else view.message


def _recording(storage: Path) -> bool:
    if not (storage / RECORD_LOCK).exists():
        return False
    try:
        with HeavyLock(storage / RECORD_LOCK).hold("plumbline baseline state"):
            return False
    except ProbeRefused:
        return True
    except StateError:
        return False


def _file(path: Path, *, text: bool = False) -> FileState | None:
    """``None``: none there, or it can't be read."""
    if not os.access(path, os.R_OK):
        return None
    try:
        content = read_text(path, max_bytes=MAX_BYTES)
        file = parse_site(content, where=str(path), host=None).file
    except (ConfigError, BaselineError):
        return None
    recorded = file.recorded.isoformat() if file.recorded else ""
    return FileState(sha256=sha256(content), recorded=recorded, text=content if text else "")


def run_install(options: argparse.Namespace) -> int:
    config = read_config(options.config_file)
    storage = storage_path(options.storage_path, config, os.environ)
    shared.say(install(sys.stdin.buffer.read(2 * MAX_BYTES), config, storage, host=socket.gethostname()))
    return 0


def install(data: bytes, config: Config, storage: Path, *, host: str) -> str:
    """Check a :class:`Parcel` and put it in place; returns a line that says so. Raises :class:`BaselineError`, and
    :class:`StateError` where the disk refuses or a file is not ours; then the old one stays."""
    try:
        parcel = decode_json(data, Parcel, source="standard input", what="no baseline of a fleet")
    except ParseError as error:
        raise BaselineError(error.source, error.reason) from None
    name = _NAMES.get(parcel.kind)
    if name is None:
        raise BaselineError("standard input", "no such kind of baseline", key="kind", value=parcel.kind)
    if len(parcel.text.encode()) > MAX_BYTES:
        reason = f"is longer than {MAX_BYTES >> 20} MiB, and the daemon would not read it"
        raise BaselineError("standard input", reason, key="text")
    by = ""
    if config.baseline.allowed_signers is not None:
        allowed = Path(config.baseline.allowed_signers)
        by = signer(parcel.text.encode(), parcel.signature.encode(), allowed, environment=os.environ)
    loaded = parse_site(parcel.text, where=name, host=host)
    if loaded.file.source != parcel.kind:
        raise BaselineError(name, f"is not a {parcel.kind} baseline", key="source", value=loaded.file.source)
    if not is_signature(parcel.signature.encode()):
        raise BaselineError("standard input", "is no SSH signature of a baseline", key="signature")
    check_storage(storage)
    with open_storage(storage) as directory:
        try:
            _put(directory, name, parcel)
        except FileRefused as error:
            raise StateError(f"{error}; nothing is put in place") from error
        except OSError as error:
            raise StateError(f"{storage / name}: can't be written: {error.strerror}") from error
    accepted = f", signed by {by}" if by else ""
    size = count_text(len(loaded.entries), "entry", "entries")
    return f"in place: {storage / name}, {size}{accepted}"


def _put(directory: OwnDirectory, name: str, parcel: Parcel) -> None:
    """The next signature first: at each moment one of the two fits the file. A class's file goes when the node's own
    is in place."""
    text, signature = parcel.text.encode(), parcel.signature.encode()
    ours, signed = holds_baseline(parcel.kind), Content(holds_signature)
    changes = [
        Change(name + NEXT_SIGNATURE, signature, signed),
        Change(name, text, Kept(f"{name}.bak", of=ours)),
        Change(name + SIGNATURE, signature, signed),
        Change(name + NEXT_SIGNATURE, None, signed),
    ]
    if parcel.kind == "measured":
        changes += [Change(CLASS_FILE, None, holds_baseline("class")), Change(CLASS_FILE + SIGNATURE, None, signed)]
    change_together(directory, changes)
    with suppress(FileNotFoundError, FileRefused):  # another recording is not accepted yet, and stays
        directory.remove(CANDIDATE, exactly(text))
