r"""udev's data about a device: its runtime database, one text file per device in ``/run/udev/data``.

    S:disk/by-id/ata-ST4000NM0035-1V4107_ZC1234AB
    I:4263021
    E:ID_MODEL_ENC=ST4000NM0035-1V4107\x20\x20
    E:ID_SERIAL_SHORT=ZC1234AB
    G:systemd

Only the ``E:`` lines (properties) are used. The file is private to systemd-udevd and libudev, stable since udev 174
(https://github.com/systemd/systemd/blob/main/src/libsystemd/sd-device/sd-device.c), and absent in containers without
/run/udev and on hosts without udevd; then there are no properties.
"""

import re
from collections.abc import Mapping

from plumbline.core.kernel import read_kernel
from plumbline.core.roots import Roots

_ENCODED = re.compile(rb"\\x([0-9a-fA-F]{2})")


def parse_udev_database(data: bytes) -> dict[str, bytes]:
    """Property name → raw value. Other lines are skipped; no input is malformed."""
    properties = {}
    for line in data.split(b"\n"):
        if line.startswith(b"E:"):
            key, equals, value = line[2:].partition(b"=")
            if equals:
                properties[key.decode("ascii", "replace")] = value
    return properties


def decode_enc(value: bytes) -> bytes:
    r"""Decode an ``*_ENC`` property, in which udev writes blanks and unusual bytes as ``\x20``."""
    return _ENCODED.sub(lambda match: bytes((int(match[1], 16),)), value)


def read_block_properties(roots: Roots, major: int, minor: int) -> Mapping[str, bytes]:
    """udev's properties of the block device ``major:minor``; empty when udev has none."""
    return read_properties(roots, f"b{major}:{minor}")


def read_properties(roots: Roots, device: str) -> Mapping[str, bytes]:
    """udev's properties by its own name for a device: ``b8:0``, ``+pci:0000:01:00.0``; empty when it has none."""
    try:
        return parse_udev_database(read_kernel(roots.udev / "data" / device))
    except OSError:
        return {}
