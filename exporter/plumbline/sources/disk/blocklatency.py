"""Latency histograms of every disk, counted in the kernel by our BPF program: load it, register disks, read.

The program is :file:`bpf/disk_latency.bpf.c`. Loading needs CAP_BPF and CAP_PERFMON (Linux 5.8). Everything after that
is shared memory: reading it and registering new disks needs no system call and no capability.

The program has two parts. The part at completion is enough where the kernel itself records when a request is issued, as
it does for writeback throttling (``queue/wbt_lat_usec``), kyber, bfq and polling. The part at issue is attached once
there is a disk whose queue does not record this, according to sysfs or to the first requests that complete without a
record. Attaching is a system call that needs no capability since Linux 5.19; before that it works only at startup.

Requests exist only at the lowest device: dm, md, bcache and zram pass on bios and have no requests, so each request is
counted once, at its disk. Request-based dm-multipath has requests of its own, so devices stacked on others are not
registered. An NVMe namespace with several paths passes on bios too: its paths ``nvme1c0n1`` count as ``nvme1n1``.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from plumbline.core import threads
from plumbline.core.capabilities import Capability, effective
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.disk import latencymaps
from plumbline.sources.disk.latencymaps import Times
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.libbpf import BpfError, BpfObject, Library

_log = logging.getLogger(__name__)

EARLIER, UNSEEN, ENDLESS = "issued_earlier", "issue_not_seen", "completion_not_seen"
UNNOTED, INTERRUPTED = "issue_not_noted", "interrupted"
"""Why a request was not timed: it was in flight when we began to observe its disk's issues; its issue was not seen, or
there was no room to keep it; its completion was not seen (noticed when the kernel reuses its structure); the kernel did
not record its issue, and our program that does was not running; a completion came in an interrupt while the program
was running on that CPU."""

HOPELESS = ("CONFIG_DEBUG_INFO_BTF", "little-endian")  # in a reason that no package and no capability can fix
DROP_IN = "systemd/drop-ins/disk-latency.conf"
_SWITCHED_OFF = "disk latencies were switched off and the daemon gave up the capabilities to load them: restart it"
_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")
_NAMED = 5  # in a log line
_NEEDED = (Capability.BPF, Capability.PERFMON)


class DiskLatency(Struct, frozen=True):
    """One disk's requests since the daemon started, by operation, with all of :data:`.latencymaps.OPERATIONS`."""

    device: str
    times: Mapping[str, Times]


class LatencyReading(Struct, frozen=True):
    """All disks now present. ``untimed`` by reason."""

    disks: tuple[DiskLatency, ...] = ()
    untimed: Mapping[str, int] = field(default_factory=dict)
    restart_required: bool = False  # a disk can't be timed: the privileges to attach the program are gone
    without_room: tuple[str, ...] = ()  # disks that can't be timed: the table is full
    queue_buckets: bool = False  # whether the time in the queue is shown in buckets


def request_names(roots: Roots, *, keep: Callable[[str], bool]) -> dict[str, str]:
    """Disks that have requests: the name in the kernel's requests → the displayed name. Queries no disk."""
    names = {}
    for entry in sysfs.entries(roots.sys / "block"):
        name = entry.replace("!", "/")
        path = _PATH.fullmatch(name)
        shown = path[1] + path[2] if path else name
        if keep(shown) and not sysfs.entries(roots.sys / "block" / entry / "slaves"):
            names[name] = shown
    return names


def notes_issues(roots: Roots, disk: str) -> bool:
    """Whether the kernel records when this disk's requests are issued, as far as settings show; True without requests.
    Polling or an I/O controller enable it too, and it stays on after writeback throttling is disabled.
    https://github.com/torvalds/linux/blob/v6.12/block/blk-stat.c blk_stat_add_callback, blk_stat_enable_accounting"""
    folder = roots.sys / "block" / disk.replace("/", "!")
    throttle = (sysfs.read_text(folder / "queue/wbt_lat_usec") or "").strip()
    schedulers = sysfs.read_text(folder / "queue/scheduler") or ""
    return throttle not in ("", "0") or "[kyber]" in schedulers or not (folder / "mq").exists()


def read_image() -> bytes:
    """The compiled program from the wheel; :class:`Unavailable` when the build has none."""
    try:
        return (Path(__file__).parents[2] / "bpf" / "disk_latency.bpf.o").read_bytes()
    except FileNotFoundError as error:
        raise Unavailable(
            "this build has no BPF program: it was built without clang; install clang and libbpf-dev and build again"
        ) from error


