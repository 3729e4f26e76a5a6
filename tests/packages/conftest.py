"""The packages of `make packages`, and the hosts they are installed on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy.packages.project import RELEASES, project_version

from support.debian_host import MINIMAL, SERVER, SUITE, DebianHost, debian_host, missing
from support.programs import need

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def deb() -> Path:
    """What `make packages` built for the hosts' release."""
    found = list((ROOT / "dist").glob(f"plumbline_{RELEASES[SUITE].version(project_version())}_*.deb"))
    if not found:
        pytest.skip(f"there is no package for {SUITE} in dist/: make test-packages builds it")
    return found[0]


@pytest.fixture(scope="session")
def rpm() -> Path:
    """What `make packages` built where rpmbuild is."""
    need("rpm")
    found = sorted((ROOT / "dist").glob("plumbline-*.rpm"))
    if len(found) != 1:
        pytest.skip("there is no RPM, or more than one, in dist/: make test-packages SUITE=bookworm builds it")
    return found[0]


@pytest.fixture
def minimal() -> Iterator[DebianHost]:
    """A bare Debian, a chroot with this machine's network: neither Python nor systemd."""
    if reason := missing():
        pytest.skip(reason)
    with debian_host(MINIMAL, systemd=False) as host:
        yield host


@pytest.fixture
def machine() -> Iterator[DebianHost]:
    """A running Debian with systemd, whose network leads nowhere."""
    if reason := missing():
        pytest.skip(reason)
    with debian_host(SERVER, systemd=True) as host:
        yield host
