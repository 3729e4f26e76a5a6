"""PCI Express in words, and remedies that can only show something."""

from __future__ import annotations

import shlex

from plumbline.checks.model import Fix
from plumbline.checks.text import listed
from plumbline.sources.pci.pcidevices import PciFunction


def on(device: PciFunction) -> str:
    """`` (nvme0n1, slot 3)``: what is at the address, for people who do not know addresses by heart."""
    words = [*([listed(device.devices)] if device.devices else []), *([f"slot {device.slot}"] if device.slot else [])]
    return f" ({', '.join(words)})" if words else ""


def addresses(devices: tuple[PciFunction, ...]) -> str:
    """The first few addresses, as text."""
    return listed(f"{each.address}{on(each)}" for each in devices)


def show(address: str, caution: str) -> Fix:
    """A remedy that no command can be: the command only shows what to look at."""
    return Fix(f"lspci -vv -s {shlex.quote(address)}", caution=f"This only shows. {caution}")