def explain(error: BpfError, lockdown: str, *, may_call: bool = True) -> PlumblineError:
    """Explain the kernel's refusal. ``lockdown`` is the content of ``/sys/kernel/security/lockdown``; ``may_call``:
    :meth:`.Library.may_call`."""
    if error.errno not in (1, 13):  # EPERM, EACCES
        return error
    if "[confidentiality]" in lockdown:
        return Unavailable(f"{error}: the kernel is locked down (confidentiality), which forbids BPF tracing")
    if not may_call:
        return Unavailable(
            "the system call bpf(2) is refused although the capabilities are there: by a seccomp profile, that of the"
            " container (podman before 5 and Docker before 23 allow it with CAP_SYS_ADMIN alone: docs/container.md,"
            " Seccomp) or SystemCallFilter= of the service, or because the container has its own user namespace"
        )
    return Unavailable(
        f"{error}: the kernel refuses although the capabilities are there: a security module or, before Linux 5.11,"
        " the limit of locked memory (LimitMEMLOCK=infinity)"
    )


SETTINGS_WITHIN_S = 2.0
"""Time limit for reading the disks' queue settings at startup: a queue whose settings are being changed while its disk
hangs blocks readers (``q->sysfs_lock``). Until a queue answers, it is assumed not to record issues."""


class BlockLatency:
    """The program in the kernel, from :meth:`open` to :meth:`close`. Opened once: rights are dropped afterwards."""

    def __init__(
        self,
        roots: Roots,
        *,
        keep: Callable[[str], bool],
        image: Callable[[], bytes] = read_image,
        library: Callable[[], Library] = Library,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        notes: Callable[[Roots, str], bool] = notes_issues,
        own_notes: bool = False,
    ) -> None:
        """``keep`` is called with a disk's name; ``clock_ns`` is CLOCK_MONOTONIC; ``notes`` predicts whether the kernel
        records a disk's issues. ``own_notes``: assume that it never does."""
        self._roots, self._keep, self._notes, self._own_notes = roots, keep, notes, own_notes
        self._image, self._library, self._clock_ns = image, library, clock_ns
        self._attached: _Attached | None = None
        self._why_not: PlumblineError = Unavailable(_SWITCHED_OFF)
        self._slots: dict[str, int] = {}
        self._before: dict[int, int] = {}  # what other disks left in a slot that was taken over
        self._present: tuple[str, ...] = ()
        self._refused: frozenset[str] = frozenset()
        self._restart_required = False
        self._lock = threading.Lock()

    def open(self) -> None:
        """Load and attach; an error is kept and raised by :attr:`value`."""
        try:
            self._attached = self._load()
            self._refresh(SETTINGS_WITHIN_S)
            self._attached.object.attach(["complete"])
        except PlumblineError as error:
            self.close()
            self._why_not = error

    def _load(self) -> _Attached:
        """Load everything, without attaching the programs."""
        roots = self._roots
        if sys.byteorder != "little":
            raise Unavailable("disk latencies: the BPF program is built for little-endian machines only")
        btf = roots.sys / "kernel/btf/vmlinux"
        if not btf.exists():
            raise Unavailable(
                f"{btf}: missing; the BPF program can't run on a kernel built without CONFIG_DEBUG_INFO_BTF"
            )
        image, library, held = self._image(), self._library(), effective(roots)
        missing = (
            []
            if Capability.SYS_ADMIN in held
            else [capability.label for capability in _NEEDED if capability not in held]
        )
        if missing:
            given = f"{DROP_IN} gives them to the service, docs/container.md to a container"
            raise Unavailable(f"{' and '.join(missing)} missing; {given}")
        disks = len(set(request_names(roots, keep=self._keep).values()))
        sizes = latencymaps.sizes_for(cpus=possible_cpus(roots), disks=disks)
        try:
            return _load(library, image, sizes, own_notes=self._own_notes)
        except BpfError as error:
            lockdown = sysfs.read_text(roots.sys / "kernel/security/lockdown") or ""
            raise explain(error, lockdown, may_call=library.may_call()) from error

    def refresh(self, _cancel: threading.Event | None = None) -> None:
        """Register disks added since, record issues where the kernel turned out not to; may wait for settings."""
        self._refresh(None)

    def _refresh(self, within_s: float | None) -> None:
        if self._attached is None:
            return
        names = request_names(self._roots, keep=self._keep)
        noted = self._foresee(names, within_s)
        with self._lock:
            attached = self._attached
            if attached is None:
                return
            refused = self._register(attached, names, noted)
            if refused and self._forget_absent(attached, set(names.values())):
                refused = self._register(attached, names, noted)
            if refused - self._refused:
                first = ", ".join(sorted(refused)[:_NAMED])
                _log.warning("disk latencies: no room in the table for %d disks: %s …", len(refused), first)
            self._refused = refused
            self._present = tuple(dict.fromkeys(shown for shown in names.values() if shown in self._slots))
            self._watch_issues(attached)

    def _register(self, attached: _Attached, names: Mapping[str, str], noted: Mapping[str, bool]) -> frozenset[str]:
        """The disks that found no room."""
        return frozenset(
            shown for name, shown in names.items() if not self._name(attached, name, shown, noted.get(name, False))
        )

    def _forget_absent(self, attached: _Attached, present: Container[str]) -> bool:
        """Make room: a disk that has left and returns counts from 0. ``False``: none has left."""
        absent = [shown for shown in self._slots if shown not in present]
        for shown in absent:
            slot = self._slots.pop(shown)
            latencymaps.release(attached.state, slot)
            self._before[slot] = latencymaps.slot_total(attached.histograms, attached.sizes, slot)
        return bool(absent)

    def _watch_issues(self, attached: _Attached) -> None:
        unnoted = {self._slots[shown] for shown in self._present} & latencymaps.unnoted_slots(attached.state)
        if not unnoted or latencymaps.begun(attached.state) or self._restart_required:
            return
        try:
            attached.object.attach([attached.issue_program])
            latencymaps.begin(attached.state, self._clock_ns())
        except BpfError as error:
            self._restart_required = True
            names = ", ".join(shown for shown in self._present if self._slots[shown] in unnoted)
            _log.warning("disk latencies: restart the daemon to time %s: %s", names, error)

    def _foresee(self, names: Iterable[str], within_s: float | None) -> dict[str, bool]:
        """Whether the kernel records issues, for each disk that answers in time."""
        loadable: dict[str, bool] = {}

        def look_up() -> None:
            for name in names:
                loadable[name] = self._notes(self._roots, name)

        if within_s is None:
            look_up()
            return loadable
        threads.start("queue-settings", look_up).join(within_s)
        return dict(loadable)  # the thread may still be running

    def _name(self, attached: _Attached, name: str, shown: str, noted: bool) -> bool:
        slot = self._slots.get(shown)
        if slot is None:
            slot = self._free_slot()
        since_ns = 0 if noted else self._clock_ns()
        fits = slot < attached.sizes.slots
        if fits and latencymaps.register(attached.state, name, slot, unnoted_since_ns=since_ns):
            self._slots[shown] = slot  # kept while there is room: a disk that returns continues its counts
            return True
        return False

    def _free_slot(self) -> int:
        """The lowest that no disk has."""
        used = len(self._slots)
        if not self._before:  # none was given back
            return used
        return min(set(range(used + 1)).difference(self._slots.values()))

    @property
    def value(self) -> LatencyReading:
        """The current reading; raises the reason when there is none."""
        with self._lock:
            attached = self._attached
            if attached is None:
                raise self._why_not.with_traceback(None)  # raised once per scrape: it must not accumulate tracebacks
            used = max(self._slots.values(), default=-1) + 1
            words = latencymaps.sum_lanes(attached.histograms, attached.sizes, used, self._before)
            disks = tuple(DiskLatency(name, latencymaps.parse_slot(words, self._slots[name])) for name in self._present)
            untimed = dict(zip((EARLIER, UNSEEN, ENDLESS, UNNOTED), latencymaps.untimed(attached.state), strict=True))
            fdinfo = sysfs.read_bytes(self._roots.proc / "self" / "fdinfo" / str(attached.completions_fd)) or b""
            untimed[INTERRUPTED] = latencymaps.parse_misses(fdinfo.decode("ascii", "replace"))
            return LatencyReading(disks, untimed, self._restart_required, tuple(sorted(self._refused)))

    def close(self) -> None:
        """Unload from the kernel. It can't be reopened: that needs capabilities."""
        with self._lock:
            attached, self._attached = self._attached, None
            self._why_not = Unavailable(_SWITCHED_OFF)
        if attached is not None:
            attached.object.close()


