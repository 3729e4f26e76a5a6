"""What stands where in the maps of ``bpf/disk_latency.bpf.c``: constants and layouts of both must agree.

::

    histograms   lane × slots + slot → 4 operations × (device ns, queue ns, 28 device counts, 28 queue counts)
    state        began ns, untimed earlier, unseen, endless, unnoted, 3 × –, 1024 × (name 1, name 2, slot + 1, unnoted
                 since ns)

All are 64-bit words in the machine's order. The program adds, user space reads; of the table of names it is the other
way round. Words never tear, and a disk's words need not be of one moment: each only grows.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

OPERATIONS: Final = ("read", "write", "flush", "discard")
BUCKETS: Final = 28
"""Up to 2^0 … 2^26 µs, and above."""
_WORD = 8
_OPERATION_WORDS = 2 + 2 * BUCKETS
SLOT_BYTES: Final = len(OPERATIONS) * _OPERATION_WORDS * _WORD

_HEADER_WORDS, _DEVICE_WORDS = 8, 4
_BEGAN, _EARLIER, _UNSEEN, _ENDLESS, _UNNOTED = range(5)
_SLOT, _SINCE = 2, 3
_DEVICE_BITS, _PROBES = 10, 8
STATE_BYTES: Final = (_HEADER_WORDS + (_DEVICE_WORDS << _DEVICE_BITS)) * _WORD

_NAME_BYTES = 16
_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Histogram:
    """``counts[k]`` took at most 2^k µs and more than the bucket before; the last one has no limit."""

    counts: tuple[int, ...]
    sum_ns: int


@dataclass(frozen=True, slots=True)
class Times:
    """One operation of one disk. ``queue`` misses requests of disks whose ``queue/iostats`` is off."""

    device: Histogram
    queue: Histogram


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the maps are. ``lanes`` and ``sets`` are powers of two."""

    lanes: int
    """CPUs add to lanes of their own, up to a limit; above it they share."""
    slots: int
    """Disks that can be told apart."""
    sets: int
    """Of four requests in flight each."""

    @property
    def histogram_entries(self) -> int:
        """Entries of the map ``histograms``."""
        return self.lanes * self.slots

    def constants(self, *, own_notes: bool) -> bytes:
        """The program's ``.rodata``. ``own_notes``: it never asks for the kernel's."""
        return struct.pack("=IIII", self.slots, self.lanes - 1, 65 - self.sets.bit_length(), own_notes)

    @property
    def bytes(self) -> int:
        """What all maps take of the kernel's memory."""
        return self.histogram_entries * SLOT_BYTES + STATE_BYTES + self.sets * 64


MAX_LANES: Final = 64
"""Lanes cost memory and time a scrape; CPUs that share one add atomically, a little slower."""
_MIN_SETS, _SETS_A_DISK, _MAX_SETS = 1024, 256, 65536
SPARE_SLOTS: Final = 16


def sizes_for(*, cpus: int, disks: int) -> Sizes:
    """For that many possible CPUs, and for disks of now with room for as many more and a few.

    1,024 requests in flight a disk are what the fastest devices take (an NVMe queue). A set overflows only when five
    of its own are in flight.
    """
    sets = min(_MAX_SETS, max(_MIN_SETS, _power_of_two(disks * _SETS_A_DISK)))
    return Sizes(min(MAX_LANES, _power_of_two(cpus)), 2 * disks + SPARE_SLOTS, sets)


def _power_of_two(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def begin(state: memoryview, now_ns: int) -> None:
    """The program at the issue runs from ``now_ns`` on (CLOCK_MONOTONIC); 0: it does not run."""
    state[_BEGAN] = now_ns


def begun(state: memoryview) -> bool:
    """Whether it runs."""
    return bool(state[_BEGAN])


def untimed(state: Sequence[int]) -> tuple[int, int, int, int]:
    """Requests that completed untimed: issued before the beginning, issue not seen, completion not seen, and issued
    where neither the kernel nor the program noted it."""
    return state[_EARLIER], state[_UNSEEN], state[_ENDLESS], state[_UNNOTED]


def unnoted_slots(state: memoryview) -> set[int]:
    """Of the disks whose issues the kernel does not note, as far as is known."""
    slots, since = state[_HEADER_WORDS + _SLOT :: _DEVICE_WORDS], state[_HEADER_WORDS + _SINCE :: _DEVICE_WORDS]
    return {slot - 1 for slot, since_ns in zip(slots, since, strict=True) if slot and since_ns}


def register(state: memoryview, name: str, slot: int, *, unnoted_since_ns: int = 0) -> bool:
    """Count the disk of this name (the kernel's ``disk_name``) in this slot; false when its part of the table is full.

    ``unnoted_since_ns``: from now on, the kernel does not note when this disk's requests are issued. Registering again
    changes nothing else. Names longer than 16 bytes go by their first 16; bytes that are no UTF-8 are
    those that ``os.fsdecode`` stood in for.
    """
    first, second = struct.unpack("=QQ", os.fsencode(name)[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0"))
    at = ((first ^ second * 31 & _MASK) * _GOLDEN & _MASK) >> (64 - _DEVICE_BITS)
    for probe in range(_PROBES):
        place = _HEADER_WORDS + (at + probe) % (1 << _DEVICE_BITS) * _DEVICE_WORDS
        known = bool(state[place + _SLOT])
        if known and (state[place], state[place + 1]) != (first, second):
            continue
        state[place + _SINCE] = state[place + _SINCE] or unnoted_since_ns
        if not known:
            state[place], state[place + 1] = first, second
            state[place + _SLOT] = slot + 1  # last: from now on the program looks at it
        return True
    return False


def sum_lanes(memory: memoryview, sizes: Sizes, used_slots: int) -> memoryview:
    """The words of the first ``used_slots`` slots, added up over the lanes.

    As one long number a lane: adding words in Python one by one takes twenty times as long. No word ever overflows
    into the next: 2^64 ns are 584 years.
    """
    length, lane_bytes = used_slots * SLOT_BYTES, sizes.slots * SLOT_BYTES
    total = 0
    for lane in range(sizes.lanes):
        # bytes() first: a copy by whole words, where reading a number from the shared memory goes byte by byte
        total += int.from_bytes(bytes(memory[lane * lane_bytes : lane * lane_bytes + length]), "little")
    return memoryview(total.to_bytes(length, "little")).cast("Q")


def parse_slot(words: Sequence[int], slot: int) -> MappingProxyType[str, Times]:
    """One disk's histograms by operation, out of what :func:`sum_lanes` gave."""
    found = {}
    for index, operation in enumerate(OPERATIONS):
        start = (slot * len(OPERATIONS) + index) * _OPERATION_WORDS
        counts = start + 2
        found[operation] = Times(
            Histogram(tuple(words[counts : counts + BUCKETS]), words[start]),
            Histogram(tuple(words[counts + BUCKETS : counts + 2 * BUCKETS]), words[start + 1]),
        )
    return MappingProxyType(found)


def parse_misses(fdinfo: str) -> int:
    """How often the kernel did not run a program because an interrupt had come while it ran on that CPU.

    ``recursion_misses`` of ``/proc/self/fdinfo`` (5.12). Until 6.1 the kernel ran it all the same: nothing is missed.
    """
    match = re.search(r"^recursion_misses:\s*([0-9]{1,20})$", fdinfo, re.MULTILINE)
    return int(match[1]) if match else 0
