"""Configuration space, built by the specification's offsets; whether lspci agrees is asked in the integration tests."""

from __future__ import annotations

import struct

import pytest

from plumbline.errors import ParseError
from plumbline.sources.pci.pciconfig import ExtendedHeader, PciConfig, answers, parse_config, parse_extended_header
from support.pcispace import AER_AT, EXPRESS_AT, LTR_AT, Express, space

SLOW = space(Express(ltr=True, aspm=2), aer=True, latencies=(0x0846, 0x1003))


def test_a_drive_with_ltr() -> None:
    assert parse_config(SLOW, source="config") == PciConfig(
        missing="",
        express=True,
        slot=None,
        max_mtps=8_000,
        max_lanes=4,
        mtps=8_000,
        lanes=4,
        aspm_l0s=False,
        aspm_l1=True,
        ltr_supported=True,
        ltr_enabled=True,
        ltr_snoop_ns=71_680,  # 70 × 1,024
        ltr_no_snoop_ns=3_145_728,  # 3 × 1,048,576
        aer=True,
    )


def test_a_port_with_a_slot() -> None:
    config = parse_config(space(Express(type=4, slot=7, lanes=2, speed=1), class_=0x060400), source="config")
    assert (config.slot, config.lanes, config.mtps, config.max_lanes, config.aer) == (7, 2, 2_500, 4, False)


def test_without_privilege_nothing_is_known_and_it_is_said_why() -> None:
    config = parse_config(SLOW[:64], source="config")
    assert config == PciConfig(missing=config.missing)
    assert "CAP_SYS_ADMIN" in config.missing


def test_without_extended_space_ltr_is_on_and_its_latency_unknown() -> None:
    config = parse_config(SLOW[:256], source="config")
    assert (config.ltr_enabled, config.ltr_snoop_ns, config.aer) == (True, None, None)
    assert "256 bytes" in config.missing


def test_conventional_pci_misses_nothing() -> None:
    assert parse_config(space(None, size=256), source="config") == PciConfig(express=False)
    assert parse_config(bytes(256), source="config") == PciConfig(express=False)


def test_the_first_version_of_the_capability_has_no_ltr() -> None:
    config = parse_config(space(Express(version=1, ltr=True)), source="config")
    assert (config.ltr_supported, config.ltr_enabled, config.lanes) == (None, None, 4)


def test_a_function_inside_the_root_complex_has_no_link() -> None:
    express = Express(type=9, max_speed=0, max_lanes=0, speed=0, lanes=0)
    config = parse_config(space(express), source="config")
    assert (config.max_mtps, config.lanes, config.aspm_l0s, config.aspm_l1) == (None, None, None, None)


@pytest.mark.parametrize(
    ("register", "ns"),
    [
        (0x0001, 1),
        (0x0401, 32),
        (0x0801, 1_024),
        (0x0C01, 32_768),
        (0x1001, 1_048_576),
        (0x1401, 33_554_432),
        (0x03FF, 1_023),
        (0xE001, 1),  # the three bits above are reserved
        (0x1801, None),
        (0x1C01, None),
    ],
)
def test_every_scale(register: int, ns: int | None) -> None:
    assert parse_config(space(Express(), latencies=(register, 0)), source="config").ltr_snoop_ns == ns


@pytest.mark.parametrize("length", [0, 63, 65, 128, 255, 4095, 8192])
def test_other_lengths(length: int) -> None:
    with pytest.raises(ParseError, match=rf"config: configuration space of {length} bytes"):
        parse_config(bytes(length), source="config")


def test_ones_are_no_answer() -> None:
    assert not answers(b"\xff" * 64)
    assert answers(SLOW)
    with pytest.raises(ParseError, match="all ones"):
        parse_config(b"\xff" * 4096, source="config")
    half = bytearray(SLOW)
    half[EXPRESS_AT + 2 :] = b"\xff" * (len(half) - EXPRESS_AT - 2)
    with pytest.raises(ParseError, match="disappeared during the read"):
        parse_config(bytes(half[:256]), source="config")


def with_(offset: int, data: bytes) -> bytes:
    changed = bytearray(SLOW)
    changed[offset : offset + len(data)] = data
    return bytes(changed)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (with_(EXPRESS_AT, b"\x01\x40"), "capability list loops to 0x40"),
        (with_(EXPRESS_AT, b"\x01\x3c"), "capability list points to 0x3c"),
        (with_(0x34, b"\xfc") [:0xFC] + b"\x10\0\2\0" + SLOW[0x100:], "capability at 0xfc does not fit"),
        (with_(LTR_AT, struct.pack("<I", 0x18 | AER_AT << 20)), "extended capability list loops to 0x100"),
        (with_(LTR_AT, struct.pack("<I", 0x18 | 0x40 << 20)), "extended capability list points to 0x40"),
        (with_(LTR_AT, struct.pack("<I", 0x18 | 0xFFC << 20)), "extended capability list points to 0xffc"),
    ],
)  # fmt: skip
def test_broken_lists(config: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_config(config, source="config")


def test_heads_of_extended_capabilities() -> None:
    assert parse_extended_header(bytes.fromhex("18000110")) == ExtendedHeader(0x18, 0x100)
    assert parse_extended_header(bytes(4)) is None
    assert parse_extended_header(b"\xff" * 4) is None
