"""Lustre as this host sees it: its imports (connections to targets), its own health, LNet's counters.

``lustre/obdclass/lprocfs_status.c`` (``import``), ``obd_sysfs.c`` (``health_check``), ``include/lustre_import.h``
(the states), ``lnet/lnet/lnet_debugfs.c`` (``stats``), https://git.whamcloud.com/fs/lustre-release.git::

    /proc/fs/lustre/osc/scratch-OST0000-osc-ffff88105db50000/import
        import:
            name: scratch-OST0000-osc-ffff88105db50000
            target: scratch-OST0000_UUID
            state: FULL
            import_flags: [ replayable, pingable, connect_tried ]
            connection:
               connection_attempts: 1
            rpcs:
               timeouts: 0
    /sys/fs/lustre/health_check    healthy; NOT HEALTHY; LBUG
    lnet/stats                     0 28 0 101719323 101719291 0 0 21201322992 53029565353720 0 0

``import`` is in procfs up to Lustre 2.16 and in debugfs since, that of ``mgc`` in debugfs since 2.12; LNet's ``stats``
is in ``/proc/sys/lnet`` up to 2.10 and in debugfs since; ``health_check`` is in procfs in old releases. Only root, or
who has CAP_DAC_READ_SEARCH, sees debugfs. ``import`` waits for the lock of a connection that is changed,
``health_check`` for the disks of a server's targets, so a scrape reads neither.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel import sysfs

T = TypeVar("T")

_KINDS = ("lwp", "mdc", "mgc", "osc", "osp")  # a client's to the targets of data, metadata and management; a server's
_CONNECTED = ("FULL", "IDLE")  # a client disconnects an import that it has not used for a while (osc.*.idle_timeout)
_FIELD = re.compile(r"^ +(name|target|state|import_flags|connection_attempts|timeouts): (.*)$", re.MULTILINE)
_DEACTIVATED = re.compile(r"\b(?:deactive|IMPF_DEACTIVE)\b")  # the latter since 2.17
_NUMBER = re.compile(r"[0-9]{1,20}")
_STATS = re.compile(r"[0-9]{1,20}(?: [0-9]{1,20}){10}")
_HEALTH = re.compile("healthy|LBUG|(?:device .+ )?NOT HEALTHY")  # before 2.10 with the device
_SUFFIX = "_UUID"


class LustreImport(Struct, frozen=True):
    """One connection of this host to a target. ``None``: not in the file."""

    name: str
    target: str
    state: str  # the kernel's word: FULL, IDLE, DISCONN, CONNECTING, REPLAY, EVICTED …
    deactivated: bool  # by an administrator
    attempts: int | None  # to connect, since the import exists
    timeouts: int | None  # of requests

    @property
    def connected(self) -> bool | None:
        """``None``: nobody wants it connected."""
        return None if self.deactivated else self.state in _CONNECTED


class LnetStats(Struct, frozen=True):
    """Since LNet was started, or its counters were reset. 32 bits wide but for the octets."""

    errors: int
    sent: int
    received: int
    dropped: int
    sent_octets: int
    received_octets: int


class LustreReading(Struct, frozen=True):
    """``None``: not here, or not to be read."""

    imports: tuple[LustreImport, ...]
    healthy: bool | None = None
    lnet: LnetStats | None = None
    skipped: tuple[tuple[str, str], ...] = ()  # imports that are left out and why


def parse_import(text: str, *, source: str) -> LustreImport:
    """Parse an ``import`` file; :class:`ParseError` without a name, target or state."""
    fields = dict(reversed(_FIELD.findall(text)))  # the first of each name counts: later sections may repeat one
    try:
        name, target, state = (fields[key].strip() for key in ("name", "target", "state"))
    except KeyError as error:
        raise ParseError(source, f"no {error} in {text[:40]!r}") from None
    return LustreImport(
        name,
        target.removesuffix(_SUFFIX),
        state,
        bool(_DEACTIVATED.search(fields.get("import_flags", ""))),
        _number(fields.get("connection_attempts", "")),
        _number(fields.get("timeouts", "")),
    )


def parse_health(text: str, *, source: str) -> bool:
    """Parse ``health_check``: whether it is healthy; :class:`ParseError` for a word that the kernel does not have."""
    return sysfs.matched(_HEALTH, text, "a state of health", source)[0] == "healthy"


def parse_lnet(text: str, *, source: str) -> LnetStats:
    """Parse LNet's ``stats``; :class:`ParseError` for anything but eleven numbers."""
    numbers = [int(word) for word in sysfs.matched(_STATS, text, "eleven numbers", source)[0].split()]
    _, _, errors, sent, received, _, dropped, sent_octets, received_octets, _, _ = numbers
    return LnetStats(errors, sent, received, dropped, sent_octets, received_octets)


def read_lustre(roots: Roots) -> LustreReading:
    """:class:`Unavailable` without Lustre."""
    debug = roots.sys / "kernel" / "debug"
    homes = (roots.sys / "fs" / "lustre", roots.proc / "fs" / "lustre")
    if not any(map(sysfs.entries, homes)):
        raise Unavailable("no Lustre here")
    imports, skipped = list[LustreImport](), list[tuple[str, str]]()
    for name, path in sorted(_files(roots.proc / "fs" / "lustre", debug / "lustre").items()):
        data = sysfs.read_bytes(path)
        try:
            if data is None:
                skipped.append((name, "unreadable"))
            else:
                imports.append(parse_import(data.decode("utf-8", "replace"), source=str(path)))
        except ParseError:
            skipped.append((name, "malformed"))
    return LustreReading(
        tuple(imports),
        _either(parse_health, *(home / "health_check" for home in homes)),
        _either(parse_lnet, debug / "lnet" / "stats", roots.proc / "sys" / "lnet" / "stats"),
        tuple(skipped),
    )


def _files(*homes: Path) -> dict[str, Path]:
    """The imports by name. A name is in one of the homes."""
    places = [home / kind for home in homes for kind in _KINDS]
    return {name: place / name / "import" for place in places for name in sysfs.entries(place)}


def _either(parse: Callable[..., T | None], *paths: Path) -> T | None:
    """What the first of the files that can be read says."""
    return next((value for path in paths if (value := sysfs.read_parsed(path, parse)) is not None), None)


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
