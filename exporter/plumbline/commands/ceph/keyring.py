"""The files of Ceph's keys that ``plumbline ceph setup`` writes and ``ceph remove`` removes."""

import re
from pathlib import Path

from plumbline.core.answers import read_named
from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.proofs import Content
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.ceph.ceph_conf import MAX_BYTES

KEY = r"[A-Za-z0-9+/]{24,200}={0,2}"
_MAX_KEYRING = 1 << 20
# One user; a line with anything but its key and capabilities is somebody else's work.
_KEYRING = re.compile(rb"\s*\[([^\]\n]+)\][ \t]*\n(?:[ \t]*(?:key|auid|caps \w+)[ \t]*=[^\n]*(?:\n|$)|[ \t]*\n)*")


def read_keyring(path: str) -> bytes | None:
    """``None`` without a file."""
    try:
        return read_named(path, MAX_BYTES)  # only compared, so it may belong to the daemon's user
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from None


def user_in(keyring: bytes) -> str:
    """The only user in it; ``""`` when there are several, or anything besides."""
    match = _KEYRING.fullmatch(keyring)
    return match[1].decode("utf-8", "replace") if match else ""


def check_key(keyring: bytes, user: str) -> None:
    """:class:`ParseError` unless it is a keyring with one key, of this user."""
    keys = re.findall(rb"^\s*key\s*=\s*(.*?)\s*$", keyring, re.MULTILINE)
    if user_in(keyring) != user or len(keys) != 1 or not re.fullmatch(KEY.encode(), keys[0]):
        raise ParseError(f"ceph auth get-or-create {user}", "the answer is not this user's key; nothing was written")


def check_place(path: str, user: str) -> None:
    """Raise, before anything is done, where another file has the name of the keyring."""
    try:
        with _directory_of(path) as directory:
            directory.check(Path(path).name, _holds_only(user, path))
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}; name another file as ceph.keyring") from error


def write_key(path: str, key: bytes, user: str) -> None:
    """Written atomically, readable only by its owner; replaces nothing but an older key of the same user."""
    try:
        with _directory_of(path) as directory:
            directory.replace(Path(path).name, key, _holds_only(user, path))
    except OSError as error:
        raise Unavailable(f"{path}: can't be written: {error.strerror}; name another file as ceph.keyring") from error


def remove_key(path: str, user: str) -> None:
    """Remove a keyring that holds only this user's key. No error when it is gone already."""
    try:
        with _directory_of(path) as directory:
            directory.remove(Path(path).name, _holds_only(user, path))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Unavailable(f"{path}: can't be removed: {error.strerror}") from error


def _holds_only(user: str, path: str) -> Content:
    """The proof of a keyring with this user's key and nothing else."""
    return Content(lambda fd: user_in(read_whole(fd, _MAX_KEYRING, path)) == user != "")


def _directory_of(path: str) -> OwnDirectory:
    """The keyring's owner may be anyone who reads it: only the key in it counts."""
    try:
        owner: int | None = Path(path).lstat().st_uid
    except FileNotFoundError:
        owner = None
    return OwnDirectory.named(Path(path).parent, owner=owner)
