"""All collectors together: one broken, names that clash, requests at the same time, a reload."""

import logging
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from plumbline import __version__
from plumbline.metrics.exposition import Exposition, ScrapeTimeout, SkipHook, Snapshot
from plumbline.metrics.snapshot import Readings
from plumbline.metrics.spec import Kind, MetricSpec, Sample, Samples
from support.fake_collectors import Fake, fake

SUCCESS = MetricSpec("plumbline_probe_success", Kind.GAUGE, "Last run.", ("probe",))
SUCCESS_AGAIN = MetricSpec("plumbline_probe_success", Kind.GAUGE, "Last run.", ("probe",))
MTU = MetricSpec("plumbline_nic_mtu_bytes", Kind.GAUGE, "MTU.", ("device",))

LOG = logging.getLogger("test")


def giving(name: str, *samples: Sample, specs: tuple[MetricSpec, ...] = ()) -> Fake:
    return fake(name, specs or tuple({sample[0] for sample in samples}), lambda _skip: samples, skip_reasons=())


def exposition(*collectors: Fake, wait_s: float = 5.0) -> Exposition:
    return Exposition(collectors, None, clock=lambda: 7.0, logger=LOG, wait_s=wait_s)


def figures(snapshot: Snapshot) -> dict[str, dict[tuple[str, ...], object]]:
    return {family.spec.name: dict(zip(family.labels, family.values, strict=True)) for family in snapshot.families}


def fail(_skip: SkipHook) -> Samples:
    raise OSError(5, "Input/output error")


def test_one_broken_collector_leaves_the_rest() -> None:
    broken = fake("disk", (SUCCESS,), fail, skip_reasons=("vanished",))
    snapshot = exposition(broken, giving("link", (MTU, ("eth0",), 1500))).scrape()
    assert figures(snapshot) == {
        "plumbline_build_info": {(__version__, platform.python_version()): 1},
        "plumbline_collector_available": {("disk",): 1, ("link",): 1},
        "plumbline_collector_duration_seconds": {("disk",): 0.0, ("link",): 0.0},
        "plumbline_collector_items_skipped_total": {("disk", "vanished"): 0},
        "plumbline_collector_success": {("disk",): 0, ("link",): 1},
        "plumbline_nic_mtu_bytes": {("eth0",): 1500},
    }
    assert [health.reason for health in snapshot.collectors] == ["OSError: [Errno 5] Input/output error", ""]


def test_a_snapshot_carries_the_readings_its_families_were_made_of() -> None:
    link, ring = giving("link", (MTU, ("eth0",), 1500)), fake("ring", (MTU,), fail)
    unchecked = giving("pause", (MTU, ("eth0", "too many"), 1))
    snapshot = exposition(link, ring, unchecked).scrape()
    assert snapshot.readings == Readings.of(((MTU, ("eth0",), 1500),))


def test_the_self_metrics_are_there_before_anything_happened() -> None:
    snapshot = exposition(fake("link", (MTU,), lambda _skip: ())).scrape()
    assert figures(snapshot)["plumbline_collector_items_skipped_total"] == {
        ("link", "malformed"): 0,
        ("link", "unreadable"): 0,
        ("link", "vanished"): 0,
    }


def test_families_are_sorted_by_name_and_shared_by_collectors() -> None:
    snapshot = exposition(
        giving("probe", (SUCCESS, ("fio",), 1)), giving("canary", (SUCCESS_AGAIN, ("canary",), 0), (MTU, ("a",), 1))
    ).scrape()
    names = [family.spec.name for family in snapshot.families]
    assert names == sorted(names)
    assert figures(snapshot)["plumbline_probe_success"] == {("fio",): 1, ("canary",): 0}


def test_the_second_collector_with_the_same_series_fails() -> None:
    snapshot = exposition(
        giving("probe", (SUCCESS, ("x",), 1)), giving("canary", (MTU, ("a",), 1), (SUCCESS_AGAIN, ("x",), 0))
    ).scrape()
    assert figures(snapshot)["plumbline_probe_success"] == {("x",): 1}
    assert figures(snapshot)["plumbline_collector_success"] == {("probe",): 1, ("canary",): 0}
    assert "plumbline_nic_mtu_bytes" not in figures(snapshot)


def test_unlisted_collectors_have_no_health_series() -> None:
    reload_ok = MetricSpec("plumbline_config_last_reload_successful", Kind.GAUGE, "Of the last reload.")
    own = fake("config", (reload_ok,), lambda _skip: [(reload_ok, (), 1)], listed=False)
    snapshot = exposition(own).scrape()
    assert figures(snapshot).keys() == {"plumbline_build_info", "plumbline_config_last_reload_successful"}


@pytest.mark.parametrize(
    ("specs", "reason"),
    [
        ((("plumbline_x", Kind.GAUGE, "A."), ("plumbline_x", Kind.GAUGE, "B.")), "c1 declares plumbline_x differently"),
        (
            (("plumbline_x", Kind.GAUGE, "A."), ("plumbline_x_total", Kind.COUNTER, "A.")),
            "would both write plumbline_x",
        ),
        (
            (("plumbline_x", Kind.HISTOGRAM, "A."), ("plumbline_x_count", Kind.GAUGE, "A.")),
            "would both write plumbline_x_count",
        ),
        ((("plumbline_build_info", Kind.GAUGE, "A."),), "declares plumbline_build_info differently"),
    ],
)
def test_clashing_names_are_refused(specs: tuple[tuple[str, Kind, str], ...], reason: str) -> None:
    collectors = [giving(f"c{i}", specs=(MetricSpec(*spec),)) for i, spec in enumerate(specs)]
    with pytest.raises(ValueError, match=reason):
        exposition(*collectors)


