"""For all tests: Hypothesis without a deadline, because a time is a matter of the machine's load and not of ours; one
real Ceph cluster for all that ask for it; which of them may run beside each other, and which are tried twice; and no
program that a fresh machine would lack."""

import logging
import os
import re
import sys
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from support.ceph_cluster import CephCluster, ceph_cluster, missing
from support.programs import Started, known

settings.register_profile("plumbline", deadline=None)
settings.load_profile("plumbline")

ONE_AT_A_TIME = re.compile(r"tests/(e2e|integration)/")
"""They change the kernel's knobs, slow disks and measure time: two at once would disturb each other."""
BESIDE_THEM = re.compile(
    r"tests/(e2e/test_(\w+_in_a_browser|baseline_commands|misbehaving_tools|network_between_daemons|stubborn_files)"
    r"|integration/test_(alertmanager_real|compose_stack|demo_slow|guarded_prometheus|keeplist"
    r"|review|stack|cephtop_prometheus))\.py"
)
"""Of those, what only talks to servers and devices of its own, and mostly waits for them."""
LIVE = re.compile(r"tests/((e2e|integration)/|unit/test_(raw_)?canary(_hung)?\.py)")
"""What depends on this machine's disks and clock besides its own input; so does what needs root, wherever it stands."""
GIVING_WAY = 10
"""Of -20 to 19, a tenth of the share of what has 0."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """With ``-n 2 --dist loadfile``: one process has all that works on the machine; of the rest each file is whole."""
    return _ByFile(config, log)


class _ByFile(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        alone = ONE_AT_A_TIME.match(nodeid) and not BESIDE_THEM.match(nodeid)
        return "machine" if alone else nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs on the live machine is tried once more when it fails: another guest of the same hardware can hold its
    disk for seconds. A defect fails twice. Whatever is computed from given input has one try."""
    for item in items:
        if _live(item):
            item.add_marker(pytest.mark.flaky(reruns=1))


def _live(item: pytest.Item) -> bool:
    return bool(LIVE.match(item.nodeid)) or item.get_closest_marker("needs_root") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """What only computes gives way to what measures the machine beside it: promtool is minutes on all CPUs."""
    if os.geteuid() != 0:  # nobody else may take it back
        return (yield)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before if _live(item) else max(before, GIVING_WAY))
    try:
        return (yield)
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Nothing is hidden: what a second try passed is printed with its first failure."""
    tried = terminalreporter.getreports("rerun")
    if tried:
        terminalreporter.section("tried a second time")
    for report in tried:
        terminalreporter.write_sep("_", report.nodeid)
        terminalreporter.write_line(report.longreprtext)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A command that runs in this process sets logging up for itself: not for the tests after it."""
    root = logging.getLogger()
    level, before = root.level, set(root.handlers)
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler and handler not in before:  # pytest's own are others
            root.removeHandler(handler)


@pytest.fixture(scope="session")
def started_programs() -> tuple[Started, frozenset[str] | None]:
    started = Started()
    sys.addaudithook(started)  # stays until the process ends
    return started, known()


@pytest.fixture(autouse=True)
def _only_listed_programs(started_programs: tuple[Started, frozenset[str] | None]) -> Iterator[None]:
    """What a test starts, a fresh machine has: that is how a missing ``iperf3`` is seen where it is installed."""
    started, names = started_programs
    yield
    strange = started.strange(names or started.names)
    assert not strange, f"started {sorted(strange)}: list the package that brings it in requirements/debian-test.txt"


@pytest.fixture(scope="session")
def shared_ceph() -> Iterator[CephCluster]:
    """Started for the first test that asks, ended after the last; tests ask for ``ceph``."""
    absent = missing()
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed (Debian packages: requirements/debian-ceph.txt)")
    with ceph_cluster() as cluster:
        yield cluster


@pytest.fixture
def ceph(shared_ceph: CephCluster) -> Iterator[CephCluster]:
    """The real cluster, healthy; what a test broke is mended afterwards. Pools and users are the test's to remove."""
    yield shared_ceph
    shared_ceph.heal()
