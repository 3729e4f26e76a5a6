"""One collector, guarded."""

import hashlib
import logging
from collections.abc import Iterator

import pytest

from plumbline.core.histogram import HistogramValue
from plumbline.errors import ParseError, Unavailable
from plumbline.metrics.guard import GuardedCollector, SkipHook
from plumbline.metrics.spec import Kind, MetricSpec, Sample
from support.fake_collectors import Fake, fake

DROPS = MetricSpec("plumbline_nic_drops_total", Kind.COUNTER, "Packets dropped.", ("device", "cause"))
MTU = MetricSpec("plumbline_nic_mtu_bytes", Kind.GAUGE, "MTU.", ("device",))
LATENCY = MetricSpec("plumbline_canary_latency_seconds", Kind.HISTOGRAM, "Latency.", ("operation",))

LOG = logging.getLogger("test")


class Ticks:
    """A clock that moves a quarter of a second whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


def guarded(
    *rounds: list[Sample] | Exception, specs: tuple[MetricSpec, ...] = (DROPS, MTU, LATENCY)
) -> GuardedCollector:
    """A guarded collector that gives, or raises, one of ``rounds`` after the other."""
    left = iter(rounds)

    def collect(_skip: SkipHook) -> Iterator[Sample]:
        this = next(left)
        if isinstance(this, Exception):
            yield (MTU, ("half",), 1)
            raise this
        yield from this

    return GuardedCollector(fake("link", specs, collect), None, clock=Ticks(), logger=LOG)


def test_samples_become_families_in_the_order_of_the_specs_and_of_the_samples() -> None:
    guard = guarded([(MTU, ("b",), 9000), (DROPS, ("b", "ring"), 3), (MTU, ("a",), 1500)])
    health, families, _ = guard.run({})
    assert [(each.spec, each.labels, list(each.values)) for each in families] == [
        (DROPS, (("b", "ring"),), [3]),
        (MTU, (("b",), ("a",)), [9000, 1500]),
    ]
    assert (health.name, health.success, health.available, health.duration_s, health.reason) == (
        "link", True, True, 0.25, "",
    )  # fmt: skip


def test_a_collector_that_fails_half_way_gives_nothing() -> None:
    health, families, _ = guarded(ParseError("/proc/net/dev", "no colon", line=3)).run({})
    assert families == []
    assert (health.success, health.available, health.reason) == (False, True, "/proc/net/dev:3: no colon")


def test_unavailable_is_success_with_nothing_to_give() -> None:
    health, families, _ = guarded(Unavailable("no device reports pause parameters")).run({})
    assert families == []
    assert (health.success, health.available, health.reason) == (True, False, "no device reports pause parameters")


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ((DROPS, ("eth0",), 1), "label values ('eth0',) do not fit the labels ('device', 'cause')"),
        ((DROPS, ("eth0", "ring", "x"), 1), "label values"),
        ((MTU, (7,), 1), "label values (7,)"),
        ((MTU, ["eth0"], 1), "label values ['eth0']"),
        ((MTU, ("eth0",), None), "None is not a number"),
        ((MTU, ("eth0",), "1500"), "'1500' is not a number"),
        ((MTU, ("eth0",), HistogramValue((), (), 0, 0.0)), "is not a number"),
        ((LATENCY, ("read",), 1.0), "1.0 is not a histogram"),
        ((LATENCY, ("read",), HistogramValue((0.1, 0.2), (1,), 1, 0.1)), "is not a histogram with one count per edge"),
    ],
)
def test_a_wrong_sample_fails_its_collector(sample: Sample, reason: str) -> None:
    health, families, _ = guarded([(MTU, ("fine",), 1500), sample]).run({})
    assert families == []
    assert not health.success
    assert reason in health.reason


def test_a_sample_of_a_metric_that_is_not_declared_fails_the_collector() -> None:
    health, families, _ = guarded([(DROPS, ("a", "b"), 1)], specs=(MTU,)).run({})
    assert families == []
    assert health.reason == "ValueError: link does not declare plumbline_nic_drops_total"


def test_a_series_given_twice_fails_the_collector() -> None:
    health, families, _ = guarded([(MTU, ("a",), 1), (MTU, ("b",), 1), (MTU, ("a",), 2)]).run({})
    assert families == []
    assert health.reason == "ValueError: plumbline_nic_mtu_bytes: the series ('a',) appears twice"


def test_a_series_of_another_collector_fails_this_one() -> None:
    taken = {"plumbline_nic_mtu_bytes": {("a",)}}
    health, families, _ = guarded([(MTU, ("a",), 1), (DROPS, ("a", "b"), 1)]).run(taken)
    assert families == []
    assert health.reason == "ValueError: plumbline_nic_mtu_bytes('a',) also comes from another collector"
    assert taken == {"plumbline_nic_mtu_bytes": {("a",)}}


def test_truth_values_are_zero_and_one() -> None:
    _, families, _ = guarded([(MTU, ("a",), True), (MTU, ("b",), False)]).run({})
    assert [repr(value) for value in families[0].values] == ["1", "0"]


def test_undecodable_names_stay_apart_and_become_valid_text() -> None:
    names = [
        b"\xff".decode("utf-8", "surrogateescape"),
        b"\xfe".decode("utf-8", "surrogateescape"),
        "\ud800",
        "é\u2028",
    ]
    _, families, _ = guarded([(MTU, (name,), 1) for name in names]).run({})
    assert families[0].labels == (("\\xff",), ("\\xfe",), ("\\ud800",), ("é\\u2028",))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("pool\nseverity: page", "pool\\nseverity: page"),
        ("a\r\x1b[2J\x00", "a\\r\\x1b[2J\\x00"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("ze\u200bro", "ze\\u200bro"),
        ("größe 日本", "größe 日本"),
    ],
)
def test_a_name_can_neither_add_a_line_nor_reorder_a_text(name: str, shown: str) -> None:
    _, families, _ = guarded([(MTU, (name,), 1)]).run({})
    assert families[0].labels == ((shown,),)


def test_long_names_are_cut_and_stay_apart() -> None:
    _, families, _ = guarded([(MTU, ("x" * 200_000 + end,), 1) for end in "ab"]).run({})
    ((first,), (second,)) = families[0].labels
    assert first[:242] == second[:242] == "x" * 242
    assert first[242:] == "…~" + hashlib.sha256(b"x" * 200_000 + b"a").hexdigest()[:12]
    assert second[242:] == "…~" + hashlib.sha256(b"x" * 200_000 + b"b").hexdigest()[:12]


def test_a_name_that_is_another_ones_escape_does_not_fail_the_collector() -> None:
    _, families, _ = guarded([(MTU, ("a\n",), 1), (MTU, ("a\\n",), 2)]).run({})
    checksum = hashlib.sha256(b"a\n").hexdigest()[:12]
    assert families[0].labels == ((f"a\\n…~{checksum}",), ("a\\n",))


def test_a_stranger_can_not_make_any_number_of_series() -> None:
    health, families, _ = guarded([(MTU, (str(number),), 1) for number in range(100_001)]).run({})
    assert families == []
    assert health.reason == "plumbline_nic_mtu_bytes: 100001 series, more than 100000; none is shown"


def test_labels_are_the_same_object_while_the_series_stay() -> None:
    first, same, other = [(MTU, ("a",), 1)], [(MTU, ("a",), 2)], [(MTU, ("b",), 2)]
    guard = guarded(first, same, other)
    labels = [guard.run({}).families[0].labels for _ in range(3)]
    assert labels[0] is labels[1]
    assert labels[2] == (("b",),)


def test_wrong_labels_are_noticed_when_they_come_later() -> None:
    guard = guarded([(MTU, ("a",), 1)], [(MTU, ("a",), 1), (MTU, ("a",), 1)], [(MTU, ("a",), 1)])
    assert [guard.run({})[0].success for _ in range(3)] == [True, False, True]


def test_changes_of_state_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    broken, absent = ParseError("/proc/x", "bad"), Unavailable("no driver")
    guard = guarded([], broken, broken, RuntimeError("bug"), [], [], absent, absent, [])
    with caplog.at_level(logging.DEBUG, "test"):
        for _ in range(9):
            guard.run({})
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "collector link: /proc/x: bad"),
        ("ERROR", "collector link: RuntimeError: bug"),
        ("INFO", "collector link: works again"),
        ("DEBUG", "collector link: not available: no driver"),
        ("DEBUG", "collector link: works again"),
    ]
    assert caplog.records[0].exc_info is None
    assert caplog.records[1].exc_info is not None  # a mistake of ours comes with its traceback


def skipping(*items: tuple[str, str]) -> Fake:
    def collect(skip: SkipHook) -> Iterator[Sample]:
        for item, reason in items:
            skip(item, reason)
        return iter(())

    return fake("ethtool", (MTU,), collect, skip_reasons=("malformed", "vanished"))


def test_skipped_items_are_counted_by_reason_and_logged_while_new(caplog: pytest.LogCaptureFixture) -> None:
    guard = GuardedCollector(skipping(("eth0", "vanished"), ("eth1", "vanished")), None, clock=Ticks(), logger=LOG)
    with caplog.at_level(logging.DEBUG, "test"):
        guard.run({})
        health = guard.run({}).health
    assert health.skipped == {"malformed": 0, "vanished": 4}
    assert [record.getMessage() for record in caplog.records] == [
        "collector ethtool: eth0 left out: vanished",
        "collector ethtool: eth1 left out: vanished",
    ]


def test_reasons_do_not_grow_without_bound() -> None:
    guard = GuardedCollector(skipping(*((f"d{i}", f"reason {i}") for i in range(100))), None, clock=Ticks(), logger=LOG)
    health = guard.run({}).health
    assert len(health.skipped) == 17
    assert health.skipped["other"] == 100 - 14


def test_a_successor_goes_on_counting() -> None:
    before = GuardedCollector(skipping(("eth0", "vanished")), None, clock=Ticks(), logger=LOG)
    before.run({})
    after = GuardedCollector(skipping(("eth0", "vanished")), None, clock=Ticks(), logger=LOG, before=before)
    assert after.run({})[0].skipped == {"malformed": 0, "vanished": 2}
