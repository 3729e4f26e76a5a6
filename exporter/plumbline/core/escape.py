"""Text that can steer no terminal and forge no line of a log: names of devices, images and files come from anybody."""

from __future__ import annotations

import logging


def visible(text: str) -> str:
    r"""Characters that are not to be seen as ``\x1b`` or ``\u202e``; the rest as it is."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def excerpt(text: str, most: int = 300) -> str:
    """The beginning of what a tool said, for a message: visible, ``most`` characters when written out."""
    return visible(text[:most])[:most]


class VisibleFormatter(logging.Formatter):
    """A record is one line; but for the lines of a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        """See :meth:`logging.Formatter.formatMessage`."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802  (logging's name)
        """See :meth:`logging.Formatter.formatException`."""
        return "\n".join(visible(line) for line in super().formatException(ei).split("\n"))  # type: ignore[arg-type]
