"""The style sheet of all pages, ``style.css``: every page uses the part ``base`` and the parts it names."""

from __future__ import annotations

import functools
import re
from importlib import resources

_HEADING = re.compile(r"^/\* --- (\w+) --- \*/\n", re.MULTILINE)


@functools.cache
def style(*names: str) -> str:
    """``base`` and the named parts (``status``, ``report``, ``review``), unchanged. ``KeyError``: unknown part."""
    text = resources.files("plumbline.pages").joinpath("style.css").read_text("utf-8")
    _, *split = _HEADING.split(text)
    parts = dict(zip(split[::2], split[1::2], strict=True))
    return "".join(parts[name] for name in ("base", *names))
