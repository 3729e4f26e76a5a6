"""Escaping of untrusted names (devices, images, files), so that they can't steer a terminal or forge a log line."""

import logging


def visible(text: str) -> str:
    r"""Escape characters that are not printable (``\x1b``, ``\u202e``); the rest stays."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def excerpt(text: str, most: int = 300) -> str:
    """The beginning of a tool's output for a message: escaped, at most ``most`` characters."""
    return visible(text[:most])[:most]


class VisibleFormatter(logging.Formatter):
    """Formats a record as one line, apart from the lines of a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        return visible(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802  (logging's name)
        return "\n".join(visible(line) for line in super().formatException(ei).split("\n"))  # type: ignore[arg-type]
