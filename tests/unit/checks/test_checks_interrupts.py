"""Interrupts on one CPU."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.checks.growth import Count
from plumbline.checks.model import Severity
from plumbline.checks.network.facts import NetworkFacts, Nic
from plumbline.checks.network.receive import irqs_on_one_cpu
from support.facts import LOOPBACK, NIC, QUIET, VIRTUAL, interrupts, on, only

LOPSIDED = replace(NIC, interrupts=interrupts(0.97, 8))


@pytest.mark.parametrize(
    "facts",
    [
        on(LOOPBACK),
        on(VIRTUAL),
        pytest.param(on(replace(VIRTUAL, bus="0000:00:03.0", interrupts=interrupts(1.0, 1))), id="one queue"),
        pytest.param(on(replace(LOPSIDED, interrupts=interrupts(0.97, 1))), id="one vector at work of eight"),
        pytest.param(on(LOPSIDED, softnet=QUIET[:1]), id="one CPU"),
        pytest.param(on(replace(LOPSIDED, interrupts=None)), id="idle, or not known"),
        pytest.param(on(replace(LOPSIDED, up=False)), id="down"),
    ],
)
def test_does_not_apply(facts: NetworkFacts) -> None:
    assert only(irqs_on_one_cpu, facts) is None


@pytest.mark.parametrize("nic", [NIC, replace(NIC, interrupts=interrupts(0.6, 2))])
def test_met(nic: Nic) -> None:
    found = only(irqs_on_one_cpu, on(nic))
    assert found is not None
    assert found.met


@pytest.mark.parametrize(
    ("facts", "severity"),
    [
        (on(LOPSIDED), Severity.INFO),
        (on(replace(LOPSIDED, ring_drops=Count(4, 4))), Severity.WARNING),
        (on(LOPSIDED, softnet=(replace(QUIET[0], squeezed=Count(4, 4)), *QUIET[1:])), Severity.WARNING),
    ],
)
def test_not_met(facts: NetworkFacts, severity: Severity) -> None:
    found = only(irqs_on_one_cpu, facts)
    assert found is not None
    assert (found.met, found.severity) == (False, severity)
    assert found.actual == "97% of 8 queues' interrupts on one of 8 CPUs"
    assert found.expected == "spread over 8 CPUs"
    assert found.fix is not None
    assert found.fix.now == "apt-get install -y irqbalance && systemctl enable --now irqbalance"
    assert found.fix.keep is None, "an enabled unit lasts"
