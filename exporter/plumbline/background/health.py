"""Disk health, queried disk by disk at long intervals, so that one hung or sleeping disk does not affect the others.

Each disk has its own thread, and the round continues if that does not return: at most one thread a disk is ever stuck,
``in_flight_s`` shows it, and the disk is not queried again before the thread has returned.

NVMe uses threads, not processes: a process stuck in the kernel is no easier to end than a thread, and a busy storage
node should be spared one process a disk and round. smartctl is a process anyway; its thread waits for it.
"""

import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from plumbline.core import threads
from plumbline.core.capabilities import Capability, parse_effective
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.diskhealth import (
    DROP_IN,
    Answer,
    Asleep,
    DiskHealth,
    DiskState,
    NoHealth,
    Reason,
    controller_disk,
)
from plumbline.sources.disk.nvme_smart import Limits, controller_of, read_nvme_health
from plumbline.sources.disk.smartctl import check_askable, read_smartctl
from plumbline.sources.kernel.sysfs import read_bytes

log = logging.getLogger(__name__)

LOOK_EVERY_S = 15.0  # how often to check which disks are due
WITHIN_S = 15.0  # how long a round waits for one disk: smartctl's ten seconds plus the time to end it
FACTS_WITHIN_S = 5.0
REMEMBER_S = 7 * 86400.0  # how long a removed disk is still reported as one that does not answer

_DISK = re.compile(r"sd[a-z]+|nvme[0-9]+n[0-9]+")
_TRANSPORTS = frozenset({"nvme", "sata", "sas", "scsi"})
_BEHIND_CONTROLLER = "controller"  # The transport of a disk that the kernel does not know


def is_queried(device: BlockDevice) -> bool:
    """Whether to query this disk: real disks only, no virtual, software or network disks, SAN LUNs or USB sticks. USB
    bridges are left out because some can't report the power mode, so that a query would wake the disk."""
    if device.transport == _BEHIND_CONTROLLER:
        return True
    return bool(_DISK.fullmatch(device.name)) and device.transport in _TRANSPORTS and device.device_class != "virtual"


def controller_disks(configured: Mapping[str, Iterable[str]]) -> list[BlockDevice]:
    """Disks that a RAID controller hides, from the configuration."""
    return [
        BlockDevice(f"{node.removeprefix('/dev/')}:{kind}", 0, 0, 0, transport=_BEHIND_CONTROLLER)
        for node, kinds in configured.items()
        for kind in kinds
    ]


class _Disk:
    def __init__(self, device: BlockDevice) -> None:
        self.device = device
        self.seen_s = 0.0
        self.present = True
        self.queried_s: float | None = None  # monotonic; start of the last query
        self.thread: threading.Thread | None = None
        self.answer: Answer | NoHealth | None = None
        self.success_at: float | None = None
        self.logged = ""  # the reason of the last logged state

    @property
    def in_flight(self) -> bool:
        return self.thread is not None and self.thread.is_alive()


