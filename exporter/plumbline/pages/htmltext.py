"""HTML and SVG that is escaped by construction: only :class:`Html` goes in as it is, and only :func:`tag` makes it."""

from __future__ import annotations

import functools
import html


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> str:
        """So that a template takes it as it is."""
        return self


def tag(name: str, *children: str, **attributes: str) -> Html:
    """``<name attributes>children</name>``; empty attributes are left out, ``class_`` is class, ``_`` is ``-``."""
    given = ""
    for key, value in attributes.items():
        if value:
            given += f' {_attribute(key)}="{html.escape(value)}"'
    return Html(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: str) -> Html:
    """One after the other, each escaped unless it is HTML."""
    return Html("".join([child if isinstance(child, Html) else html.escape(child) for child in children]))


@functools.cache
def _attribute(key: str) -> str:
    """A page has thousands of attributes of a dozen names."""
    return key.rstrip("_").replace("_", "-")
