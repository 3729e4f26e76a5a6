"""The two lines of a credentials file, and the file that holds them."""

import os

import msgspec

from plumbline.core.keyfiles import open_secret, read_anchor
from plumbline.errors import ParseError, ProbeRefused

MAX_BYTES = 4096
_MAX_CA_BYTES = 4 << 20  # the system's own bundle has 200 kB
_KEYS = ("access_key", "secret_key")


class Credentials(msgspec.Struct, frozen=True):
    """An S3 key pair; never shown, not even by ``repr``."""

    access_key: str
    secret_key: str

    def __repr__(self) -> str:
        return "Credentials(…)"


def parse_credentials(text: str, *, source: str) -> Credentials:
    """Parse ``access_key = …`` and ``secret_key = …``; empty lines and ``#`` comments are allowed. Raises
    :class:`ParseError`, which names the line and never its content."""
    values: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        key, equals, value = (part.strip() for part in written.partition("="))
        if not equals or key not in _KEYS:
            raise ParseError(source, "expected access_key = … or secret_key = …", line=number)
        if key in values:
            raise ParseError(source, f"{key} is given twice", line=number)
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise ParseError(source, f"{key} is empty or contains an invalid character", line=number)
        values[key] = value
    for key in _KEYS:
        if key not in values:
            raise ParseError(source, f"{key} is missing")
    return Credentials(values["access_key"], values["secret_key"])


def open_credentials(path: str, ca_file: str | None = None) -> int:
    """A descriptor for the worker. Raises :class:`ProbeRefused` (``credentials``) if others can access it, or change
    the certificates of ``ca_file`` (the library opens these itself)."""
    if ca_file is not None:
        try:
            read_anchor(ca_file, _MAX_CA_BYTES)
        except OSError as error:
            raise ProbeRefused("credentials", f"{ca_file}: can't be used: {error.strerror}; see ca_file") from error
    try:
        descriptor = open_secret(path)
    except OSError as error:
        raise ProbeRefused("credentials", f"{path}: can't be used: {error.strerror}; see credentials_file") from error
    if os.fstat(descriptor).st_size <= MAX_BYTES:
        return descriptor
    os.close(descriptor)
    raise ProbeRefused("credentials", f"{path}: is too large for two keys")
