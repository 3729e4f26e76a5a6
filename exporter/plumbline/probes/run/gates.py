"""Conditions for starting a heavy probe: production comes first, and one heavy probe runs at a time.

A closed gate raises :class:`ProbeRefused` with the figure it saw; the scheduler counts a skip by its reason.
"""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from plumbline.config.types import QuietHours
from plumbline.core.files import OwnDirectory
from plumbline.core.kernel import read_kernel
from plumbline.core.proofs import Content
from plumbline.core.roots import Roots
from plumbline.core.storage_names import MARK
from plumbline.core.units import si
from plumbline.errors import FileRefused, ParseError, PlumblineError, ProbeRefused, StateError

# long enough to see bursty load, short enough to be current
BUSY_WINDOW_S = 2.0
_COPIES_GONE_WITHIN_S, _LOOK_AGAIN_S = 0.5, 0.02
_HELD = re.compile(rb"[^\n]+, pid \d+\n")

Gate = Callable[[], None]  # Returns if the probe may start, raises ProbeRefused if not


def check_device_busy(
    read: Callable[[], tuple[float, float]],
    *,
    device: str,
    limit: float,
    wait: Callable[[float], object],
    window_s: float = BUSY_WINDOW_S,
) -> None:
    """Refuse (``device-busy``) while ``device`` had operations in flight for more than ``limit`` of the window.
    ``read`` returns the device's busy time in milliseconds (``io_ticks``, field 10 of its line in ``/proc/diskstats``)
    and the monotonic time in seconds; it is called twice, ``wait(window_s)`` apart. Unknown counts as busy: the device
    is gone, or the counter went backwards (it is printed as 32 bits and wraps)."""
    (busy_ms,), seconds = _growth(read, "device-busy", device, "its busy time", lambda: wait(window_s))
    share = busy_ms / 1000 / seconds
    if share > limit:
        raise ProbeRefused("device-busy", f"{device} was busy for {share:.0%} of {_too_busy(seconds, limit)}")


def check_nic_busy(
    read: Callable[[], tuple[int, int, float]],
    *,
    device: str,
    speed_mbps: int,
    limit: float,
    wait: Callable[[float], object],
    window_s: float = BUSY_WINDOW_S,
) -> None:
    """Refuse (``nic-busy``) while ``device`` carried more than ``limit`` of its speed, in either direction. ``read``
    returns received and sent bytes and the monotonic time in seconds; otherwise as :func:`check_device_busy`."""
    moved, seconds = _growth(read, "nic-busy", device, "its counters", lambda: wait(window_s))
    share = max(moved) * 8 / seconds / (speed_mbps * 1e6)
    if share > limit:
        speed = si(speed_mbps * 1e6, "b/s")
        raise ProbeRefused("nic-busy", f"{device} carried {share:.0%} of its {speed} in {_too_busy(seconds, limit)}")


def _growth(
    read: Callable[[], tuple[float, ...]], reason: str, device: str, what: str, wait: Callable[[], object]
) -> tuple[list[float], float]:
    """By how much counters grew between two readings, and the seconds between; the time is the last of a reading."""
    try:
        *before, began = read()
        wait()
        *after, ended = read()
    except ProbeRefused:  # the device is gone
        raise
    except PlumblineError as error:
        raise ProbeRefused(reason, f"{device}: how busy it is can't be read: {error}") from error
    growth = [new - old for old, new in zip(before, after, strict=True)]
    if ended <= began or min(growth) < 0:
        raise ProbeRefused(reason, f"{device}: {what} went backwards; the next run will check again")
    return growth, ended - began


def _too_busy(seconds: float, limit: float) -> str:
    return (
        f"the last {seconds:.1f} s, the limit is {limit:.0%}; raise max_device_busy of this probe if that is its normal"
        " state"
    )


def check_load(roots: Roots, *, limit: float, cpus: int) -> None:
    """Refuse (``load``) while the one-minute load average per CPU is above ``limit``."""
    path = roots.proc / "loadavg"
    try:
        load = parse_loadavg(read_kernel(path).decode("ascii", "replace"), source=str(path))
    except (OSError, ParseError) as error:
        cause = f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise ProbeRefused("load", f"{cause}; the load of this node is unknown") from error
    if load / cpus > limit:
        raise ProbeRefused(
            "load",
            f"the load average is {load:.2f} on {cpus} CPUs ({load / cpus:.2f} each), the limit is {limit:g} each;"
            " raise max_load_per_cpu of this probe if that is this node's normal state",
        )


