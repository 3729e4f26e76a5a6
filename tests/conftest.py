"""For all tests: Hypothesis without a deadline, because a time is a matter of the machine's load and not of ours; and
one real Ceph cluster for all that ask for it."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from support.ceph_cluster import CephCluster, ceph_cluster, missing

settings.register_profile("plumbline", deadline=None)
settings.load_profile("plumbline")


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
