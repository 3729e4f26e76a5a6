"""The parsers of PCI texts and of configuration space are total, and any host can be judged."""

from __future__ import annotations

import contextlib
import shlex

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from plumbline.checks.growth import Count
from plumbline.checks.model import judge
from plumbline.checks.pcie import CHECKS, PcieErrors, PcieFacts
from plumbline.errors import ParseError
from plumbline.sources.pci import pci
from plumbline.sources.pci.pciconfig import PciConfig, parse_config, parse_extended_header
from plumbline.sources.pci.pcidevices import PciFunction
from support.lspci import parse_lspci
from support.pcispace import Express, space

NUMBERS = st.integers(0, 2**40)
MAYBE = st.none() | st.booleans()
registers = st.builds(
    Express,
    type=st.integers(0, 15),
    version=st.integers(0, 15),
    max_speed=st.integers(0, 15),
    max_lanes=st.integers(0, 63),
    speed=st.integers(0, 15),
    lanes=st.integers(0, 63),
    aspm=st.integers(0, 3),
    slot=st.none() | st.integers(0, 8191),
    ltr=st.booleans(),
)
spaces = st.builds(
    space,
    st.none() | registers,
    aer=st.booleans(),
    latencies=st.none() | st.tuples(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF)),
    size=st.sampled_from((64, 256, 4096)),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A sound one with some bytes changed, most of them where the lists are."""
    data = bytearray(draw(spaces))
    places = st.sampled_from((0x06, 0x34, 0x40, 0x41, 0x70, 0x71, 0x72, 0x100, 0x102, 0x103, 0x1B8, 0x1BA, 0x1BB))
    for place in draw(st.lists(places | st.integers(0, 4095), max_size=6)):
        data[place % len(data)] = draw(st.integers(0, 255))
    return bytes(data)


@given(damaged() | st.binary(max_size=300) | st.binary(min_size=256, max_size=256))
@example(b"\xff" * 4096)
@example(bytes(4096))
def test_configuration_space(data: bytes) -> None:
    with contextlib.suppress(ParseError):
        config = parse_config(data, source="fuzz")
        for field in fields(PciConfig):
            value = getattr(config, field.name)
            assert value is None or isinstance(value, str) or 0 <= value < 2**40
        if len(data) == 64:
            assert config == PciConfig(missing=config.missing)


@given(st.binary(max_size=8))
def test_heads(data: bytes) -> None:
    header = parse_extended_header(data)
    assert header is None or (0 <= header.next < 4096 and header.next % 4 == 0)


@pytest.mark.parametrize("parse", [pci.parse_speed, pci.parse_lanes, pci.parse_class, pci.parse_id])
@given(text=st.text(max_size=30) | st.from_regex(r"(0x)?[0-9a-f]{0,7}(\.[05])?( GT/s( PCIe)?)?"))
@example(text="٣ GT/s")
@example(text="9" * 5000)
def test_attributes(parse, text: str) -> None:
    with contextlib.suppress(ParseError):
        number = parse(text, source="fuzz")
        assert number is None or number >= 0


@given(
    st.text(max_size=80) | st.lists(st.sampled_from(("TOTAL_ERR_COR 3", "RxErr 1", "TOTAL_ERR_COR x"))).map("\n".join)
)
def test_errors(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert pci.parse_aer(text, source="fuzz", total="TOTAL_ERR_COR") >= 0


lines = st.sampled_from(
    (
        "01:00.0 Non-Volatile memory controller: Kingston Device 2262 (rev 03)",
        "0001:02:00.0 PCI bridge",
        "\t\tLnkCap:\tPort #0, Speed 8GT/s, Width x4, ASPM L1, Exit Latency L1 <8us",
        "\t\tLnkSta:\tSpeed unknown, Width x63",
        "\t\tDevCtl2: Completion Timeout: 50us to 50ms, TimeoutDis-, LTR+, OBFF Disabled",
        "\t\tMax snoop latency: 71680ns",
        "\t\tMax no snoop latency: Ons",
        "",
    )
)


@given(st.text(max_size=120) | st.lists(lines, max_size=9).map("\n".join))
def test_lspci(text: str) -> None:
    with contextlib.suppress(ParseError):
        for address, (_, config) in parse_lspci(text).items():
            assert address.count(":") == 2
            assert config.ltr_snoop_ns in (None, 71680)


NAMES = st.text(st.characters(exclude_characters="/\0 \t\n", exclude_categories=("Cs", "Zs", "Zl", "Zp")), min_size=1)
COUNTS = st.builds(Count, NUMBERS, st.none() | NUMBERS)
DEVICES = st.builds(
    PciFunction,
    address=NAMES,
    kind=st.sampled_from(("nvme", "hba", "nic")),
    name=st.sampled_from(("", "one", "two")),
    slot=st.just("") | NAMES,
    upstream=st.just("") | NAMES,
    devices=st.lists(NAMES, max_size=6).map(tuple),
    mtps=st.none() | NUMBERS,
    max_mtps=st.none() | NUMBERS,
    lanes=st.none() | NUMBERS,
    max_lanes=st.none() | NUMBERS,
    aspm_l0s=MAYBE,
    aspm_l1=MAYBE,
    ltr_enabled=MAYBE,
    ltr_snoop_ns=st.none() | NUMBERS,
    ltr_no_snoop_ns=st.none() | NUMBERS,
    behind_chipset=MAYBE,
)
SEVERITIES = st.dictionaries(st.sampled_from(("correctable", "nonfatal", "fatal")), COUNTS)
ERRORS = st.builds(PcieErrors, NAMES, st.lists(NAMES, max_size=6).map(tuple), SEVERITIES)
FACTS = st.builds(
    PcieFacts,
    st.lists(DEVICES, max_size=4, unique_by=lambda each: each.address).map(tuple),
    st.lists(ERRORS, max_size=3, unique_by=lambda each: each.address).map(tuple),
    st.frozensets(NAMES, max_size=2),
)


@settings(deadline=None)
@given(FACTS)
def test_any_host_can_be_judged(facts: PcieFacts) -> None:
    found = judge(CHECKS, facts)
    series = [(each.check, each.subject) for each in found]
    assert len(set(series)) == len(series)  # one sample each
    for each in found:
        assert each.met == (each.fix is None)
        assert each.actual
        assert each.expected
        if each.fix is not None:
            assert shlex.split(each.fix.now)
