"""Present and former disks: a disk that disappears stays visible for a week, also across restarts.

Only built-in disks count: software devices and removable ones come and go. Listing ``/sys/block`` queries no disk, so
it continues while reading the facts hangs on one. A disk is identified by name and serial number; before its facts are
read, it is taken for the last disk of that name.
"""

import threading
from collections.abc import Callable, Iterable, Mapping

import msgspec

from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.errors import PlumblineError
from plumbline.probes.run.state import DiskRecord, DiskSeen, DisksSeen, StateStore
from plumbline.sources.disk.block import BlockDevice, list_built_in_disks
from plumbline.sources.disk.slots import read_slot

DISK_PRESENCE, LOOK_EVERY_S = "disk presence", 15.0
FORGET_AFTER_S = 7 * 86400.0  # covers a weekend and a holiday, but a disk removed on purpose is not reported for ever
SAVE_EVERY_S = 3600.0  # The state is also saved at every change. Limits how outdated `last seen` may be after a crash.

Key = tuple[str, str]


class DiskPresence:
    """Looks every few seconds; :attr:`seen` is replaced as a whole, so any thread may read it."""

    def __init__(
        self,
        roots: Roots,
        *,
        facts: Callable[[], Iterable[BlockDevice]],
        keep: Callable[[str], bool],
        store: StateStore,
        wall: Callable[[], float],
    ) -> None:
        """``facts`` may raise :class:`PlumblineError` if there are none; ``keep`` says which names are reported."""
        self._roots, self._facts, self._keep, self._store, self._wall = roots, facts, keep, store, wall
        self._saved_ts = 0.0
        self.seen = DisksSeen()
        self.job = Job(DISK_PRESENCE, LOOK_EVERY_S, 0.0, self.look)

    def look(self, _cancel: threading.Event | None = None) -> None:
        now = self._wall()
        self._store.follow_clock()
        facts = self._known()
        listed = [name for name in list_built_in_disks(self._roots, facts) if self._keep(name)]
        stored = [disk for disk in self._store.disks if self._keep(disk.device)]  # an excluded disk is not missing
        before = {(disk.device, disk.serial): disk for disk in stored}
        serials = {device.name: device.serial or "" for device in facts}
        keys = ((name, serials.get(name, _last_serial(name, stored))) for name in listed)
        present = {(name, serial) for name, serial in keys if serial is not None}
        disks = remember(before, present, now, slot=self._slot)
        self.seen = DisksSeen(
            DiskSeen(disk.device, disk.serial, key in present, disk.last_seen) for key, disk in sorted(disks.items())
        )
        if disks.keys() != before.keys() or not 0 <= now - self._saved_ts < SAVE_EVERY_S:
            self._store.put_disks(disks.values())
            self._saved_ts = now
        else:
            self._store.keep_disks(disks.values())

    def _slot(self, device: str) -> str:
        slot = read_slot(self._roots, device)
        return slot.name if slot else ""

    def _known(self) -> tuple[BlockDevice, ...]:
        try:
            return tuple(self._facts())
        except PlumblineError:
            return ()


def remember(
    before: Mapping[Key, DiskRecord], present: set[Key], now: float, *, slot: Callable[[str], str] = lambda _: ""
) -> dict[Key, DiskRecord]:
    """The known disks after a look at ``now`` that found ``present``. Forgets a disk that has been away for a week; one
    without serial number if a disk of that name is present (udev supplied the number later); one that is present
    under a name it got later (names depend on detection order); and one in whose slot another is since."""
    disks = {
        key: msgspec.structs.replace(before[key], last_seen=now)
        if key in before
        else DiskRecord(*key, first_seen=now, last_seen=now, slot=slot(key[0]))
        for key in present
    }
    names = {name for name, _ in present}
    for key, record in before.items():
        if key in present or now - record.last_seen > FORGET_AFTER_S:
            continue
        name, serial = key
        if serial:
            later = [disk for disk in disks.values() if disk.first_seen > record.last_seen]
            replaced = any(disk.serial == serial or disk.slot == record.slot != "" for disk in later)
        else:
            replaced = name in names
        if not replaced:
            disks[key] = record
    return disks


def _last_serial(name: str, records: Iterable[DiskRecord]) -> str | None:
    """The serial number of the last disk of this name; ``None`` if there was none."""
    same = [record for record in records if record.device == name]
    return max(same, key=lambda record: record.last_seen).serial if same else None