class HealthWatch:
    """The health of all disks. A job calls :meth:`refresh`; any thread may read :attr:`states`."""

    def __init__(
        self,
        *,
        devices: Callable[[], Iterable[BlockDevice]],
        ask: Callable[[BlockDevice], Answer],
        interval_s: Callable[[], float],
        within_s: float = WITHIN_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """``devices`` may raise :class:`Unavailable` until they are known; ``ask`` may hang."""
        self._devices, self._ask, self._interval_s = devices, ask, interval_s
        self._within_s, self._clock, self._wall = within_s, clock, wall
        self._disks: dict[str, _Disk] = {}
        self._disks_listed = False

    def refresh(self, cancel: threading.Event) -> None:
        """Query every disk that is due, one after the other."""
        try:
            present = self._present(cancel)
        except Unavailable as error:
            log.debug("disk health: %s", error)
            return
        now = self._clock()
        disks = {device.name: self._disk(device) for device in present}
        for disk in disks.values():
            disk.seen_s, disk.present = now, True
        for name, disk in self._disks.items():
            # what a controller hides leaves with its line of the configuration alone
            kept = disk.device.transport != _BEHIND_CONTROLLER and now - disk.seen_s < REMEMBER_S
            if name not in disks and kept:
                disks[name], disk.present = disk, False
        self._disks, self._disks_listed = disks, True
        for disk in tuple(disks.values()):
            if cancel.is_set():
                return
            due = disk.queried_s is None or self._clock() - disk.queried_s >= self._interval_s()
            if disk.present and not disk.in_flight and due:
                self._query(disk, cancel)
            self._log_change(disk)

    @property
    def states(self) -> tuple[DiskState, ...]:
        """Every disk that was ever queried and is not gone for a week; :class:`Unavailable` if there is none."""
        if not self._disks_listed:
            raise Unavailable("disk health has not been queried yet")
        if not self._disks:
            raise Unavailable("no SATA, SAS or NVMe disk here; virtual and software devices report no health")
        states = [self._state(disk) for _, disk in sorted(self._disks.items())]
        return tuple(state for state in states if state is not None)

    def _present(self, cancel: threading.Event) -> list[BlockDevice]:
        """Disks to query; waits a while for the facts, which another job may still be reading."""
        deadline = self._clock() + FACTS_WITHIN_S
        while True:
            try:
                return [device for device in self._devices() if is_queried(device)]
            except Unavailable:
                if self._clock() >= deadline or cancel.wait(0.1):
                    raise

    def _disk(self, device: BlockDevice) -> _Disk:
        disk = self._disks.get(device.name)
        if disk is None or (disk.device.serial or device.serial) != device.serial:
            return _Disk(device)  # another disk has taken the name
        return disk

    def _query(self, disk: _Disk, cancel: threading.Event) -> None:
        disk.queried_s = self._clock()
        disk.thread = threads.start("health", partial(self._answer, disk), of=disk.device.name)
        deadline = disk.queried_s + self._within_s
        while disk.thread.is_alive() and self._clock() < deadline and not cancel.is_set():
            disk.thread.join(0.2)

    def _answer(self, disk: _Disk) -> None:
        try:
            answer: Answer | NoHealth = self._ask(disk.device)
        except NoHealth as error:
            answer = error
        except PlumblineError as error:
            answer = NoHealth(Reason.MALFORMED, str(error))
        except Exception as error:  # noqa: BLE001  (one disk's unexpected answer must not end the round)
            answer = NoHealth(Reason.MALFORMED, f"{disk.device.name}: {type(error).__name__}: {error}")
        if isinstance(answer, DiskHealth):
            disk.success_at = self._wall()
        disk.answer = answer

    def _state(self, disk: _Disk) -> DiskState | None:
        """``None`` until the first query is answered or has taken too long."""
        now, name, answer = self._clock(), disk.device.name, disk.answer
        since_s = 0.0 if disk.queried_s is None else now - disk.queried_s
        in_flight_s = since_s if disk.in_flight else 0.0
        reason = message = ""
        if in_flight_s >= self._within_s:
            reason, message = Reason.NO_ANSWER, f"{name}: queried {in_flight_s:.0f} s ago, no answer yet; see dmesg"
        elif not disk.present:
            reason, message = Reason.GONE, f"{name}: the disk is gone"
        elif isinstance(answer, NoHealth):
            reason, message = answer.reason, str(answer)
        elif answer is None:
            return None
        elif since_s > 3 * self._interval_s() + self._within_s:
            reason, message = Reason.NO_ANSWER, f"{name}: last queried {since_s:.0f} s ago; other disks delay the round"
        health = answer if isinstance(answer, DiskHealth) and not reason else None
        asleep = isinstance(answer, Asleep) and not reason
        return DiskState(name, health, asleep, reason, message, disk.success_at, in_flight_s)

    def _log_change(self, disk: _Disk) -> None:
        state = self._state(disk)
        if state is None or state.reason == disk.logged:
            return
        if state.reason:
            log.warning("health of %s is not available: %s", disk.device.name, state.message)
        else:
            log.info("health of %s is available again", disk.device.name)
        disk.logged = state.reason


class DiskAsker:
    """Queries real disks: NVMe controllers by ioctl, all others through smartctl. Any thread may call it."""

    def __init__(self, roots: Roots, environment: Mapping[str, str]) -> None:
        self._roots = roots
        self.runner = ProcessRunner(environment, keep_capabilities=True)
        # on Debian, a user's PATH lacks the directory of smartctl
        self._path = f"{environment.get('PATH', '')}:/usr/sbin:/sbin".lstrip(":")
        self._limits: dict[tuple[str, str | None], Limits] = {}

    def __call__(self, device: BlockDevice) -> Answer:
        """One disk's answer; see ``sources/nvme_smart.py`` and ``sources/smartctl.py`` for the exceptions."""
        if device.transport != "nvme":
            node, behind = controller_disk(device.name)
            if not behind:
                check_askable(device.name, self._roots)
            if not _may_send_ata(self._roots):
                raise NoHealth(Reason.NO_PERMISSION, f"{device.name}: querying it needs CAP_SYS_RAWIO, see {DROP_IN}")
            program = shutil.which("smartctl", path=self._path)
            path = self._roots.dev / node.removeprefix("/dev/")
            return read_smartctl(path, device.transport, program, self.runner, behind=behind)
        controller = controller_of(device.name, self._roots)
        if controller is None:
            raise NoHealth(Reason.GONE, f"{device.name}: its controller is gone from /sys")
        key = (controller, device.serial)
        health, self._limits[key] = read_nvme_health(self._roots.dev / controller, self._limits.get(key))
        return health


def _may_send_ata(roots: Roots) -> bool:
    """Whether this process has CAP_SYS_RAWIO; without it smartctl mistakes the refusal for a disk in SLEEP."""
    status = read_bytes(roots.proc / "self" / "status")
    return status is None or Capability.SYS_RAWIO in parse_effective(status.decode("ascii", "replace"))
