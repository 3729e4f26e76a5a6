"""The shipped driver table: what each driver's counters come to; no known name is overlooked, none counted twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from plumbline.config.yaml import read_yaml
from plumbline.sources.net.drivers import (
    Count,
    DriverRules,
    Evidence,
    alternatives,
    bind,
    load_table,
    losses,
    matching,
    terms,
)
from plumbline.sources.net.links import LinkStats
from support.offenders import for_every

FIXTURES = Path(__file__).parents[3] / "fixtures"
TABLE = load_table()
ZERO = LinkStats(*[0] * 25)

CASES: dict[str, list[dict[str, Any]]] = {
    driver: cases
    for path in sorted((FIXTURES / "driver-cases").glob("*.yaml"))
    for driver, cases in read_yaml(path.read_text(), where=path.name).items()
}
NUMBERED = [(driver, number, case) for driver, cases in CASES.items() for number, case in enumerate(cases)]


def rows() -> Iterator[tuple[str, str, str, str]]:
    for line in (FIXTURES / "driver-names" / "names.tsv").read_text().splitlines()[1:]:
        driver, name, kind, scope = line.split("\t")
        yield driver, name, kind, scope


def forms(rules: DriverRules, family: str) -> Iterator[tuple[str, str, str]]:
    """Direction, cause and expression."""
    for direction, causes in getattr(rules, family).items():
        for cause, choices in causes.items() if "pause" not in family else [(family, causes)]:
            for form, _ in alternatives(choices):
                yield direction, cause, form


def added(rules: DriverRules, family: str) -> dict[str, set[str]]:
    """Names that count, with the causes they count to."""
    found: dict[str, set[str]] = {}
    for _, cause, form in forms(rules, family):
        for sign, name in terms(form):
            if sign == "+":
                found.setdefault(name.removesuffix("?"), set()).add(cause)
    return found


def same(pattern: str, name: str) -> bool:
    return pattern == name or bool(matching(pattern, [name.replace("%d", "0").replace("%s", "")]))


def as_mapping(counts: Iterable[Count]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for direction, cause, frames in counts:
        if cause:
            found.setdefault(direction, {})[cause] = frames
        else:
            found[direction] = frames
    return found


# --- each driver


@for_every(("driver", "number", "case"), NUMBERED, ids=lambda item: f"{item[0]}-{item[1]}")
def test_what_a_drivers_counters_come_to(driver: str, number: int, case: dict[str, Any]) -> None:
    names, values = tuple(case["ethtool"]), tuple(case["ethtool"].values())
    rtnl = ZERO._replace(**case["rtnl"])
    plan = bind(TABLE.drivers[driver], names, Evidence(names, values, rtnl))
    loss = losses(plan, values, rtnl)
    families = ("drops", "errors", "pause", "priority_pause")
    expected = {family: case["expected"].get(family, {}) for family in families}
    assert {
        "drops": as_mapping(loss.drops),
        "errors": as_mapping(loss.errors),
        "pause": as_mapping(loss.pause),
        "priority_pause": as_mapping(loss.priority_pause),
    } == expected


def test_every_driver_has_a_case() -> None:
    assert set(CASES) == set(TABLE.drivers)


@for_every(("driver", "number", "case"), NUMBERED, ids=lambda item: f"{item[0]}-{item[1]}")
def test_no_counter_counts_in_two_causes(driver: str, number: int, case: dict[str, Any]) -> None:
    names, values = tuple(case["ethtool"]), tuple(case["ethtool"].values())
    evidence = Evidence(names, values, ZERO._replace(**case["rtnl"]))
    for condition in (None, evidence):
        plan = bind(TABLE.drivers[driver], names, condition)
        for direction in ("receive", "transmit"):
            net: Counter[tuple[str, int]] = Counter()
            for cell in plan.drops + plan.errors:
                if cell.direction == direction:
                    net.update([("ethtool", index) for index in cell.ethtool_plus])
                    net.update([("rtnl", index) for index in cell.rtnl_plus])
                    net.subtract([("ethtool", index) for index in cell.ethtool_minus if cell.ethtool_plus])
            twice = [
                names[index] if side == "ethtool" else LinkStats._fields[index]
                for (side, index), n in net.items()
                if n > 1
            ]
            assert twice == []


# --- every known name


@for_every("driver", sorted({driver for driver, *_ in rows()}))
def test_every_known_name_is_used_or_left_out_with_a_reason(driver: str) -> None:
    rules = TABLE.drivers[driver]
    used = {
        name.removesuffix("?")
        for family in ("drops", "errors", "pause", "priority_pause")
        for *_, form in forms(rules, family)
        for _, name in terms(form)
    }
    forgotten = [
        name
        for owner, name, *_ in rows()
        if owner == driver and not any(same(one, name) for one in {*used, *rules.not_losses})
    ]
    assert forgotten == []
    assert all(rules.not_losses.values())


NEVER_DROPS = re.compile(
    r"rx_(crc|align|jabber|fragment|length|oversize|undersize|phy_symbol|csum|nobuf_event|buffer_pressure)"
    r"|.*(pause|pfc).*|fec_.*|link_.*|module_.*|pcie_.*|steering_.*|tx_ring_full|tx_timeout|irq_missed|doorbell_drop|hw_error|ratelimit"
)
BY_PRIORITY = {"rx_pfc_ena_frames_pri%d", "tx_pfc_ena_frames_pri%d", "mac_rx_pfc_pri%d_pkt_num"}
"""The driver has their sum."""
ONLY_PAUSE = re.compile(r"[rt]x_pause(_xon|_xoff)?")


@for_every("driver", sorted({driver for driver, *_ in rows()}))
def test_kinds_stay_apart(driver: str) -> None:
    families = ("drops", "errors", "pause", "priority_pause")
    counts = {family: added(TABLE.drivers[driver], family) for family in families}
    for owner, name, kind, _ in rows():
        if owner != driver:
            continue
        drops, errors, pause, priority = (
            {cause for one, causes in family.items() if same(one, name) for cause in causes}
            for family in counts.values()
        )
        if NEVER_DROPS.fullmatch(kind):
            assert not drops, name
        if kind == "rx_crc":
            assert errors <= {"crc"}, name
        if kind == "rx_filtered":
            assert drops <= {"filter"}, name
        if kind == "rx_fifo_overflow":
            assert drops <= {"fifo", "ring"}, name
        if not ONLY_PAUSE.fullmatch(kind):
            assert not pause, f"{name}: priority flow control and durations are no pause frames"
        assert bool(priority) == bool(re.fullmatch("[rt]x_pfc", kind)) or name in BY_PRIORITY, name


def test_where_the_review_of_the_source_found_other_than_the_collection() -> None:
    """Each of these looks like a ring loss by its name."""
    found = {
        (driver, name): {
            cause
            for one, causes in added(TABLE.drivers[driver], "drops").items()
            if same(one, name)
            for cause in causes
        }
        for driver, name, kind, _ in rows()
        if kind == "rx_ring_full"
    }
    assert {key: causes for key, causes in found.items() if causes != {"ring"}} == {
        ("mlx5_core", "dev_internal_queue_oob"): {"other"},  # queues inside the device
        ("i40e", "veb.rx_discards"): set(),  # the embedded switch
        ("bnx2x", "[%d]: rx_discards"): set(),  # parts of rx_discards
        ("tg3", "rxbds_empty"): set(),  # times, not frames
        ("be2net", "rx_drops_no_erx_descr"): {"fifo"},  # a queue of the card, not the port's ring
        ("ena", "queue_%d_rx_empty_rx_ring"): set(),  # times, not frames
        ("gve", "rx_no_buffers_posted[%d]"): set(),  # perhaps in rx_queue_drop_cnt
        ("amd-xgbe", "rx_buffer_unavailable"): set(),  # interrupts
        ("liquidio", "mac_rx_dma_drop"): {"filter"},  # the filter of destination MAC addresses
        ("st_gmac", "rx_buf_unav_irq"): set(),  # interrupts
    }


def test_names_that_count_a_whole_port_are_marked() -> None:
    """Only of drivers that can have several functions on one port, which is where the same frames show twice."""
    several = {"mlx5_core", "i40e", "ice", "bnx2x", "bnxt_en", "qede", "sfc", "hns3", "ionic", "hinic", "ixgbe"}
    for driver, name, _, scope in rows():
        rules = TABLE.drivers[driver]
        if driver in several and scope == "port":
            for family in ("drops", "errors"):
                for one in added(rules, family):
                    if same(one, name):
                        assert one in rules.port_wide, (driver, name)


# --- conditions


def mlx5(**rtnl: int) -> tuple[int, bool]:
    """The filter cause of a port with 100 port discards, and whether the kernel's habit is still open."""
    case = {**CASES["mlx5_core"][3]["ethtool"], "rx_discards_phy": 100}
    names, values, stats = tuple(case), tuple(case.values()), ZERO._replace(rx_missed_errors=1, **rtnl)
    plan = bind(TABLE.drivers["mlx5_core"], names, Evidence(names, values, stats))
    (count,) = [count for count in losses(plan, values, stats).drops if count[:2] == ("receive", "filter")]
    return count.frames, plan.undecided


def test_a_kernel_field_below_the_counter_proves_that_it_does_not_hold_it() -> None:
    assert mlx5(rx_dropped=99) == (99, False)


def test_without_proof_the_counter_is_taken_off_and_the_question_stays_open() -> None:
    assert mlx5(rx_dropped=100) == (0, True)
    assert mlx5(rx_dropped=130) == (30, True)


def test_without_evidence_nothing_is_proven() -> None:
    names = tuple(CASES["mlx5_core"][3]["ethtool"])
    assert bind(TABLE.drivers["mlx5_core"], names).undecided
    assert not bind(TABLE.drivers["mlx5_core"], ("rx_out_of_buffer",)).undecided, "a driver that has no such counter"