def check_quiet_hours(quiet: Iterable[QuietHours], now: time.struct_time) -> None:
    """Refuse (``quiet-hours``) while local time ``now`` lies in one of the quiet periods."""
    for period in quiet:
        if period.holds(now.tm_wday, now.tm_hour * 60 + now.tm_min):
            raise ProbeRefused("quiet-hours", f"{now.tm_hour:02d}:{now.tm_min:02d} is in the quiet hours {period}")


def parse_loadavg(text: str, *, source: str = "/proc/loadavg") -> float:
    """The one-minute average of ``0.20 0.18 0.12 1/80 11206`` (proc(5)); raises :class:`ParseError` otherwise."""
    first = text.split(None, 1)[0] if text.strip() else ""
    whole, dot, fraction = first.partition(".")
    if not (first.isascii() and whole.isdigit() and (fraction.isdigit() or not dot)):
        raise ParseError(source, f"expected a load average, found {first[:40]!r}", line=1)
    return float(first)


class HeavyLock:
    """One heavy probe at a time on this host: an advisory lock (flock(2)) on a file in the storage path.

    The lock belongs to the open file, and the probe's command inherits the descriptor. So the kernel releases the lock
    when both are closed: at the end of a run, or when the daemon crashes. If a command hangs on a dead disk and
    survives even SIGKILL, the lock lasts until the disk lets go of it, so no second command joins it, not even after a
    restart of the daemon.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def hold(self, holder: str) -> Iterator[int]:
        """Hold the lock and yield its descriptor. Raises :class:`ProbeRefused` (``locked``) at once if another process
        holds it, :class:`StateError` if the file can't be used. ``holder`` is the name that others see."""
        try:
            with OwnDirectory.at(self._path.parent, follow=True) as directory:
                descriptor = self._open(directory, f"{holder}, pid {os.getpid()}\n".encode())
        except OSError as error:
            raise StateError(f"{self._path}: can't be opened: {error.strerror}; check its owner") from error
        except FileRefused as error:
            raise StateError(str(error)) from error
        try:
            if other := _taken(descriptor):
                raise ProbeRefused("locked", f"{self._path}: held by {other}; the next run will try again")
            with contextlib.suppress(OSError):  # a full disk: it holds without the name, which only helps who waits
                # one write and no truncation: after a crash at any moment this is still known as a lock file
                end = f", pid {os.getpid()}\n".encode()
                os.pwrite(descriptor, holder.encode().ljust(os.fstat(descriptor).st_size - len(end)) + end, 0)
            yield descriptor
        finally:
            os.close(descriptor)  # not LOCK_UN: that would release the lock under a command that still hangs

    def _open(self, directory: OwnDirectory, text: bytes) -> int:
        """The open file; a missing one is created with its text, because an empty file shows nobody's work."""
        try:
            return directory.edit(self._path.name, _OURS)
        except FileNotFoundError:
            with contextlib.suppress(OSError):  # another process was faster, or the disk is full
                directory.create(self._path.name, text)
        return directory.edit(self._path.name, _OURS, create=True)


def is_lock_text(descriptor: int) -> bool:
    """Whether a file holds what :class:`HeavyLock` writes: nothing, or the holder."""
    text = os.pread(descriptor, _LONGEST, 0)
    return len(text) < _LONGEST and (not text or _HELD.fullmatch(text) is not None)


_LONGEST = 4096
_OURS = Content(is_lock_text, empty=MARK)


def _taken(descriptor: int) -> str:
    """Take the lock and return an empty string, or return the current holder. Waits for a lock that this process has
    just released: a child that another thread forks has a copy of each descriptor until it executes its program."""
    deadline = time.monotonic() + _COPIES_GONE_WITHIN_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(descriptor, 200, 0).decode("utf-8", "replace")
            other = re.sub(" +, pid ", ", pid ", text.strip()) or "another probe"
            if not other.endswith(f" pid {os.getpid()}") or time.monotonic() >= deadline:
                return other
            time.sleep(_LOOK_AGAIN_S)
        else:
            return ""
