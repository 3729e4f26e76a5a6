"""HTML and SVG, escaped by construction: only :class:`Html` is inserted unescaped, and only :func:`tag` creates it."""

import functools
import html


class Html(str):
    __slots__ = ()

    def __html__(self) -> str:
        return self


def tag(name: str, *children: str, **attributes: str) -> Html:
    """``<name attributes>children</name>``; omits empty attributes; ``class_`` means class, ``_`` becomes ``-``."""
    given = ""
    for key, value in attributes.items():
        if value:
            given += f' {_attribute(key)}="{html.escape(value)}"'
    return Html(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: str) -> Html:
    """The concatenated children, each escaped unless it is HTML."""
    return Html("".join([child if isinstance(child, Html) else html.escape(child) for child in children]))


@functools.cache
def _attribute(key: str) -> str:
    """Cached: a page has thousands of attributes but a dozen names."""
    return key.rstrip("_").replace("_", "-")
