"""Collectors that do not answer: the page comes without them, in time, and they are back when they have answered."""

import logging
import re
import threading
import time
from collections.abc import Iterator

import pytest

from plumbline.core.stall import Stall
from plumbline.metrics.exposition import Exposition, Snapshot
from plumbline.metrics.guard import GuardedCollector, SkipHook
from plumbline.metrics.scrape import AT_LEAST_S, Collecting
from plumbline.metrics.spec import Kind, MetricSpec, Sample, Samples
from support.daemon import eventually
from support.fake_collectors import Fake, fake
from support.starvation import no_cpu_to_spare

MTU = MetricSpec("plumbline_nic_mtu_bytes", Kind.GAUGE, "MTU.", ("device",))
RINGS = MetricSpec("plumbline_nic_ring_entries", Kind.GAUGE, "Ring.", ("device", "ring"))
SHARED = MetricSpec("plumbline_probe_success", Kind.GAUGE, "Last run.", ("probe",))
LOG = logging.getLogger("test")
PAGE_S = 2.0
"""Longer than any stall of a busy machine, so that only what hangs is left behind."""


class Hanging:
    """A collector whose read waits in the kernel until it is let go."""

    def __init__(self, name: str, *samples: Sample, spec: MetricSpec = RINGS) -> None:
        self.let_go = threading.Event()
        self.asked = 0
        self.collector = fake(name, (spec,), self._collect, skip_reasons=())
        self._samples = samples

    def _collect(self, _skip: SkipHook) -> Samples:
        self.asked += 1
        assert self.let_go.wait(60)
        return self._samples


@pytest.fixture
def ring() -> Iterator[Hanging]:
    hanging = Hanging("ring", (RINGS, ("eth0", "receive"), 512))
    yield hanging
    hanging.let_go.set()
    eventually(lambda: not collecting_threads())  # its last words belong to this test's log, not to the next one's


def exposition(*collectors: Fake) -> Exposition:
    return Exposition(collectors, None, clock=time.monotonic, logger=LOG, page_within_s=PAGE_S)


def quick(name: str, *samples: Sample, spec: MetricSpec = MTU) -> Fake:
    return fake(name, (spec,), lambda _skip: samples, skip_reasons=())


def states(snapshot: Snapshot) -> dict[str, bool]:
    return {each.name: each.success for each in snapshot.collectors}


def names(snapshot: Snapshot) -> set[str]:
    return {family.spec.name for family in snapshot.families}


def eventually_whole(page: Exposition) -> Snapshot:
    def whole() -> Snapshot | None:
        return snapshot if all(states(snapshot := page.scrape()).values()) else None

    snapshot: Snapshot = eventually(whole)
    return snapshot


def collecting_threads() -> int:
    return sum(each.name == "collect" for each in threading.enumerate())


def test_the_rest_is_there_and_the_silent_one_says_so(ring: Hanging) -> None:
    page = exposition(quick("link", (MTU, ("eth0",), 1500)), ring.collector, quick("sysctl", spec=SHARED))

    snapshot = page.scrape()

    assert states(snapshot) == {"link": True, "ring": False, "sysctl": True}
    assert "plumbline_nic_mtu_bytes" in names(snapshot)
    assert "plumbline_nic_ring_entries" not in names(snapshot)
    (silent,) = [each for each in snapshot.collectors if not each.success]
    assert silent.reason.startswith("no answer for ")
    assert silent.available
    assert silent.duration_s > PAGE_S / 2  # it begins a little after the page


def test_it_is_asked_once_and_costs_the_next_pages_nothing(ring: Hanging, caplog: pytest.LogCaptureFixture) -> None:
    page = exposition(ring.collector, quick("link", (MTU, ("eth0",), 1500)))
    page.scrape()
    began = time.monotonic()
    for _ in range(50):
        assert states(page.scrape()) == {"ring": False, "link": True}

    assert time.monotonic() - began < 50 * PAGE_S
    assert ring.asked == 1
    assert eventually(lambda: collecting_threads() == 1)
    (said,) = caplog.messages
    why = (
        r"a read hangs in the kernel( \(state S in \w+\))?; see dmesg|it waits for another thread of the daemon \(.+\)"
    )
    assert re.fullmatch(rf"collector ring: no answer for \d s: ({why})", said)


def test_on_a_host_short_of_cpu_nothing_hangs_and_the_rest_is_not_begun(caplog: pytest.LogCaptureFixture) -> None:
    asked = 0
    with no_cpu_to_spare() as work:

        def compute(_skip: SkipHook) -> Samples:
            nonlocal asked
            asked += 1
            if asked == 1:
                work()
            return ((MTU, ("eth0",), 1500),)

        page = exposition(fake("link", (MTU,), compute, skip_reasons=()), quick("sysctl", spec=SHARED))
        starved = page.scrape()
        assert collecting_threads() == 1

    reasons = {each.name: each.reason for each in starved.collectors}
    short = r"the host is short of CPU: it waited \d\.\d of \d\.\d s for one"
    assert re.fullmatch(rf"no answer for \d s: {short}", reasons["link"])
    assert re.fullmatch(rf"no time left to ask: {short}", reasons["sysctl"])
    assert [message for message in caplog.messages if "hangs" in message] == []
    assert states(eventually_whole(page)) == {"link": True, "sysctl": True}