def test_a_metric_declared_twice_by_one_collector_is_refused() -> None:
    with pytest.raises(ValueError, match="probe declares a metric twice"):
        exposition(giving("probe", specs=(SUCCESS, SUCCESS_AGAIN)))


def test_two_collectors_of_one_name_are_refused_and_the_old_ones_stay() -> None:
    exp = exposition(giving("link", (MTU, ("a",), 1)))
    with pytest.raises(ValueError, match="2 collectors are named disk"):
        exp.replace([giving("disk"), giving("disk")], None)
    assert figures(exp.scrape())["plumbline_nic_mtu_bytes"] == {("a",): 1}


def test_specs_are_known_without_collecting() -> None:
    exp = exposition(fake("disk", (SUCCESS,), fail))
    assert SUCCESS in exp.specs
    assert [spec.name for spec in exp.specs] == sorted(spec.name for spec in exp.specs)


def counting_skips(name: str) -> Fake:
    def collect(skip: SkipHook) -> Iterator[Sample]:
        skip("eth0", "vanished")
        return iter(())

    return fake(name, (MTU,), collect, skip_reasons=("vanished",))


def test_a_reload_keeps_the_counters_even_of_a_collector_that_was_off_for_a_while() -> None:
    exp = exposition(counting_skips("link"))
    exp.scrape()
    exp.replace([counting_skips("other")], None)
    assert figures(exp.scrape())["plumbline_collector_items_skipped_total"] == {("other", "vanished"): 1}
    exp.replace([counting_skips("link")], None)
    assert figures(exp.scrape())["plumbline_collector_items_skipped_total"] == {("link", "vanished"): 2}


class Gate:
    """A collector that waits until it is let go, and counts its runs."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()
        self.runs = 0

    def collect(self, _skip: SkipHook) -> Samples:
        self.runs += 1
        self.entered.set()
        assert self.leave.wait(10)
        return [(MTU, ("run",), self.runs)]


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    result: list[object] = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    return thread, result


def has_asked(thread: threading.Thread) -> bool:
    """Whether it is inside :class:`plumbline.core.single_flight.Shared`, past noting the time of its question."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and "asked" in frame.f_locals


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_requests_that_come_during_a_collection_share_the_next() -> None:
    """Not the one under way: it may have read what was changed before they asked."""
    gate = Gate()
    exp = exposition(fake("link", (MTU,), gate.collect))
    threads = [in_thread(exp.scrape)]
    assert gate.entered.wait(5)
    threads += [in_thread(exp.scrape) for _ in range(5)]
    wait_until(lambda: all(has_asked(thread) for thread, _ in threads[1:]))
    gate.leave.set()
    for thread, _ in threads:
        thread.join(5)
    (first, *others) = [result[0] for _, result in threads]
    assert gate.runs == 2
    assert first is not others[0]
    assert all(snapshot is others[0] for snapshot in others)
    assert exp.scrape() is not others[0]
    assert gate.runs == 3


def test_waiting_for_another_collection_is_bounded() -> None:
    gate = Gate()
    exp = exposition(fake("link", (MTU,), gate.collect), wait_s=0.02)
    thread, result = in_thread(exp.scrape)
    assert gate.entered.wait(5)
    with pytest.raises(ScrapeTimeout, match=r"running for more than 0\.02 s"):
        exp.scrape()
    gate.leave.set()
    thread.join(5)
    assert isinstance(result[0], Snapshot)
    assert gate.runs == 1


def test_a_reload_during_a_collection_does_not_disturb_it() -> None:
    gate = Gate()
    exp = exposition(fake("link", (MTU,), gate.collect))
    thread, result = in_thread(exp.scrape)
    assert gate.entered.wait(5)
    exp.replace([giving("probe", (SUCCESS, ("p",), 1))], None)
    gate.leave.set()
    thread.join(5)
    during = result[0]
    assert isinstance(during, Snapshot)
    assert figures(during)["plumbline_collector_success"] == {("link",): 1}
    assert figures(exp.scrape())["plumbline_collector_success"] == {("probe",): 1}


def test_an_interrupted_collection_does_not_block_the_next() -> None:
    rounds = iter([KeyboardInterrupt(), None])

    def collect(_skip: SkipHook) -> Samples:
        this = next(rounds)
        if this:
            raise this
        return [(MTU, ("a",), 1)]

    exp = exposition(fake("link", (MTU,), collect))
    with pytest.raises(KeyboardInterrupt):
        exp.scrape()
    assert figures(exp.scrape())["plumbline_nic_mtu_bytes"] == {("a",): 1}


def test_process_metrics_that_fail_are_logged_once_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def process() -> Iterator[object]:
        raise UnboundLocalError("max_fds")

    exp = Exposition((), None, clock=lambda: 0.0, logger=LOG, process=process)  # type: ignore[arg-type]
    assert exp.scrape().foreign == ()
    assert exp.scrape().foreign == ()
    assert [record.getMessage() for record in caplog.records] == ["process metrics: UnboundLocalError: max_fds"]
