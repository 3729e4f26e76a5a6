"""For all tests: Hypothesis without a deadline, because a time is a matter of the machine's load and not of ours; one
real Ceph cluster for all that ask for it in the same process; real mounts and disks; which of them may run beside each
other, in which order, and which are tried twice; and no program that a fresh machine would lack."""

import contextlib
import logging
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from support.bindfs import Fuse
from support.ceph_cluster import CephCluster, ceph_cluster, missing
from support.filesystems import Mounts, skip_without_root
from support.loops import Loops
from support.programs import Started, known

settings.register_profile("plumbline", deadline=None)
settings.load_profile("plumbline")
# promtool and Prometheus live for seconds in tests: they need not collect garbage as thriftily as a server
os.environ.setdefault("GOGC", "400")
# daemons of tests are found by the tests that ask for it alone
os.environ["RUNTIME_DIRECTORY"] = ""

ON_THE_MACHINE = re.compile(r"tests/(e2e|integration)/")
"""They change the kernel's knobs, slow disks and measure time: two at once would disturb each other."""
OF_ITS_NETWORK = re.compile(
    r"tests/(e2e/test_(busy|check|endurance|hostile_host|hotplug)"
    r"|integration/test_(network_\w+|knobs_live|kernel_live|check_of_this_machine))\.py"
)
"""Of those, what works on ports and the settings of the receive path, and who reads them: disks hardly notice it."""
BESIDE_THEM = re.compile(
    r"tests/(e2e/test_(\w+_in_a_browser|baseline_commands|misbehaving_tools|network_between_daemons|stubborn_files"
    r"|bad_starts|baselines|broken_hosts|capabilities|daemon|files_that_block|first_page|osd_sockets|reload"
    r"|systemd_unit|web)"
    r"|integration/test_(alertmanager_real|notifications|compose_stack|demo_slow|guarded_prometheus|keeplist"
    r"|pci_of_this_machine|queues_of_this_machine|review|stack|cephtop_prometheus"
    r"|ceph_\w+|osd_\w+|(rados|rbd)_probes|librados|probe_run_ceph|s3_rgw|capacity_real|dashboards_live|cephadm_keys))\.py"
)
"""Of all those, what only talks to servers, clusters and devices of its own, and mostly waits for them."""
LONGEST_FIRST = (
    "tests/integration/test_demo_slow.py",
    "tests/integration/test_dashboards_live.py",
    "tests/integration/test_rbd_probes.py",
    "tests/integration/test_rados_probes.py",
    "tests/integration/test_ceph_guard.py",
    "tests/integration/test_capacity_real.py",
    "tests/rules/test_rules.py",
    "tests/integration/test_review.py",
    "tests/integration/test_alertmanager_real.py",
    "tests/rules/test_mutation.py",
    "tests/rules/test_ceph_layer.py",
    "tests/rules/",
)
"""Beginnings of paths; the others follow as they were collected. A long file that begins last keeps all waiting."""
LOOKED_FOR_IN = {
    "ceph": ("tests/integration/",),
    "long": (
        "tests/e2e/",
        "tests/integration/",
        "tests/rules/",
        "tests/attack/",
        "tests/unit/config/test_calendars.py",
    ),
}
"""Mark → folders that its target collects: all of them take half a minute, in each process."""
LIVE = re.compile(r"tests/((e2e|integration)/|unit/probes/canary/test_(raw_)?canary(_hung)?\.py)")
"""What depends on this machine's disks and clock besides its own input; so does what needs root, wherever it stands."""
GIVING_WAY = 10
"""Of -20 to 19, a tenth of the share of what has 0."""
STARTS = 2
"""Of the shared cluster in one process, when it does not become healthy."""
FAILED_STARTS = pytest.StashKey[list[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    """A name that is not text must not end the run: xdist sends reports as UTF-8."""
    return _as_text((yield))


def _as_text(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_as_text(key): _as_text(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(map(_as_text, value))
    return value


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """With ``-n N --dist loadfile --no-loadscope-reorder``: one process begins with all that works on the machine's
    disks, another with what works on its network; of the rest each file is whole."""
    return _ByFile(config, log)


class _ByFile(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _lane(nodeid) or nodeid.partition("::")[0]


def _lane(nodeid: str) -> str:
    """What goes one after the other; empty for what may run beside anything."""
    if not ON_THE_MACHINE.match(nodeid) or BESIDE_THEM.match(nodeid):
        return ""
    return "network" if OF_ITS_NETWORK.match(nodeid) else "disks"


def _rank(item: pytest.Item) -> int:
    """What comes first: the machine's lanes, the longest files, all others."""
    if _lane(item.nodeid):
        return -1
    return next((n for n, file in enumerate(LONGEST_FIRST) if item.nodeid.startswith(file)), len(LONGEST_FIRST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs on the live machine is tried once more when it fails: another guest of the same hardware can hold its
    disk for seconds. A defect fails twice. Whatever is computed from given input has one try."""
    for item in items:
        if _live(item):
            item.add_marker(pytest.mark.flaky(reruns=1))
        for mark, folders in LOOKED_FOR_IN.items():
            if item.get_closest_marker(mark) and not item.nodeid.startswith(folders):
                raise pytest.UsageError(f"{item.nodeid}: the Makefile looks for the mark {mark} in {folders} alone")
    items.sort(key=_rank)


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


@pytest.fixture(scope="module")
def private_files() -> Iterator[None]:
    """What the tests of a file write is readable for them alone, as files of secrets must be."""
    before = os.umask(0o077)
    yield
    os.umask(before)


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


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[Mounts]:
    """Real file systems, unmounted after the test. Name it before the fixture of what keeps files open there."""
    skip_without_root("mounts file systems")
    made = Mounts(tmp_path)
    yield made
    made.close()


@pytest.fixture
def loops(tmp_path: Path) -> Iterator[Loops]:
    """Real block devices, gone after the test."""
    skip_without_root("makes loop devices")
    made = Loops(tmp_path)
    yield made
    made.close()


@pytest.fixture
def fuse(tmp_path: Path) -> Iterator[Fuse]:
    """A mount that can hang and die; gone after the test."""
    mounted = Fuse(tmp_path)
    yield mounted
    mounted.close()


@pytest.fixture(scope="session")
def shared_ceph(request: pytest.FixtureRequest) -> Iterator[CephCluster]:
    """Started for the first test of this process that asks, ended after the last; tests ask for ``ceph``."""
    absent = missing()
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed (Debian packages: requirements/debian-ceph.txt)")
    failed = request.config.stash.setdefault(FAILED_STARTS, [])
    if len(failed) >= STARTS:  # every test and its second try would wait for another
        pytest.fail(f"no Ceph cluster in {STARTS} starts, the last: {failed[-1]}", pytrace=False)
    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(ceph_cluster())
        except Exception as error:
            failed.append(str(error))
            raise
        yield cluster


@pytest.fixture
def ceph(shared_ceph: CephCluster) -> Iterator[CephCluster]:
    """The real cluster, healthy; what a test broke is mended afterwards. Pools and users are the test's to remove."""
    shared_ceph.must_be_whole()
    yield shared_ceph
    shared_ceph.heal()
