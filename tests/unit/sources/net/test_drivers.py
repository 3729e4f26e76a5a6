"""What counters mean: the shipped table, and how rules become numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.errors import ConfigError
from plumbline.sources.net.drivers import Count, NicLoss, bind, hold, load_table, losses, parse_table
from plumbline.sources.net.links import Link, LinkStats

FIXTURES = Path(__file__).parents[3] / "fixtures"
ZERO = LinkStats(*[0] * 25)
MINIMAL = "fallback: {source: s}\nsoftware: {source: s}\nkinds: {}\n"


def link(kind: str = "", parent: str = "", flags: int = 0x1) -> Link:
    return Link(2, "eth0", b"eth0", kind, flags, 1500, 6, True, 0, 0, "", parent, "", ZERO)


def published_ixgbe() -> dict[str, int]:
    text = (FIXTURES / "net-ixgbe" / "ethtool_S.txt").read_text()
    return {name: int(value) for name, value in re.findall(r"^\s+(\w+): (\d+)$", text, re.MULTILINE)}


def computed(driver: str, statistics: dict[str, int], rtnl: LinkStats) -> NicLoss:
    plan = bind(load_table().drivers[driver], tuple(statistics))
    return losses(plan, tuple(statistics.values()), rtnl)


# --- ixgbe


def test_ixgbe_as_published_tells_the_nics_buffer_from_the_ring_and_oversize_from_crc() -> None:
    # rtnl's fields as this driver fills them: rx_errors 67381 = CRC 67302 + RLEC 79
    rtnl = ZERO._replace(rx_errors=67381, rx_crc_errors=67302, rx_length_errors=79, rx_missed_errors=2538)
    assert computed("ixgbe", published_ixgbe(), rtnl) == NicLoss(
        drops=(
            Count("receive", "ring", 0),
            Count("receive", "fifo", 2538),
            Count("receive", "filter", 0),
            Count("transmit", "other", 0),
        ),
        errors=(Count("receive", "crc", 67302), Count("receive", "length", 79 + 80264 + 0)),
        pause=(Count("receive", "", 0), Count("transmit", "", 52)),
    )


def test_ixgbe_of_later_kernels_repeats_the_length_errors_and_none_is_counted_twice() -> None:
    statistics = {**published_ixgbe(), "rx_length_errors": 79, "rx_no_dma_resources": 1119, "rx_no_buffer_count": 5}
    rtnl = ZERO._replace(rx_length_errors=79, rx_dropped=7, rx_nohandler=2, rx_otherhost_dropped=1)
    loss = computed("ixgbe", statistics, rtnl)
    assert Count("receive", "length", 79 + 80264) in loss.errors
    assert loss.drops[:3] == (
        Count("receive", "ring", 1119),
        Count("receive", "fifo", 2538),
        Count("receive", "filter", 10),
    )


# --- virtio_net


@pytest.mark.parametrize(
    "statistics",
    [
        {"rx_drops": 30, "rx_xdp_drops": 4, "tx_xdp_tx_drops": 2, "rx0_drops": 10, "rx0_xdp_drops": 4},
        {"rx0_drops": 10, "rx1_drops": 20, "rx0_xdp_drops": 1, "rx1_xdp_drops": 3, "tx0_xdp_tx_drops": 2},
        {
            "rx_queue_0_drops": 10,
            "rx_queue_1_drops": 20,
            "rx_queue_0_xdp_drops": 1,
            "rx_queue_1_xdp_drops": 3,
            "tx_queue_0_xdp_tx_drops": 2,
        },
    ],
    ids=["with totals", "rx0", "rx_queue_0"],
)
def test_virtio_net_in_each_spelling_splits_the_drivers_drops_from_the_stacks(statistics: dict[str, int]) -> None:
    rtnl = ZERO._replace(
        rx_dropped=35,
        tx_dropped=6,
        tx_fifo_errors=6,
        rx_nohandler=1,
        rx_length_errors=8,
        rx_frame_errors=9,
        tx_errors=3,
    )
    assert computed("virtio_net", statistics, rtnl) == NicLoss(
        drops=(
            Count("receive", "other", 30),
            Count("receive", "filter", 35 - 30 + 1 + 4),
            Count("transmit", "other", 8),
        ),
        errors=(Count("receive", "length", 8), Count("receive", "frame", 9), Count("transmit", "other", 3)),
    )


def test_a_virtio_net_without_statistics_shows_what_the_kernel_knows() -> None:
    loss = computed("virtio_net", {}, ZERO._replace(rx_dropped=35, tx_dropped=6))
    assert loss.drops == (Count("receive", "filter", 0), Count("transmit", "other", 6))


# --- the others


def test_unknown_drivers_get_the_documented_fields_each_once() -> None:
    rtnl = ZERO._replace(
        rx_missed_errors=1,
        rx_fifo_errors=2,
        rx_nohandler=3,
        rx_otherhost_dropped=4,
        rx_dropped=5,
        tx_dropped=6,
        rx_crc_errors=10,
        rx_length_errors=20,
        rx_frame_errors=30,
        rx_over_errors=1000,
        rx_errors=67,
        tx_carrier_errors=40,
        tx_errors=48,
    )
    assert losses(bind(load_table().fallback, ()), (), rtnl) == NicLoss(
        drops=(
            Count("receive", "ring", 1),
            Count("receive", "fifo", 2),
            Count("receive", "filter", 7),
            Count("receive", "other", 5),
            Count("transmit", "other", 6),
        ),
        errors=(
            Count("receive", "crc", 10),
            Count("receive", "length", 20),
            Count("receive", "frame", 30),
            Count("receive", "other", 7),
            Count("transmit", "carrier", 40),
            Count("transmit", "other", 8),
        ),
    )


def test_parts_that_a_driver_leaves_out_of_its_total_never_make_it_negative() -> None:
    loss = losses(bind(load_table().fallback, ()), (), ZERO._replace(rx_errors=1, rx_crc_errors=5))
    assert Count("receive", "other", 0) in loss.errors


def test_fields_that_the_kernel_is_too_old_for_add_nothing() -> None:
    rtnl = ZERO._replace(rx_nohandler=None, rx_otherhost_dropped=None, rx_dropped=5)
    assert losses(bind(load_table().software, ()), (), rtnl).drops == (
        Count("receive", "filter", 0),
        Count("receive", "other", 5),
        Count("transmit", "other", 0),
    )


def test_without_link_statistics_only_the_drivers_own_causes_remain() -> None:
    plan = bind(load_table().drivers["ixgbe"], tuple(published_ixgbe()))
    loss = losses(plan, tuple(published_ixgbe().values()), None)
    assert [count.cause for count in loss.drops] == ["ring", "fifo"]


@pytest.mark.parametrize(
    ("of", "driver", "entry", "source"),
    [
        (link(), "ixgbe", "drivers.ixgbe", "driver"),
        (link(), "mystery", "fallback", "rtnl"),
        (link(kind="veth"), "", "software", "rtnl"),
        (link(flags=0x9), "", "software", "rtnl"),
        (link(kind="bond"), "", "kinds.bond", "members"),
        (link(kind="ipoib", parent="0000:3b:00.0"), "mystery", "fallback", "rtnl"),
    ],
)
def test_which_rules_a_link_gets(of: Link, driver: str, entry: str, source: str) -> None:
    table = load_table()
    entries = {
        "drivers.ixgbe": table.drivers["ixgbe"],
        "fallback": table.fallback,
        "software": table.software,
        "kinds.bond": table.kinds["bond"],
    }
    assert table.select(of, driver) == (entries[entry], source)


def test_a_bond_shows_no_losses_of_its_own() -> None:
    plan = bind(load_table().kinds["bond"], ())
    assert losses(plan, (), ZERO._replace(rx_missed_errors=9)) == NicLoss()


def test_only_rules_with_driver_counters_make_the_scrape_ask_the_driver() -> None:
    table = load_table()
    assert bind(table.drivers["ixgbe"], tuple(published_ixgbe())).needs_ethtool
    assert not bind(table.fallback, ("rx_drops",)).needs_ethtool
    assert not bind(table.drivers["virtio_net"], ()).needs_ethtool


# --- differences


def test_a_difference_does_not_step_back_but_plain_counters_may() -> None:
    names = ("rx_drops", "rx_xdp_drops", "tx_xdp_tx_drops")
    plan = bind(load_table().drivers["virtio_net"], names)
    before = losses(plan, (30, 0, 0), ZERO._replace(rx_dropped=35, tx_dropped=9))
    now = losses(plan, (33, 0, 0), ZERO._replace(rx_dropped=36, tx_dropped=8))
    assert Count("receive", "filter", 3) in now.drops, "five before: two frames came between the two reads"
    held = hold(plan, before, now)
    assert held.drops == (
        Count("receive", "other", 33),
        Count("receive", "filter", 5),
        Count("transmit", "other", 8),
    )
    assert held.errors == now.errors


# --- the table's own form


def test_every_entry_of_the_shipped_table_names_its_source() -> None:
    table = load_table()
    entries = [table.fallback, table.software, *table.kinds.values(), *table.drivers.values()]
    assert all(rules.source for rules in entries)


@pytest.mark.parametrize("ones", [2**31 - 1, 2**32 - 1, 2**48 - 1, 2**63 - 1, 2**64 - 1])
def test_a_counter_with_all_bits_set_counts_nothing_and_the_others_stand(ones: int) -> None:
    statistics = published_ixgbe()
    whole = computed("ixgbe", statistics, ZERO)
    without: dict[str, set[tuple[str, str]]] = {}
    for name in statistics:
        now = computed("ixgbe", statistics | {name: ones}, ZERO)
        assert set(now.drops) <= set(whole.drops)
        assert set(now.errors) <= set(whole.errors)
        without[name] = {count[:2] for count in (*whole.drops, *whole.errors)} - {
            count[:2] for count in (*now.drops, *now.errors)
        }
    assert without["rx_missed_errors"]
    assert not without["rx_packets"]
    assert computed("ixgbe", statistics | {"rx_missed_errors": ones + 1}, ZERO).drops != whole.drops, (
        "any other is a figure"
    )


def test_patterns_add_all_queues_and_only_those() -> None:
    table = parse_table(
        {"t": MINIMAL + "drivers: {x: {source: s, drops: {receive: {ring: 'rx-%d.drop (all) - [%d]: odd+name'}}}}"}
    )
    names = ("rx-0.drop (all)", "rx-10.drop (all)", "rx-x.drop (all)", "rx-1.drop (all)2", "[3]: odd+name")
    plan = bind(table.drivers["x"], names)
    assert losses(plan, (5, 7, 100, 100, 2), ZERO).drops == (Count("receive", "ring", 10),)


@pytest.mark.parametrize(
    ("drivers", "reason"),
    [
        ("x: {drops: {}}", "missing required field `source`"),
        ("x: {source: s, dropz: {}}", r"drivers\[...\].dropz: no such key"),
        ("x: {source: s, drops: {sideways: {ring: a}}}", "sideways"),
        ("x: {source: s, drops: {receive: {crc: a}}}", "crc"),
        ("x: {source: s, drops: {receive: {ring: 5}}}", "str"),
        ("x: {source: s, drops: {receive: {ring: rtnl.nonsense}}}", "statistics have no rtnl.nonsense"),
        (
            "x: {source: s, drops: {receive: {ring: a + a}}}",
            "receive.ring = 'a \\+ a': a counter is listed twice",
        ),
        ("x: {source: s, drops: {receive: {ring: ''}}}", "a counter's name is missing"),
        ("x: {source: s, port_wide: [a]}", "drivers.x.port_wide: a is not used in any rule"),
        ("x: {source: s, pause: {receive: a}, not_losses: {a: why}}", "not_losses.a = 'why': is used in a rule"),
        ("x: {source: s}\n  x: {source: s}", "duplicate key 'x'"),
    ],
)
def test_mistakes_in_a_table_are_named(drivers: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_table({"t": MINIMAL + "drivers:\n  " + drivers})


def test_links_without_a_driver_cannot_have_driver_counters() -> None:
    text = "fallback: {source: s, drops: {receive: {ring: rx_missed}}}\nsoftware: {source: s}\nkinds: {}\ndrivers: {}"
    with pytest.raises(ConfigError, match=r"fallback\.drops\.receive\.ring = .*: only rtnl counters"):
        parse_table({"t": text})
