"""Link errors that either end has reported."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks.model import Check, Fix, Severity, Verdict
from plumbline.checks.pcie.facts import PcieFacts
from plumbline.checks.text import counted, listed


def _errors(facts: PcieFacts) -> Iterator[Verdict]:
    for each in facts.errors:
        known = {name: count for name, count in each.counts.items() if count.grew is not None}
        if not known:
            continue
        growing = {name: count for name, count in known.items() if count.grows}
        below = f" ({listed(each.below)})" if each.below else ""
        should = "no new errors"
        if not growing:
            yield Verdict(each.address, f"{should}{below}", should)
            continue
        is_ = "; ".join(counted(count, f"{name} error") for name, count in growing.items())
        severity = Severity.INFO if growing.keys() == {"correctable"} else None
        yield Verdict(each.address, f"{is_}{below}", should, _LOOK, severity)


_LOOK = Fix(
    "journalctl -k -g 'PCIe Bus Error|AER'",
    caution="This only shows which error, and from which end. Reseat or replace card, riser or cable; errors of a port"
    " with several devices below are a matter of the board.",
)

AER = Check(
    "pcie.aer",
    "Have no new errors on PCI Express links.",
    "Functions that count errors (AER), and the ports above them, once they have been looked at for a while. Info "
    "where all were correctable.",
    "A correctable error is sent again by the link itself and costs time; after any other a transfer is lost, and the "
    "driver resets the device or gives it up.",
    "PCI Express Base 5.0, 6.2; Documentation/PCI/pcieaer-howto.rst, Documentation/ABI/testing/"
    "sysfs-bus-pci-devices-aer_stats",
    Severity.WARNING,
    _errors,
    "journalctl -k -g 'PCIe Bus Error|AER'",
)

CHECKS = (AER,)
