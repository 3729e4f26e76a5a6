"""A SCSI enclosure, which QEMU does not emulate: its diagnostic pages as SES-3 and SPC-4 define them.

The kernel's module ``ses`` reads the pages 1, 2, 7 and 10, and writes 2.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

SLOTS = range(12)
GOOD, CHECK_CONDITION = 0x00, 0x02
_TEST_UNIT_READY, _REQUEST_SENSE, _INQUIRY, _RECEIVE, _SEND, _REPORT_LUNS = 0x00, 0x03, 0x12, 0x1C, 0x1D, 0xA0
_ILLEGAL_REQUEST, _INVALID_COMMAND, _INVALID_FIELD = 5, 0x2000, 0x2400
_ENCLOSURE, _HAS_SERVICES = 0x0D, 0x40
_SUPPORTED, _CONFIGURATION, _STATUS, _DESCRIPTORS, _ADDITIONAL = 0x00, 0x01, 0x02, 0x07, 0x0A
_SLOT = 0x17
_OK, _NOT_INSTALLED, _SELECT, _IDENTIFY = 0x01, 0x05, 0x80, 0x02
_VENDOR, _PRODUCT, _REVISION = b"LABSES  ", b"ENCLOSURE       ", b"1.0 "


@dataclass(eq=False)  # one device is itself: rows keep what they saw by guest, and this is a part of it
class Enclosure:
    """Of twelve slots. ``addresses``: the SAS addresses of the disks, by slot from 0; ``lit``: the slots whose light is
    on."""

    identifier: int
    addresses: Mapping[int, int]
    lit: set[int] = field(default_factory=set)

    def answer(self, cdb: bytes, data: bytes) -> tuple[int, bytes]:
        """The SCSI status, and the data that the initiator reads, or sense data."""
        operation = cdb[0]
        if operation in (_TEST_UNIT_READY, _REQUEST_SENSE):
            return GOOD, b"" if operation == _TEST_UNIT_READY else _sense(0, 0)
        if operation == _REPORT_LUNS:
            return GOOD, struct.pack(">I4xQ", 8, 0)
        if operation == _INQUIRY:
            return GOOD, self._vital(cdb[2]) if cdb[1] & 1 else self._inquiry()
        if operation == _RECEIVE:
            page = self._page(cdb[2])
            return (GOOD, page) if page else (CHECK_CONDITION, _sense(_ILLEGAL_REQUEST, _INVALID_FIELD))
        if operation == _SEND:
            self._control(data)
            return GOOD, b""
        return CHECK_CONDITION, _sense(_ILLEGAL_REQUEST, _INVALID_COMMAND)

    def _inquiry(self) -> bytes:
        head = struct.pack("BBBBBBBB", _ENCLOSURE, 0, 6, 2, 31, 0, _HAS_SERVICES, 0)
        return head + _VENDOR + _PRODUCT + _REVISION

    def _vital(self, page: int) -> bytes:
        """The pages by which an initiator knows the device: which there are, and its identifier."""
        content = b"\x00\x83" if page == 0 else struct.pack(">BBBBQ", 1, 3, 0, 8, self.identifier)
        return struct.pack(">BBH", _ENCLOSURE, page, len(content)) + content

    def _page(self, code: int) -> bytes:
        """Empty: the enclosure has no such page."""
        if code == _SUPPORTED:
            codes = bytes((_SUPPORTED, _CONFIGURATION, _STATUS, _DESCRIPTORS, _ADDITIONAL))
            return struct.pack(">BBH", code, 0, len(codes)) + codes
        if code == _CONFIGURATION:
            text = b"Disks"
            enclosure = struct.pack(">BBBBQ", 0x11, 0, 1, 36, self.identifier) + _VENDOR + _PRODUCT + _REVISION
            return _generation(code, enclosure + struct.pack("BBBB", _SLOT, len(SLOTS), 0, len(text)) + text)
        if code == _STATUS:
            return _generation(code, bytes(4) + b"".join(map(self._element, SLOTS)))
        if code == _DESCRIPTORS:
            names = [b"", *(f"Slot {number:02}".encode() for number in SLOTS)]
            return _generation(code, b"".join(struct.pack(">2xH", len(name)) + name for name in names))
        return _generation(code, b"".join(map(self._address, SLOTS))) if code == _ADDITIONAL else b""

    def _element(self, slot: int) -> bytes:
        state = _OK if slot in self.addresses else _NOT_INSTALLED
        return bytes((state, 0, _IDENTIFY if slot in self.lit else 0, 0))

    def _address(self, slot: int) -> bytes:
        """A SAS device slot with one phy, whose element has its index."""
        phy = struct.pack(">BxBB8xQB7x", 0x10, 0, 0x08, self.addresses.get(slot, 0), 0)
        description = struct.pack(">BBBBBBBB", 0x16, 6 + len(phy), 0, slot, 1, 0, 0, slot)
        return description + phy

    def _control(self, page: bytes) -> None:
        """Page 2 as it is written: only elements that are selected change."""
        if page[:1] != bytes((_STATUS,)):
            return
        for slot in SLOTS:
            element = page[12 + 4 * slot : 16 + 4 * slot]
            if len(element) == 4 and element[0] & _SELECT:
                (self.lit.add if element[2] & _IDENTIFY else self.lit.discard)(slot)


def _generation(code: int, content: bytes) -> bytes:
    return struct.pack(">BxHI", code, 4 + len(content), 0) + content


def _sense(key: int, code: int) -> bytes:
    """Fixed format."""
    return struct.pack(">BxBIBIHI", 0x70, key, 0, 10, 0, code, 0)
