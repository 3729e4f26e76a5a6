"""The layout of the maps of ``bpf/disk_latency.bpf.c``; constants and layouts of both files must agree.

::

    histograms   lane × slots + slot → 4 operations × (device ns, queue ns, 28 device counts, 28 queue counts)
    state        began ns, untimed earlier, unseen, endless, unnoted, 3 × –, 1024 × (name 1, name 2, slot + 1, unnoted
                 since ns)

All are 64-bit words in native byte order. The program writes and user space reads; for the table of names it is the
reverse. Words never tear, and a disk's words may be from different moments, because each only grows.
"""

import os
import re
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

OPERATIONS: Final = ("read", "write", "flush", "discard")
BUCKETS: Final = 28  # buckets up to 2^0 … 2^26 µs, and one above
_WORD = 8
_OPERATION_WORDS = 2 + 2 * BUCKETS
SLOT_BYTES: Final = len(OPERATIONS) * _OPERATION_WORDS * _WORD

_HEADER_WORDS, _DEVICE_WORDS = 8, 4
_BEGAN, _EARLIER, _UNSEEN, _ENDLESS, _UNNOTED = range(5)
_SLOT, _SINCE = 2, 3
_DEVICE_BITS, _PROBES = 10, 8
STATE_BYTES: Final = (_HEADER_WORDS + (_DEVICE_WORDS << _DEVICE_BITS)) * _WORD

_NAME_BYTES = 16
_RELEASED = 2**64 - 1  # in place of a name: no name is that, and the search for others goes on behind it
_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


_NOTHING: Mapping[int, int] = MappingProxyType({})


class Histogram(Struct, frozen=True):
    """``counts[k]`` requests took at most 2^k µs and more than the previous bucket; the last one has no limit."""

    counts: tuple[int, ...]
    sum_ns: int


class Times(Struct, frozen=True):
    """One operation of one disk. ``queue`` lacks requests of disks whose ``queue/iostats`` is off."""

    device: Histogram
    queue: Histogram


class Sizes(Struct, frozen=True):
    """Sizes of the maps. ``lanes`` and ``sets`` are powers of two."""

    lanes: int  # each CPU adds to its own lane, up to a limit; above that, CPUs share lanes
    slots: int  # disks that can be told apart
    sets: int  # each set holds four requests in flight

    @property
    def histogram_entries(self) -> int:
        return self.lanes * self.slots

    def constants(self, *, own_notes: bool) -> bytes:
        """The program's ``.rodata``. ``own_notes``: never use the kernel's own record of issues."""
        return struct.pack("=IIII", self.slots, self.lanes - 1, 65 - self.sets.bit_length(), own_notes)


MAX_LANES: Final = 64  # each lane costs memory and time per scrape; CPUs that share one are a little slower
_MIN_SETS, _SETS_A_DISK, _MAX_SETS = 1024, 256, 65536
SPARE_SLOTS: Final = 16
_MAX_HISTOGRAM_BYTES = 64 << 20  # the kernel keeps all of it in memory


def sizes_for(*, cpus: int, disks: int) -> Sizes:
    """Sizes for that many possible CPUs, and for twice the present ``disks`` plus a few, as far as the table of names
    has room; with many disks, more CPUs share a lane. The fastest devices have 1,024 requests in flight (an NVMe
    queue); a set overflows only when five of its own are."""
    sets = min(_MAX_SETS, max(_MIN_SETS, _power_of_two(disks * _SETS_A_DISK)))
    slots, lanes = min(2 * disks + SPARE_SLOTS, 1 << _DEVICE_BITS), min(MAX_LANES, _power_of_two(cpus))
    while lanes > 1 and lanes * slots * SLOT_BYTES > _MAX_HISTOGRAM_BYTES:
        lanes //= 2
    return Sizes(lanes, slots, sets)


