"""Every parser of the network sources is total: a value or ``ParseError``, whatever the bytes."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.errors import ConfigError, ParseError, PlumblineError
from plumbline.sources.kernel import interrupts, softnet, squeeze, sysctl, tcp
from plumbline.sources.net import drivers, ethnl, ethtool, features, linkmodes, port_settings
from plumbline.sources.net.links import RTM_GETLINK, Link, LinkStats, parse_link, read_links
from plumbline.sources.net.netlink import Message, Netlink, attribute, attributes, parse_attributes, parse_messages
from support.replay_network import ReplayNetlink

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDED = sorted(FIXTURES.glob("net-*/netlink/*.bin"))
IOCTLS = sorted(FIXTURES.glob("net-*/ioctl/*.bin"))

# bytes that look like attributes often enough to get past the first check
attribute_soup = st.recursive(
    st.binary(max_size=24),
    lambda inner: st.lists(st.builds(attribute, st.integers(0, 0xFFFF), inner), max_size=8).map(b"".join),
    max_leaves=20,
)
likely = st.lists(
    st.builds(attribute, st.sampled_from((1, 2, 3, 4, 5, 6, 9, 10, 16, 18, 23, 33, 35, 56)), attribute_soup),
    max_size=12,
).map(b"".join)


def whole(payload: bytes) -> Message:
    return Message(16, 2, 1, payload, 0, len(payload))


@given(st.binary(max_size=200) | attribute_soup)
@example(struct.pack("=IHHII", 16, 3, 0, 0, 0))
def test_datagrams(data: bytes) -> None:
    with contextlib.suppress(ParseError):
        for message in parse_messages(data, source="fuzz"):
            assert 16 <= message.start <= message.end <= len(data)


@given(st.binary(max_size=100) | attribute_soup)
def test_attributes(data: bytes) -> None:
    with contextlib.suppress(ParseError):
        for _kind, start, end in attributes(data, 0, len(data), source="fuzz"):
            assert 4 <= start <= end <= len(data)


@given(
    st.binary(max_size=40) | st.builds(lambda soup: bytes(16) + attribute(3, b"x\0") + soup, likely | attribute_soup)
)
def test_links(payload: bytes) -> None:
    with contextlib.suppress(ParseError):
        link, _ = parse_link(whole(payload))
        assert isinstance(link, Link)
        assert link.name
        link.name.encode("utf-8")  # a label must be encodable


@pytest.mark.parametrize(
    "parse",
    [
        port_settings.parse_rings,
        port_settings.parse_pause,
        port_settings.parse_pause_config,
        linkmodes.parse_linkmodes,
        port_settings.parse_channels,
        port_settings.parse_coalesce,
        features.parse_features,
        port_settings.parse_fec,
        port_settings.parse_port,
    ],
)
@given(
    payload=st.binary(max_size=40)
    | st.builds(lambda soup: bytes(4) + attribute(1, attribute(1, bytes(4))) + soup, likely | attribute_soup)
)
def test_ethtool_replies(parse: Callable[[Message], tuple[int, object]], payload: bytes) -> None:
    with contextlib.suppress(ParseError):
        ifindex, _ = parse(whole(payload))
        assert ifindex >= 0


@pytest.mark.parametrize(
    "parse",
    [
        ethtool.parse_driver_info,
        ethtool.parse_strings,
        ethtool.parse_stats,
        port_settings.parse_rings_structure,
        port_settings.parse_pause_structure,
        linkmodes.parse_link_settings,
        linkmodes.link_modes_words,
        port_settings.parse_channels_structure,
        port_settings.parse_coalesce_structure,
        features.parse_features_structure,
        port_settings.parse_fec_structure,
    ],
)
@given(data=st.binary(max_size=300))
def test_ethtool_structures(parse: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(ParseError):
        parse(data)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
@given(data=st.data())
def test_recorded_dumps_with_some_bytes_changed(path: Path, data: st.DataObject) -> None:
    """A damaged dump is a value, a ParseError or, where the damage makes an errno or takes the end away, an error."""
    damaged = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(1, len(damaged))) :]
    with contextlib.suppress(PlumblineError):
        read_links(Netlink(ReplayNetlink({RTM_GETLINK: bytes(damaged)}), source="fuzz"))


@pytest.mark.parametrize("path", IOCTLS, ids=lambda path: path.stem)
@given(data=st.data())
def test_recorded_structures_cut_short(path: Path, data: st.DataObject) -> None:
    whole_data = path.read_bytes()
    cut = whole_data[: data.draw(st.integers(0, len(whole_data) - 1))]
    for parse in (ethtool.parse_driver_info, ethtool.parse_strings, ethtool.parse_stats):
        with contextlib.suppress(ParseError):
            parse(cut)


hexadecimal = st.text("0123456789abcdefg", min_size=1, max_size=9)


@given(
    st.text(max_size=200) | st.lists(st.lists(hexadecimal, max_size=16).map(" ".join), max_size=4).map("\n".join),
    st.none() | st.lists(st.integers(0, 8), max_size=4),
)
def test_softnet(text: str, online: list[int] | None) -> None:
    with contextlib.suppress(ParseError):
        reading = softnet.parse_softnet(text, source="fuzz", online=online)
        assert all(0 <= cpu.processed < 1 << 32 for cpu in reading)
        assert len({cpu.cpu for cpu in reading}) == len(reading) > 0


@given(st.text("0123456789-,\n x", max_size=12) | st.text(max_size=20))
def test_cpu_lists(text: str) -> None:
    with contextlib.suppress(ParseError):
        cpus = softnet.parse_cpu_list(text, source="fuzz")
        assert list(cpus) == sorted(set(cpus))


def _lines(words: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.lists(st.lists(words, max_size=5).map(b" ".join), max_size=6).map(b"\n".join)


number = st.sampled_from((b"0", b"7", b"4294967295", b"4294967296", b"-1", b"1.5", b"1e3", b"9" * 5000, "٣".encode()))


@given(
    st.binary(max_size=60) | _lines(number | st.sampled_from((b"CPU0", b"CPU1", b"38:", b" 9:", b"NMI:", b"eth0-1"))),
    st.none() | st.sets(st.integers(0, 50)),
)
@example(b"CPU0\n1:" + b"9" * 5000, None)
def test_interrupts(data: bytes, irqs: set[int] | None) -> None:
    with contextlib.suppress(ParseError):
        cpus, found = interrupts.parse_interrupts(data, source="fuzz", irqs=irqs)
        assert all(len(each) == len(cpus) > 0 for each in found.values())
        assert irqs is None or found.keys() <= irqs


@given(st.binary(max_size=40) | st.lists(number, max_size=5).map(b",".join))
def test_per_cpu_count(data: bytes) -> None:
    with contextlib.suppress(ParseError):
        counts = interrupts.parse_per_cpu_count(data, source="fuzz")
        assert counts
        assert all(0 <= count < 1 << 32 for count in counts)


@given(
    _lines(number | st.sampled_from((b"Tcp:", b"InSegs", b"RetransSegs"))) | st.binary(max_size=60),
    _lines(number | st.sampled_from((b"TcpExt:", b"ListenDrops"))) | st.binary(max_size=60),
)
@example(b"Tcp: InSegs\nTcp: 1", b"TcpExt: ListenDrops\nTcpExt: 2")
def test_tcp(snmp: bytes, netstat: bytes) -> None:
    with contextlib.suppress(ParseError):
        reading = tcp.parse_tcp(snmp, netstat, source="fuzz")
        assert reading.segments_received is None or reading.segments_received >= 0


@given(_lines(number | st.sampled_from((b"cpu", b"cpu0", b"cpu1", b"intr"))) | st.binary(max_size=60))
def test_softirq_ticks(data: bytes) -> None:
    with contextlib.suppress(ParseError):
        assert all(ticks >= 0 for ticks in squeeze.parse_softirq_ticks(data, source="fuzz").values())


@given(st.text("0123456789 \t-x", max_size=20) | st.text(max_size=20), st.integers(1, 3))
@example("9" * 5000, 1)
def test_sysctl(text: str, count: int) -> None:
    with contextlib.suppress(ParseError):
        assert len(sysctl.parse_numbers(text, count=count, source="fuzz")) == count


@given(
    attribute_soup | st.builds(lambda value, mask: attribute(4, value) + attribute(5, mask), st.binary(), st.binary())
)
def test_bitsets(data: bytes) -> None:
    with contextlib.suppress(ParseError):
        assert ethnl.parse_bitset(parse_attributes(data, 0, len(data), source="fuzz")).value >= 0


strings = st.builds(
    lambda inner: bytes(4) + attribute(2, attribute(1, attribute(3, inner))),
    st.lists(
        st.builds(
            lambda index, text: attribute(1, attribute(1, index) + attribute(2, text)),
            st.binary(max_size=4),
            st.binary(),
        ),
        max_size=4,
    ).map(b"".join),
)


@given(strings | attribute_soup | st.binary(max_size=60))
def test_feature_names(payload: bytes) -> None:
    with contextlib.suppress(ParseError):
        names = features.parse_names(whole(payload))
        assert names
        assert all(mask > 0 for mask in features.offload_masks(names).values())


sums = st.text("abrtnl._%d+- []()?", max_size=30) | st.sampled_from(
    ["rtnl.rx_dropped - rx_drops", "a + %d", "a - ", "a?"]
)
conditions = st.text("ab <_%ds?", max_size=12) | st.sampled_from(
    ["a", "rtnl.rx_dropped < b", "b < rtnl.rx_dropped", "a < b < a"]
)
guarded = st.fixed_dictionaries({"when": conditions, "sum": sums})


@given(sums | st.lists(sums | guarded, max_size=3), st.lists(st.text("abd0 1", max_size=4), max_size=6))
def test_driver_tables(form: object, names: list[str]) -> None:
    """Any expression is either refused when the table is read, or can be bound and computed for any port."""
    import yaml

    entry = {"source": "s", "drops": {"receive": {"ring": form}}}
    text = yaml.safe_dump(
        {"fallback": {"source": "s"}, "software": {"source": "s"}, "kinds": {}, "drivers": {"x": entry}}
    )
    with contextlib.suppress(ConfigError):
        rules = drivers.parse_table({"fuzz": text}).drivers["x"]
        values, rtnl = [3] * len(names), LinkStats(*[5] * 25)
        for evidence in (None, drivers.Evidence(names, values, rtnl)):
            plan = drivers.bind(rules, names, evidence)
            for stats in (None, rtnl):
                assert all(count.frames >= 0 for count in drivers.losses(plan, values, stats).drops)


@given(st.text(max_size=80))
def test_driver_table_text(text: str) -> None:
    with contextlib.suppress(ConfigError):
        drivers.parse_table({"fuzz": text})
