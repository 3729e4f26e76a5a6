"""InfiniBand ports and IP over them."""

from __future__ import annotations

import pytest

from plumbline.checks.facts import InfinibandPort, NetworkFacts, Nic
from plumbline.checks.model import Severity
from plumbline.checks.network.infiniband import DATAGRAM, INACTIVE
from support.facts import only


@pytest.mark.parametrize(("active", "link_up"), [(None, True), (True, None), (False, False)])
def test_a_port_without_a_link_or_a_state_says_nothing(active: bool | None, link_up: bool | None) -> None:
    assert (
        only(INACTIVE, NetworkFacts(infiniband=(InfinibandPort("mlx4_0", "1", "InfiniBand", active, link_up),))) is None
    )


def test_roce_needs_no_subnet_manager() -> None:
    port = InfinibandPort("mlx5_0", "1", "Ethernet", False, True)
    assert only(INACTIVE, NetworkFacts(infiniband=(port,))) is None


def test_active_as_on_the_slide() -> None:
    found = only(INACTIVE, NetworkFacts(infiniband=(InfinibandPort("mlx4_0", "1", "InfiniBand", True, True),)))
    assert found is not None
    assert (found.met, found.subject, found.is_) == (True, "mlx4_0/1", "ACTIVE, LinkUp")


def test_a_link_that_no_subnet_manager_has_configured() -> None:
    found = only(INACTIVE, NetworkFacts(infiniband=(InfinibandPort("qib0", "1", "InfiniBand", False, True),)))
    assert found is not None
    assert (found.met, found.severity) == (False, Severity.WARNING)
    assert found.fix is not None
    assert found.fix.now == "ibstat qib0 1"


def ipoib(connected: bool, driver: str | None = "mlx4_core", up: bool = True) -> NetworkFacts:
    return NetworkFacts(nics=(Nic("ib0", driver, up=up),), ipoib_connected={"ib0": connected})


@pytest.mark.parametrize(
    "facts",
    [
        ipoib(False, driver="mlx5_core[ib_ipoib]"),
        ipoib(False, driver=None),
        ipoib(False, up=False),
        NetworkFacts(ipoib_connected={"ib0": False}),
    ],
)
def test_mode_does_not_apply(facts: NetworkFacts) -> None:
    assert only(DATAGRAM, facts) is None


def test_mode() -> None:
    met = only(DATAGRAM, ipoib(True))
    assert met is not None
    assert met.met
    found = only(DATAGRAM, ipoib(False))
    assert found is not None
    assert (found.met, found.severity) == (False, Severity.INFO)
    assert found.fix is not None
    assert found.fix.now == "echo connected > /sys/class/net/ib0/mode && ip link set dev ib0 mtu 65520"
    assert found.fix.keep is not None
    assert found.fix.keep.content == "pre-up echo connected > /sys/class/net/ib0/mode\nmtu 65520"