def _power_of_two(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def begin(state: memoryview, now_ns: int) -> None:
    """Record that the program at issue runs from ``now_ns`` on (CLOCK_MONOTONIC); 0: it does not run."""
    state[_BEGAN] = now_ns


def begun(state: memoryview) -> bool:
    """Whether the program at issue runs."""
    return bool(state[_BEGAN])


def untimed(state: Sequence[int]) -> tuple[int, int, int, int]:
    """Counts of untimed requests: issued before the start, issue not seen, completion not seen, and issue recorded
    neither by the kernel nor by the program."""
    return state[_EARLIER], state[_UNSEEN], state[_ENDLESS], state[_UNNOTED]


def unnoted_slots(state: memoryview) -> set[int]:
    """Slots of the disks whose issues the kernel is known not to record."""
    slots, since = state[_HEADER_WORDS + _SLOT :: _DEVICE_WORDS], state[_HEADER_WORDS + _SINCE :: _DEVICE_WORDS]
    return {slot - 1 for slot, since_ns in zip(slots, since, strict=True) if slot and since_ns}


def register(state: memoryview, name: str, slot: int, *, unnoted_since_ns: int = 0) -> bool:
    """Count the disk with this ``disk_name`` in this slot; False when its part of the table is full. From
    ``unnoted_since_ns`` on, the kernel does not record when its requests are issued; registering again changes nothing
    else. Only the first 16 bytes of a name count; bytes that are not UTF-8 are given as by ``os.fsdecode``."""
    first, second = struct.unpack("=QQ", os.fsencode(name)[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0"))
    at = ((first ^ second * 31 & _MASK) * _GOLDEN & _MASK) >> (64 - _DEVICE_BITS)
    free = None
    for probe in range(_PROBES):
        place = _HEADER_WORDS + (at + probe) % (1 << _DEVICE_BITS) * _DEVICE_WORDS
        known = bool(state[place + _SLOT])
        if known and (state[place], state[place + 1]) == (first, second):
            state[place + _SINCE] = state[place + _SINCE] or unnoted_since_ns
            return True
        if free is None and (not known or state[place] == _RELEASED):
            free = place
        if not known:
            break
    if free is None:
        return False
    state[free + _SINCE], state[free + 1] = unnoted_since_ns, second
    if state[free] == _RELEASED:
        state[free + _SLOT] = slot + 1
        state[free] = first  # last, because the program uses the entry from here on
    else:
        state[free] = first
        state[free + _SLOT] = slot + 1  # likewise: 0 ends the program's search
    return True


def release(state: memoryview, slot: int) -> None:
    """Count the disks of this slot no longer; their places in the table can be taken by others."""
    for place in range(_HEADER_WORDS, len(state), _DEVICE_WORDS):
        if state[place + _SLOT] == slot + 1:
            state[place] = _RELEASED


def sum_lanes(memory: memoryview, sizes: Sizes, used_slots: int, before: Mapping[int, int] = _NOTHING) -> memoryview:
    """The words of the first ``used_slots`` slots, summed over the lanes, less what was ``before`` in a slot
    (:func:`slot_total`). Each lane is added as one long integer: twenty times as fast as single words. No word can
    overflow into the next: 2^64 ns are 584 years."""
    length, lane_bytes = used_slots * SLOT_BYTES, sizes.slots * SLOT_BYTES
    total = -sum(words << 8 * slot * SLOT_BYTES for slot, words in before.items() if slot < used_slots)
    for lane in range(sizes.lanes):
        # bytes() first: it copies whole words; converting the shared memory directly reads byte by byte
        total += int.from_bytes(bytes(memory[lane * lane_bytes : lane * lane_bytes + length]), "little")
    return memoryview(total.to_bytes(length, "little")).cast("Q")


def slot_total(memory: memoryview, sizes: Sizes, slot: int) -> int:
    """The words of one slot, summed over the lanes, as one long integer."""
    starts = range(slot * SLOT_BYTES, sizes.histogram_entries * SLOT_BYTES, sizes.slots * SLOT_BYTES)
    return sum(int.from_bytes(bytes(memory[start : start + SLOT_BYTES]), "little") for start in starts)


def parse_slot(words: Sequence[int], slot: int) -> MappingProxyType[str, Times]:
    """One disk's histograms by operation, from the result of :func:`sum_lanes`."""
    histograms = {}
    for index, operation in enumerate(OPERATIONS):
        start = (slot * len(OPERATIONS) + index) * _OPERATION_WORDS
        counts = start + 2
        histograms[operation] = Times(
            Histogram(tuple(words[counts : counts + BUCKETS]), words[start]),
            Histogram(tuple(words[counts + BUCKETS : counts + 2 * BUCKETS]), words[start + 1]),
        )
    return MappingProxyType(histograms)


def parse_misses(fdinfo: str) -> int:
    """How often the kernel skipped a program because an interrupt came while it ran on that CPU: ``recursion_misses``
    of ``/proc/self/fdinfo`` (5.12). Until 6.1 the kernel ran it anyway, so nothing was missed."""
    match = re.search(r"^recursion_misses:\s*([0-9]{1,20})$", fdinfo, re.MULTILINE)
    return int(match[1]) if match else 0
