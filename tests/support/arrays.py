"""Software RAIDs of which little is known."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from plumbline.sources.disk.md import MdArray


def array(device: str, level: str, state: str, **known: Any) -> MdArray:
    """``None`` is all that is not given."""
    nothing = MdArray(device, level, state, None, None, None, "", None, None, None, None, ())
    return replace(nothing, **known)
