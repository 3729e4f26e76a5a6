"""Reading single sysfs attributes: one value a file, absent and unreadable ones are ``None``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from plumbline.core.kernel import ATTRIBUTE, read_kernel
from plumbline.errors import ParseError

T = TypeVar("T")


def clean(data: bytes) -> str | None:
    """Device text as a label: padding, NULs and control characters gone, bytes that are no UTF-8 shown as U+FFFD."""
    text = data.decode("utf-8", "replace").strip()
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split()) or None


def read_bytes(path: Path, limit: int = ATTRIBUTE) -> bytes | None:
    """``None`` where the attribute is absent, forbidden, longer than ``limit`` or answers with an error (EIO)."""
    try:
        return read_kernel(path, limit)
    except OSError:
        return None


def read_text(path: Path) -> str | None:
    """A cleaned one-line text; ``None`` also where it is empty."""
    data = read_bytes(path)
    return None if data is None else clean(data)


def read_number(path: Path) -> int | None:
    """An unsigned decimal; :class:`ParseError` where something else stands there."""
    return read_parsed(path, parse_number)


def read_parsed(path: Path, parse: Callable[..., T | None]) -> T | None:
    """What ``parse(text, source=…)`` makes of a one-line text; ``None`` where there is none."""
    text = read_text(path)
    return None if text is None else parse(text, source=str(path))


def parse_number(text: str, *, source: str) -> int:
    """An unsigned decimal of at most 64 bits' length; :class:`ParseError` otherwise."""
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ParseError(source, f"not a number: {text[:40]!r}")
    return int(text)


def link_text(path: Path) -> str | None:
    """What a symbolic link says, unresolved; ``None`` where it is gone, no link, or no path at all (a NUL in it)."""
    try:
        return str(path.readlink())
    except (OSError, ValueError):
        return None


def entries(directory: Path) -> tuple[str, ...]:
    """Sorted names in a directory; empty where there is none."""
    try:
        return tuple(sorted(path.name for path in directory.iterdir()))
    except OSError:
        return ()
