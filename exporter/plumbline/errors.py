"""Every error Plumbline raises on purpose.

PlumblineError            one clear line: what, where, what to do
├── ConfigError           a config file or flag is wrong; the running configuration stays
├── ParseError            a kernel or tool interface said something malformed
├── BaselineError         a baseline file or profile is wrong
├── StateError            the state directory can't be used
├── FileRefused           a file or directory is not ours; nothing was touched
├── UnknownName           a name on the command line that nothing here has: wrong usage
├── ProbeRefused          a probe's safety guard said no; nothing was touched
└── Unavailable           no such hardware, driver, file, tool or permission: normal, not a fault
    └── KeyTypeUnknown    the installed librados can't read this type of key
"""

_LONGEST = 5000  # a path has up to 4096


class PlumblineError(Exception):
    """Base of all errors raised on purpose; ``str()`` is one line a person can act on, whatever somebody else's names
    and texts in it hold, and at most :data:`_LONGEST` characters."""

    def __str__(self) -> str:
        text = visible(super().__str__())
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def visible(text: str) -> str:
    r"""Escape characters that are not printable (``\x1b``, ``\u202e``, a line end); the rest stays."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class _Misread(PlumblineError):
    """``where`` is the file (or flag), ``key`` the dotted path in it, ``value`` the rejected value."""

    def __init__(self, where: str, reason: str, *, key: str = "", value: object = None) -> None:
        self.where, self.key, self.value, self.reason = where, key, value, reason
        at = f": {key}" if key else ""
        shown = "" if value is None else f" = {_short(value)}"
        super().__init__(f"{where}{at}{shown}: {reason}")


class ConfigError(_Misread):
    """A configuration value can't be used."""


class BaselineError(_Misread):
    """A baseline file or profile can't be used."""


class ParseError(PlumblineError):
    """``source`` (a path or command) holds text that breaks its own format at ``line`` (1-based; 0: whole)."""

    def __init__(self, source: str, reason: str, *, line: int = 0) -> None:
        self.source, self.line, self.reason = source, line, reason
        at = f":{line}" if line else ""
        super().__init__(f"{source}{at}: {reason}")


class StateError(PlumblineError):
    """The state directory can't be used; the message says why."""


class FileRefused(PlumblineError):
    """A file or directory is not ours, or not what it should be: ``reason`` is a short stable word."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class UnknownName(PlumblineError):
    """A name on the command line that nothing here has; the message lists those that there are. Each command ends with
    the exit code of wrong usage."""


class ProbeRefused(PlumblineError):
    """A probe's guard refused to run: ``reason`` is a short stable label value, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class Unavailable(PlumblineError):
    """The hardware, driver, file, tool or permission is not there. Normal; logged once at debug level."""


class KeyTypeUnknown(Unavailable):
    """A key of a type that the installed librados can't read."""


def _short(value: object, limit: int = 160) -> str:
    """The value's ``repr``; a long one loses its middle, because the end of a path identifies it."""
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        text = "a number too long to be written"
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[-limit // 2 + 1 :]}"
