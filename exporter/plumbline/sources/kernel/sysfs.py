"""Read files of /sys and /proc, mostly of one value each; absent and unreadable ones are ``None``."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from plumbline.core.kernel import ATTRIBUTE, read_kernel
from plumbline.errors import ParseError, Unavailable

T = TypeVar("T")


def clean(data: bytes) -> str | None:
    """Device text as a label: no padding, NULs or control characters; bytes that are not UTF-8 become U+FFFD."""
    text = data.decode("utf-8", "replace").strip()
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split()) or None


def require(path: str | Path, limit: int = ATTRIBUTE) -> bytes:
    """The whole file; :class:`Unavailable` when it can't be read."""
    try:
        return read_kernel(path, limit)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from error


def read_bytes(path: str | Path, limit: int = ATTRIBUTE) -> bytes | None:
    """``None`` when the attribute is absent, forbidden, longer than ``limit`` or fails with an error (EIO)."""
    try:
        return read_kernel(path, limit)
    except OSError:
        return None


def read_text(path: Path) -> str | None:
    """A cleaned one-line text; ``None`` also when it is empty."""
    data = read_bytes(path)
    return None if data is None else clean(data)


def read_number(path: Path) -> int | None:
    """An unsigned decimal; :class:`ParseError` for any other text."""
    return read_parsed(path, parse_number)


def read_parsed(path: Path, parse: Callable[..., T | None]) -> T | None:
    """Parse a one-line text with ``parse(text, source=…)``; ``None`` when there is no text."""
    text = read_text(path)
    return None if text is None else parse(text, source=str(path))


def matched(pattern: str | re.Pattern[str], text: str, what: str, source: str) -> re.Match[str]:
    """The match of the whole text; :class:`ParseError` says that it is not ``what``."""
    match = re.fullmatch(pattern, text)
    if match is None:
        raise ParseError(source, f"not {what}: {text[:40]!r}")
    return match


def parse_number(text: str, *, source: str) -> int:
    """Parse an unsigned decimal of at most 20 digits (64 bits); :class:`ParseError` otherwise."""
    return int(matched(r"[0-9]{1,20}", text, "a number", source)[0])


def link_text(path: Path) -> str | None:
    """The unresolved target of a symbolic link; ``None`` if it is gone, not a link or an invalid path (a NUL in it)."""
    try:
        return str(path.readlink())
    except (OSError, ValueError):
        return None


def entries(directory: Path) -> tuple[str, ...]:
    """Sorted names in a directory; empty when there is no directory."""
    try:
        return tuple(sorted(path.name for path in directory.iterdir()))
    except OSError:
        return ()
