"""Choosing format and encoding for a scraper by RFC 9110's ``Accept`` and ``Accept-Encoding``.

Prometheus 2.42 sends ``application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,
text/plain;version=0.0.4;q=0.5,*/*;q=0.1``; Prometheus 3 adds ``text/plain;version=1.0.0`` and an ``escaping`` scheme.
Our names need none; ``dots``, which also rewrites underscores, is answered with ``underscores``.
"""

import re
from functools import lru_cache

from msgspec import Struct

from plumbline.metrics.rendering import Format

TEXT = "text/plain; version=0.0.4; charset=utf-8"
_UTF8_ESCAPINGS = ("allow-utf-8", "underscores", "values")
_MAX_HEADER = 4096  # a longer header gets the default and is not parsed

_QUOTED_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')


class Representation(Struct, frozen=True):
    """The format to render and the content type to send."""

    form: Format
    content_type: str


@lru_cache(maxsize=64)
def choose_format(accept: str) -> Representation:
    """The best offer for an ``Accept`` header; text 0.0.4 if it is empty or accepts nothing we offer: a person with
    curl or a browser reads text, so there is no 406. Among equal qualities the first wins, as in Go's clients."""
    ranked = sorted(_elements(accept), key=lambda element: -element.quality)  # stable
    for element in ranked:
        answer = _offer(element) if element.quality > 0 else None
        if answer:
            return answer
    return Representation(Format.TEXT, TEXT)


@lru_cache(maxsize=64)
def accepts_gzip(accept_encoding: str) -> bool:
    """True if gzip, or ``*`` in its place, is accepted with a quality above 0."""
    qualities = {element.name: element.quality for element in _elements(accept_encoding)}
    named = qualities.get("gzip", qualities.get("x-gzip"))
    return (qualities.get("*", 0.0) if named is None else named) > 0


class _Element(Struct, frozen=True):
    name: str
    parameters: dict[str, str]
    quality: float


def _elements(header: str) -> list[_Element]:
    if len(header) > _MAX_HEADER:
        return []
    elements = []
    for part in _QUOTED_COMMA.split(header) if '"' in header else header.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        if not name:
            continue
        pairs = (piece.partition("=") for piece in rest)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        elements.append(_Element(name.lower(), parameters, _quality(parameters.pop("q", "1"))))
    return elements


def _quality(text: str) -> float:
    """RFC 9110's qvalue; an invalid one counts as 0, so that the client gets another format."""
    return float(text) if re.fullmatch(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?", text) else 0.0


def _offer(element: _Element) -> Representation | None:
    version = element.parameters.get("version")
    if element.name == "application/openmetrics-text":
        if version not in (None, "1.0.0"):
            return None
        return Representation(
            Format.OPENMETRICS, f"application/openmetrics-text; version=1.0.0; charset=utf-8{_escaping(element)}"
        )
    if element.name == "text/plain" and version == "1.0.0":
        return Representation(Format.TEXT, f"text/plain; version=1.0.0; charset=utf-8{_escaping(element)}")
    if element.name in ("*/*", "text/*") or (element.name == "text/plain" and version in (None, "0.0.4")):
        return Representation(Format.TEXT, TEXT)
    return None


def _escaping(element: _Element) -> str:
    """``; escaping=…`` for a client that sent ``escaping``, otherwise empty."""
    scheme = element.parameters.get("escaping")
    if scheme is None:
        return ""
    return f"; escaping={scheme if scheme in _UTF8_ESCAPINGS else 'underscores'}"
