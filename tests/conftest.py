"""For all tests: Hypothesis without a deadline, because a time is a matter of the machine's load and not of ours; one
real Ceph cluster for all that ask for it; and which of them may run beside each other."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from support.ceph_cluster import CephCluster, ceph_cluster, missing

settings.register_profile("plumbline", deadline=None)
settings.load_profile("plumbline")

HERE = Path(__file__).parent
ONE_AT_A_TIME = frozenset({"e2e", "integration"})
"""They change the kernel's knobs, slow disks and measure time: two at once would disturb each other."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """With ``-n 2 --dist loadgroup``: one process has all that works on the machine, the other the rest."""
    for item in items:
        place = item.path.relative_to(HERE)
        group = "machine" if place.parts[0] in ONE_AT_A_TIME else str(place)
        item.add_marker(pytest.mark.xdist_group(group))


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
