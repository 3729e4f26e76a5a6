"""Dropping capabilities that are no longer needed: capset(2), prctl(2), capabilities(7).

Capabilities belong to a thread: dropping one affects this thread and those it starts afterwards.
"""

import ctypes
import os
import re
from collections.abc import Iterable
from enum import IntEnum

from plumbline.core.kernel import read_kernel
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError

_VERSION_3 = 0x20080522
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_CAP_SETPCAP = 8


class Capability(IntEnum):
    """Capabilities that parts of the daemon can use, by their numbers in linux/capability.h."""

    SYS_RAWIO = 17
    SYS_ADMIN = 21
    PERFMON = 38
    BPF = 39

    @property
    def label(self) -> str:
        """The name as in capabilities(7)."""
        return f"CAP_{self.name}"


NEVER_USED = frozenset({
    "LINUX_IMMUTABLE": 9, "NET_BROADCAST": 11, "IPC_OWNER": 15, "SYS_MODULE": 16, "SYS_CHROOT": 18, "SYS_PTRACE": 19,
    "SYS_PACCT": 20, "SYS_BOOT": 22, "SYS_TIME": 25, "SYS_TTY_CONFIG": 26, "MKNOD": 27, "LEASE": 28, "AUDIT_WRITE": 29,
    "AUDIT_CONTROL": 30, "SETFCAP": 31, "MAC_OVERRIDE": 32, "MAC_ADMIN": 33, "SYSLOG": 34, "WAKE_ALARM": 35,
    "BLOCK_SUSPEND": 36, "AUDIT_READ": 37, "CHECKPOINT_RESTORE": 40,
}.values())  # fmt: skip
"""Capabilities, by number, that neither the daemon nor anything it starts can use; root has them. Not listed because
something needs them: DAC_*, FOWNER, CHOWN (reading keyrings, sockets and other users' files), KILL, SYS_NICE,
SYS_RESOURCE, SETUID, SETGID, SETPCAP (ending and prioritising processes), NET_ADMIN, NET_RAW, NET_BIND_SERVICE (network
queries), IPC_LOCK (loading BPF before Linux 5.11), and PERFMON, BPF, SYS_RAWIO and SYS_ADMIN, named above."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def effective(roots: Roots) -> frozenset[Capability]:
    """The :class:`Capability` members in this thread's effective set; empty if /proc can't be read."""
    try:
        text = read_kernel(roots.proc / "thread-self" / "status").decode("ascii", "replace")
    except OSError:
        return frozenset()
    return parse_effective(text)


def parse_effective(status: str) -> frozenset[Capability]:
    """The effective set from the ``CapEff`` line of ``/proc/<pid>/status``."""
    match = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", status, re.MULTILINE)
    mask = int(match[1], 16) if match else 0
    return frozenset(capability for capability in Capability if mask >> capability & 1)


def give_up(numbers: Iterable[int]) -> frozenset[int]:
    """Drop capabilities from the effective, permitted, inheritable, ambient and bounding sets; returns those held. One
    call changes all sets but the bounding one (the kernel keeps ambient within permitted and inheritable);
    :class:`PlumblineError` if it is refused. Narrowing the bounding set needs CAP_SETPCAP; without it only a program
    with the capability as a file capability could regain it."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    if libc.capget(ctypes.byref(header), ctypes.byref(sets)):
        raise PlumblineError(f"capget: {os.strerror(ctypes.get_errno())}")
    may_bound = bool(sets[0].effective >> _CAP_SETPCAP & 1)
    given_up = set()
    for number in numbers:
        half, bit = sets[number // 32], 1 << number % 32
        if (half.effective | half.permitted | half.inheritable) & bit:
            given_up.add(number)
        half.effective &= ~bit
        half.permitted &= ~bit
        half.inheritable &= ~bit
        if may_bound and libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1:
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    if given_up and libc.capset(ctypes.byref(header), ctypes.byref(sets)):
        raise PlumblineError(f"capset: {os.strerror(ctypes.get_errno())}; the daemon keeps more rights than it needs")
    return frozenset(given_up)
