"""The NVMe health log page put together by the specification's octets, independent of the parser's own layout."""

from __future__ import annotations

from collections.abc import Mapping

OCTETS = {
    # field → first octet, last octet (NVM Express base specification 1.4, 5.14.1.2)
    "critical_warning": (0, 0),
    "temperature_kelvin": (1, 2),
    "spare_percent": (3, 3),
    "spare_threshold_percent": (4, 4),
    "used_percent": (5, 5),
    "endurance_group_warning": (6, 6),
    "read_units": (32, 47),
    "written_units": (48, 63),
    "read_commands": (64, 79),
    "write_commands": (80, 95),
    "busy_minutes": (96, 111),
    "power_cycles": (112, 127),
    "power_on_hours": (128, 143),
    "unsafe_shutdowns": (144, 159),
    "media_errors": (160, 175),
    "error_log_entries": (176, 191),
    "warning_temperature_minutes": (192, 195),
    "critical_temperature_minutes": (196, 199),
    "throttle_1_count": (216, 219),
    "throttle_2_count": (220, 223),
    "throttle_1_seconds": (224, 227),
    "throttle_2_seconds": (228, 231),
}
SENSORS = tuple((first, first + 1) for first in range(200, 216, 2))

USED = {
    "temperature_kelvin": 311,
    "spare_percent": 97,
    "spare_threshold_percent": 10,
    "used_percent": 104,
    "read_units": 2**40,
    "written_units": 3,
    "power_cycles": 12,
    "power_on_hours": 26000,
    "unsafe_shutdowns": 5,
    "media_errors": 2,
    "error_log_entries": 900,
}
"""A worn disk; every figure another one."""


def smart_page(fields: Mapping[str, int], sensors: tuple[int, ...] = ()) -> bytes:
    """512 octets, little endian, zero where nothing is given."""
    page = bytearray(512)
    places = [(OCTETS[name], value) for name, value in fields.items()]
    for (first, last), value in [*places, *zip(SENSORS, sensors, strict=False)]:
        page[first : last + 1] = value.to_bytes(last + 1 - first, "little")
    return bytes(page)


def identify_page(warning_kelvin: int, critical_kelvin: int) -> bytes:
    """4,096 octets of identify controller with WCTEMP (266-267) and CCTEMP (268-269)."""
    page = bytearray(4096)
    page[266:268] = warning_kelvin.to_bytes(2, "little")
    page[268:270] = critical_kelvin.to_bytes(2, "little")
    return bytes(page)
