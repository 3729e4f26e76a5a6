"""Interrupts of a port with several queues: are they spread over the CPUs?"""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks.model import Check, Fix, Severity, Verdict
from plumbline.checks.network.facts import NetworkFacts

# Share of the busiest CPU: 1 in Figura 29, all on CPU 0; 0.15 in Figura 23, eight queues on eight CPUs
_ON_ONE_CPU = 0.9


def _on_one_cpu(facts: NetworkFacts) -> Iterator[Verdict]:
    cpus = len(facts.softnet)
    squeezed = any(each.squeezed and each.squeezed.grows for each in facts.softnet)
    for nic in facts.nics:
        if not nic.bus or not nic.up or nic.interrupts is None:
            continue
        share, queues = nic.interrupts.share_max, nic.interrupts.active_vectors
        spread = min(queues, cpus)
        if spread < 2:  # one queue has one interrupt, and one CPU takes them all
            continue
        is_ = f"{share:.0%} of {queues} queues' interrupts on one of {cpus} CPUs"
        should = f"spread over {spread} CPUs"
        if share < _ON_ONE_CPU:
            yield Verdict(nic.device, is_, should)
            continue
        suffers = nic.loses or squeezed
        yield Verdict(
            nic.device,
            is_,
            should,
            Fix(
                "apt-get install -y irqbalance && systemctl enable --now irqbalance",
                caution="Not beside a script or tuned profile that pins interrupts: the two undo each other's work.",
            ),
            Severity.WARNING if suffers else Severity.INFO,
            "Packets wait or are lost meanwhile." if suffers else "One busy connection alone looks the same.",
        )


IRQS_ON_ONE_CPU = Check(
    "network.irqs-on-one-cpu",
    "Spread each port's interrupts over all CPUs.",
    "Ports that are up and busy, with two interrupt vectors or more at work, on hosts with two CPUs or more.",
    "One CPU that takes them all can't empty the rings fast enough, while the others idle.",
    "unnoba-2020, 5.1 (Figura 23), 5.2 (Figura 29) and 10.1; Documentation/networking/scaling.rst",
    Severity.WARNING,
    _on_one_cpu,
    "apt-get install -y irqbalance && systemctl enable --now irqbalance",
)

CHECKS = (IRQS_ON_ONE_CPU,)
