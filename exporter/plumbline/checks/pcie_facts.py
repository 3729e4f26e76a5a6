"""What the PCI Express checks ask about a host: pure data, every part of which may be unknown (``None``)."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.checks.facts import Count


@dataclass(frozen=True, slots=True)
class PcieDevice:
    """One storage controller or network port."""

    address: str
    kind: str = ""
    """``nvme``, ``hba``, ``nic``."""
    name: str = ""
    """Equal for equal hardware."""
    slot: str = ""
    upstream: str = ""
    """The port at the other end of the link."""
    devices: tuple[str, ...] = ()
    osds: tuple[str, ...] = ()
    """OSDs whose data is on its disks."""
    transfers_per_second: float | None = None
    max_transfers_per_second: float | None = None
    """What both ends can do."""
    lanes: int | None = None
    max_lanes: int | None = None
    aspm_l0s: bool | None = None
    aspm_l1: bool | None = None
    ltr_enabled: bool | None = None
    ltr_snoop_s: float | None = None
    ltr_no_snoop_s: float | None = None
    behind_chipset: bool | None = None

    @property
    def tolerated_s(self) -> float | None:
        """The longest wait that it may report as tolerable."""
        known = [each for each in (self.ltr_snoop_s, self.ltr_no_snoop_s) if each is not None]
        return max(known, default=None)


@dataclass(frozen=True, slots=True)
class PcieErrors:
    """Errors that one function has reported: a device, or a port, with what is ``below`` it."""

    address: str
    below: tuple[str, ...] = ()
    correctable: Count | None = None
    nonfatal: Count | None = None
    fatal: Count | None = None


@dataclass(frozen=True, slots=True)
class PcieFacts:
    """One host, looked at for ``window_s`` seconds (``None``: once, nothing is known to grow or not)."""

    window_s: float | None = None
    devices: tuple[PcieDevice, ...] = ()
    errors: tuple[PcieErrors, ...] = ()

    def twins(self, device: PcieDevice) -> tuple[PcieDevice, ...]:
        """The other devices of the same make: what differs between them and it is the slot and its settings."""
        return tuple(
            each
            for each in self.devices
            if device.name and (each.kind, each.name) == (device.kind, device.name) and each.address != device.address
        )