class _Attached(Struct, frozen=True):
    object: BpfObject
    sizes: latencymaps.Sizes
    state: memoryview  # of 64-bit words
    histograms: memoryview
    issue_program: str
    completions_fd: int


def _load(library: Library, image: bytes, sizes: latencymaps.Sizes, *, own_notes: bool) -> _Attached:
    # arguments: (context, request) since 5.11 and 5.10.137, (context, queue, request) before
    with_queue = library.parameters_of("btf_trace_block_rq_issue") == 3
    issue, other = ("issue_with_queue", "issue") if with_queue else ("issue", "issue_with_queue")
    loaded = BpfObject(library, image)
    try:
        loaded.skip(other)
        loaded.set_entries("histograms", sizes.histogram_entries)
        loaded.set_entries("in_flight", sizes.sets)
        loaded.set_constants(sizes.constants(own_notes=own_notes))
        loaded.load()
        return _Attached(
            loaded,
            sizes,
            memoryview(loaded.mapped("state", latencymaps.STATE_BYTES, writable=True)).cast("Q"),
            memoryview(loaded.mapped("histograms", sizes.histogram_entries * latencymaps.SLOT_BYTES)),
            issue,
            loaded.program_fd("complete"),
        )
    except BaseException:
        loaded.close()
        raise


def possible_cpus(roots: Roots) -> int:
    """One more than the highest possible CPU number: ``0-63``, ``0,2-5``."""
    text = sysfs.read_text(roots.sys / "devices/system/cpu/possible") or ""
    match = re.search(r"([0-9]{1,6})$", text)
    return int(match[1]) + 1 if match else 1
