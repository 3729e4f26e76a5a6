"""Configuration spaces and sysfs trees of PCI functions that this project's machines do not have."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

EXPRESS_AT, AER_AT, LTR_AT = 0x70, 0x100, 0x1B8


@dataclass(frozen=True, slots=True)
class Express:
    """Registers of a PCI Express capability, as numbers of the specification."""

    type: int = 0  # 0 endpoint, 4 root port
    version: int = 2
    max_speed: int = 3
    max_lanes: int = 4
    speed: int = 3
    lanes: int = 4
    aspm: int = 0
    slot: int | None = None
    ltr_supported: bool = True
    ltr: bool = False


def space(
    express: Express | None = None,
    *,
    vendor: int = 0x144D,
    device: int = 0xA808,
    class_: int = 0x010802,
    aer: bool = False,
    latencies: tuple[int, int] | None = None,
    size: int = 4096,
) -> bytes:
    """``latencies``: the LTR capability's two registers, snoop and no-snoop."""
    data = bytearray(4096)
    bridge = class_ >> 8 == 0x0604
    struct.pack_into("<HHHHI", data, 0, vendor, device, 6, 0x10, class_ << 8)
    data[0x0E] = 1 if bridge else 0
    data[0x34] = 0x40
    struct.pack_into("<BBHI", data, 0x40, 0x01, EXPRESS_AT if express else 0, 3, 8)  # power management
    if express:
        pack = struct.pack_into
        pack("<BBH", data, EXPRESS_AT, 0x10, 0, express.version | express.type << 4 | (express.slot is not None) << 8)
        pack("<I", data, EXPRESS_AT + 0x0C, express.max_speed | express.max_lanes << 4 | 3 << 10)
        pack("<HH", data, EXPRESS_AT + 0x10, express.aspm, express.speed | express.lanes << 4)
        pack("<I", data, EXPRESS_AT + 0x14, (express.slot or 0) << 19)
        pack("<I", data, EXPRESS_AT + 0x24, express.ltr_supported << 11)
        pack("<H", data, EXPRESS_AT + 0x28, express.ltr << 10)
    listed = [(AER_AT, 0x0001)] if aer or latencies else []  # the list begins at 0x100, whatever stands there
    if latencies:
        listed = [(AER_AT, 0x0001 if aer else 0x000B), (LTR_AT, 0x0018)]
        struct.pack_into("<HH", data, LTR_AT + 4, *latencies)
        if not aer:
            struct.pack_into("<I", data, AER_AT + 4, 0x0080001)  # a vendor's own, 8 bytes long
    for (offset, id_), (following, _) in itertools.pairwise([*listed, (0, 0)]):
        struct.pack_into("<I", data, offset, id_ | 1 << 16 | following << 20)
    return bytes(data[:size])


def hexdump(spaces: Mapping[str, bytes]) -> str:
    """As ``lspci -xxxx`` prints them and ``lspci -F`` reads them, by address."""
    blocks = []
    for address, data in spaces.items():
        rows = (f"{at:02x}: {data[at : at + 16].hex(' ')}" for at in range(0, len(data), 16))
        blocks.append("\n".join([f"{address} PCI function", *rows, ""]))
    return "\n".join(blocks)


def add_function(
    sys: Path, path: str, *, config: bytes, driver: str = "", files: Mapping[str, str] | None = None
) -> Path:
    """A function at ``pci0000:00/0000:00:1c.0/…`` with the files that its configuration space implies, and others."""
    directory = sys / "devices" / path
    directory.mkdir(parents=True, exist_ok=True)
    vendor, device = struct.unpack_from("<HH", config)
    class_ = struct.unpack_from("<I", config, 8)[0] >> 8
    told = {"class": f"0x{class_:06x}", "vendor": f"0x{vendor:04x}", "device": f"0x{device:04x}", "numa_node": "-1"}
    for name, text in (told | dict(files or {})).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text + "\n")
    (directory / "config").write_bytes(config)
    if driver:
        (directory / "driver").symlink_to("../" * (path.count("/") + 2) + f"bus/pci/drivers/{driver}")
    links = sys / "bus" / "pci" / "devices"
    links.mkdir(parents=True, exist_ok=True)
    (links / directory.name).symlink_to(f"../../../devices/{path}")
    return directory


def link_files(express: Express) -> dict[str, str]:
    """What the kernel says of a link."""
    speeds = {0: "Unknown", 1: "2.5 GT/s PCIe", 2: "5.0 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe"}
    return {
        "current_link_speed": speeds[express.speed],
        "current_link_width": str(express.lanes),
        "max_link_speed": speeds[express.max_speed],
        "max_link_width": str(express.max_lanes),
    }
