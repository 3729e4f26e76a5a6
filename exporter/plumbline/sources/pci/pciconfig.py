"""A function's PCI configuration space, for what sysfs lacks: above all, Latency Tolerance Reporting.

PCI Express Base Specification 5.0, 7.5.3 (PCI Express capability), 7.8.2 (LTR extended capability), 7.8.4 (AER);
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/pci_regs.h (the same offsets and bits)

::

    0x34  first capability → [id, next, …] …        id 0x10 is PCI Express, from its start:
          +0x02 version, type, slot implemented     +0x0c LnkCap, +0x10 LnkCtl (bits 0-1 ASPM), +0x12 LnkSta
          +0x14 SltCap (bits 19-31 slot number)     +0x24 DevCap2 (bit 11 LTR), +0x28 DevCtl2 (bit 10 LTR enabled)
    0x100 extended capabilities → [id:16, version:4, next:12]; 0x0001 AER, 0x0018 LTR: +4 snoop, +6 no-snoop

Without CAP_SYS_ADMIN, the kernel returns only the first 64 bytes, which contain no capability.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from plumbline.errors import ParseError

HEADER_BYTES, CONVENTIONAL_BYTES, EXTENDED_BYTES = 64, 256, 4096
_EXPRESS = 0x10
_AER, _LTR = 0x0001, 0x0018
_MTPS = {1: 2_500, 2: 5_000, 3: 8_000, 4: 16_000, 5: 32_000, 6: 64_000}
_SCALES_NS = (1, 32, 1_024, 32_768, 1_048_576, 33_554_432)
_ROOT_PORT, _SWITCH_DOWNSTREAM = 4, 6
_CUT = "only 64 bytes can be read: the rest of configuration space needs CAP_SYS_ADMIN"
_NO_EXTENDED = "no extended configuration space: the kernel reaches 256 bytes of it only"


class PciConfig(Struct, frozen=True):
    """Parsed configuration space. ``None``: the function lacks this, or it is in the ``missing`` part."""

    missing: str = ""  # Why a part could not be read; empty when it is complete
    express: bool | None = None  # Whether there is a PCI Express capability
    slot: int | None = None  # For a port: the number of the physical slot below it
    max_mtps: int | None = None  # Megatransfers per second and lane
    max_lanes: int | None = None
    mtps: int | None = None
    lanes: int | None = None
    aspm_l0s: bool | None = None
    aspm_l1: bool | None = None
    ltr_supported: bool | None = None
    ltr_enabled: bool | None = None
    ltr_snoop_ns: int | None = None  # The highest latency that the function may report as tolerable
    ltr_no_snoop_ns: int | None = None
    aer: bool | None = None


class ExtendedHeader(NamedTuple):
    """The first four bytes of an extended capability; ``next`` 0 ends the list."""

    id: int
    next: int


def answers(data: bytes) -> bool:
    """Whether the function answers: one that is gone, or asleep without power, returns all ones."""
    return data[:4] != b"\xff\xff\xff\xff"


def parse_extended_header(data: bytes) -> ExtendedHeader | None:
    """``None`` for all zeros (an empty list) and all ones (a dead function)."""
    word = int.from_bytes(data[:4], "little")
    return None if word in (0, 0xFFFFFFFF) else ExtendedHeader(word & 0xFFFF, word >> 20 & 0xFFC)


def parse_config(data: bytes, *, source: str) -> PciConfig:
    """Parse 64, 256 or 4096 bytes; :class:`ParseError` for other lengths, all ones and malformed capability lists."""
    if len(data) not in (HEADER_BYTES, CONVENTIONAL_BYTES, EXTENDED_BYTES):
        raise ParseError(source, f"configuration space of {len(data)} bytes; it has 64, 256 or 4096")
    if not answers(data):
        raise ParseError(source, "all ones: the function does not answer")
    if len(data) == HEADER_BYTES:
        return PciConfig(_CUT)
    start = next((offset for id_, offset in _capabilities(data, source) if id_ == _EXPRESS), None)
    if start is None:
        return PciConfig(express=False)
    if start + 0x3C > CONVENTIONAL_BYTES:
        raise ParseError(source, f"PCI Express capability at {start:#x} does not fit")
    extended = dict(_extended(data, source)) if len(data) == EXTENDED_BYTES else None
    return _express(data, start, extended, source)


def _express(data: bytes, start: int, extended: dict[int, int] | None, source: str) -> PciConfig:
    flags, link_control, link_status = _word(data, start + 2), _word(data, start + 0x10), _word(data, start + 0x12)
    if flags == link_status == 0xFFFF:
        raise ParseError(source, "PCI Express capability of all ones: the function disappeared during the read")
    link = _double(data, start + 0x0C)
    of_port = flags >> 4 & 0xF in (_ROOT_PORT, _SWITCH_DOWNSTREAM) and flags & 1 << 8
    has_link = _MTPS.get(link & 0xF) is not None  # integrated into the root complex: all zeros
    second = flags & 0xF >= 2  # version 1 ends before the second device registers
    ltr = extended.get(_LTR) if extended is not None else None
    return PciConfig(
        missing="" if extended is not None else _NO_EXTENDED,
        express=True,
        slot=(_double(data, start + 0x14) >> 19 or None) if of_port else None,
        max_mtps=_MTPS.get(link & 0xF),
        max_lanes=(link >> 4 & 0x3F) or None,
        mtps=_MTPS.get(link_status & 0xF),
        lanes=(link_status >> 4 & 0x3F) or None,
        aspm_l0s=bool(link_control & 1) if has_link else None,
        aspm_l1=bool(link_control & 2) if has_link else None,
        ltr_supported=bool(_double(data, start + 0x24) & 1 << 11) if second else None,
        ltr_enabled=bool(_word(data, start + 0x28) & 1 << 10) if second else None,
        ltr_snoop_ns=None if ltr is None else _latency_ns(_word(data, ltr + 4)),
        ltr_no_snoop_ns=None if ltr is None else _latency_ns(_word(data, ltr + 6)),
        aer=None if extended is None else _AER in extended,
    )


def _latency_ns(word: int) -> int | None:
    """Value × scale; ``None`` for the two scales that the specification does not permit."""
    scale = word >> 10 & 7
    return (word & 0x3FF) * _SCALES_NS[scale] if scale < len(_SCALES_NS) else None


def _capabilities(data: bytes, source: str) -> Iterator[tuple[int, int]]:
    """Yield ``(id, offset)`` along the list."""
    if not _word(data, 0x06) & 1 << 4:  # Status register: no capability list
        return
    seen: set[int] = set()
    offset = data[0x34] & 0xFC
    while offset:
        if offset < HEADER_BYTES or offset in seen:
            raise ParseError(source, f"capability list {'loops' if offset in seen else 'points'} to {offset:#x}")
        seen.add(offset)
        yield data[offset], offset
        offset = data[offset + 1] & 0xFC


def _extended(data: bytes, source: str) -> Iterator[tuple[int, int]]:
    """Yield ``(id, offset)`` along the extended list; neither AER nor LTR occurs twice."""
    seen: set[int] = set()
    offset = CONVENTIONAL_BYTES
    while offset:
        if offset < CONVENTIONAL_BYTES or offset + 8 > EXTENDED_BYTES or offset in seen:
            where = "loops" if offset in seen else "points"
            raise ParseError(source, f"extended capability list {where} to {offset:#x}")
        seen.add(offset)
        header = parse_extended_header(data[offset : offset + 4])
        if header is None:
            return
        yield header.id, offset
        offset = header.next


def _word(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 2], "little")


def _double(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little")
