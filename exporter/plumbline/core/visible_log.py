"""Log records on one line, whatever the names in them."""

import logging

from plumbline.core.escape import visible


class VisibleFormatter(logging.Formatter):
    """Formats a record as one line, apart from the lines of a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        return visible(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802  (logging's name)
        return "\n".join(visible(line) for line in super().formatException(ei).split("\n"))  # type: ignore[arg-type]