def test_a_late_collector_whose_thread_has_ended_since_did_not_hang(ring: Hanging) -> None:
    """As seen in a virtual machine with little CPU: when the page was put together, the kernel knew no such thread."""
    looks = iter([Stall("R", "", 0.0, 0.0)])
    ended = Stall("", "", None, None)
    page = Collecting(clock=time.monotonic, page_within_s=AT_LEAST_S, stall=lambda _thread: next(looks, ended))
    collectors = ring.collector, quick("sysctl", spec=SHARED)
    guards = [GuardedCollector(each, None, clock=time.monotonic, logger=LOG) for each in collectors]

    reasons = [each.health.reason for each in page.run(guards, ())]

    assert [reason.split(": ")[1] for reason in reasons] == ["the host is short of CPU"] * 2


def test_the_page_waits_for_a_host_that_is_short_of_cpu() -> None:
    """The collector goes on when its thread is looked at, which is when the page's first time is up."""
    goes_on = threading.Event()

    def starved(_thread: int) -> Stall:
        goes_on.set()
        return Stall("R", "", 0.0, 0.0)

    def compute(_skip: SkipHook) -> Samples:
        assert goes_on.wait(60)
        return ((MTU, ("eth0",), 1500),)

    page = Collecting(clock=time.monotonic, page_within_s=PAGE_S, stall=starved)
    collectors = fake("link", (MTU,), compute, skip_reasons=()), quick("sysctl", spec=SHARED)
    guards = [GuardedCollector(each, None, clock=time.monotonic, logger=LOG) for each in collectors]
    assert [each.health.success for each in page.run(guards, ())] == [True, True]


def test_it_is_back_when_it_has_answered(ring: Hanging, caplog: pytest.LogCaptureFixture) -> None:
    page = exposition(ring.collector)
    page.scrape()
    ring.let_go.set()
    with caplog.at_level(logging.INFO):
        snapshot = eventually_whole(page)

    assert "plumbline_nic_ring_entries" in names(snapshot)
    assert eventually(lambda: collecting_threads() == 0)
    assert caplog.messages.count("collector ring: works again") == 1


def test_a_reload_does_not_ask_it_again(ring: Hanging) -> None:
    page = exposition(ring.collector)
    page.scrape()
    page.replace([ring.collector], None)

    assert states(page.scrape()) == {"ring": False}
    assert ring.asked == 1
    ring.let_go.set()
    eventually_whole(page)


def test_all_of_them_silent_is_a_page_in_time() -> None:
    specs = [MetricSpec(f"plumbline_nic_{index}_count", Kind.GAUGE, "A number.", ()) for index in range(12)]
    hanging = [Hanging(f"collector{index}", spec=spec) for index, spec in enumerate(specs)]
    page = exposition(*(each.collector for each in hanging))
    began = time.monotonic()

    snapshot = page.scrape()

    assert not any(states(snapshot).values())
    waited_s = sum(max(AT_LEAST_S, PAGE_S / 2**round) for round in range(12))
    assert waited_s <= time.monotonic() - began < 10
    assert [each.asked for each in hanging] == [1] * 12
    for each in hanging:
        each.let_go.set()
    eventually_whole(page)


def test_a_late_answer_claims_no_series_of_a_page_it_is_not_on() -> None:
    """Both have the same series: on the first page only the second one's; as soon as the first is back, it fails."""
    late = Hanging("probe", (SHARED, ("fio",), 1), spec=SHARED)
    page = exposition(late.collector, quick("canary", (SHARED, ("fio",), 0), spec=SHARED))

    assert states(page.scrape()) == {"probe": False, "canary": True}
    late.let_go.set()
    assert eventually(lambda: states(page.scrape()) == {"probe": True, "canary": False})


def test_without_a_thread_to_spare_it_is_collected_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert states(exposition(quick("link", (MTU, ("eth0",), 1500))).scrape()) == {"link": True}


def test_a_mistake_that_is_no_exception_reaches_who_asked() -> None:
    def interrupt(_skip: SkipHook) -> Samples:
        raise KeyboardInterrupt

    page = exposition(fake("link", (MTU,), interrupt, skip_reasons=()))
    with pytest.raises(KeyboardInterrupt):
        page.scrape()
    with pytest.raises(KeyboardInterrupt):
        page.scrape()
