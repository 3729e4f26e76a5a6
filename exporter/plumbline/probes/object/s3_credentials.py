"""The two lines of a credentials file, and whether its permissions are safe."""

import os
import stat
import struct

import msgspec

from plumbline.core.answers import ask_in_time
from plumbline.errors import ParseError, ProbeRefused

MAX_BYTES = 4096
_KEYS = ("access_key", "secret_key")
_ACL = "system.posix_acl_access"
# After a version, each entry's tag, permissions and id; linux/posix_acl_xattr.h.
_ACL_VERSION_BYTES, _ACL_ENTRY = 4, struct.Struct("<HHI")
_GROUP_OBJ, _GROUP = 0x04, 0x08


class Credentials(msgspec.Struct, frozen=True):
    """An S3 key pair; never shown, not even by ``repr``."""

    access_key: str
    secret_key: str

    def __repr__(self) -> str:
        return "Credentials(…)"


def parse_credentials(text: str, *, source: str) -> Credentials:
    """Parse ``access_key = …`` and ``secret_key = …``; empty lines and ``#`` comments are allowed. Raises
    :class:`ParseError`, which names the line and never its content."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        key, equals, value = (part.strip() for part in written.partition("="))
        if not equals or key not in _KEYS:
            raise ParseError(source, "expected access_key = … or secret_key = …", line=number)
        if key in found:
            raise ParseError(source, f"{key} is given twice", line=number)
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise ParseError(source, f"{key} is empty or contains an invalid character", line=number)
        found[key] = value
    for key in _KEYS:
        if key not in found:
            raise ParseError(source, f"{key} is missing")
    return Credentials(found["access_key"], found["secret_key"])


def open_credentials(path: str) -> int:
    """A descriptor for the worker. Raises :class:`ProbeRefused` (``credentials``) if others can access it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = ask_in_time(path, lambda: os.open(path, flags), late=os.close)
    except OSError as error:
        raise ProbeRefused("credentials", f"{path}: can't be opened: {error.strerror}; see credentials_file") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        wrong = "is not a regular file"
    elif found.st_uid not in (os.geteuid(), 0):
        wrong = f"belongs to user {found.st_uid}; chown it to the user who runs this"
    elif _others_have_access(descriptor, found.st_mode):
        wrong = f"is accessible to others (mode {stat.S_IMODE(found.st_mode):04o}); chmod 600 it"
    elif found.st_size > MAX_BYTES:
        wrong = "is too large for two keys"
    else:
        return descriptor
    os.close(descriptor)
    raise ProbeRefused("credentials", f"{path}: {wrong}")


def _others_have_access(descriptor: int, mode: int) -> bool:
    """With an ACL the group's bits of the mode are its mask, not what the group has: systemd 257's copies are root's,
    with an entry for the service's user (acl(5)). A user whom an entry names is meant."""
    if not mode & stat.S_IRWXG or mode & stat.S_IRWXO:
        return bool(mode & stat.S_IRWXO)
    try:
        acl = os.getxattr(descriptor, _ACL)[_ACL_VERSION_BYTES:]
    except OSError:  # it has none
        return True
    return any(allowed and tag in {_GROUP_OBJ, _GROUP} for tag, allowed, _ in _ACL_ENTRY.iter_unpack(acl))
