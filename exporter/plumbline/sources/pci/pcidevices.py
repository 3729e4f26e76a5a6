"""Storage controllers and network cards on PCI: link, upstream port, errors, power states, and attached devices.

Kernel: Documentation/ABI/testing/sysfs-bus-pci (``link/l0s_aspm``, ``link/l1_aspm``: Linux 5.5; ``power_state``: 5.11),
Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats, Documentation/PCI/sysfs-pci.rst. Hardware names come from
udev's database, which has them from https://pci-ids.ucw.cz/.

Link files and configuration space are read from the device itself, about a microsecond per register, so this belongs in
the slow tier (sixty drives below sixty ports: 80 ms of a CPU). A sleeping device would wake, so only its name, place
and counters are reported. Virtual functions share their physical function's link and are omitted.

A guest sees a card that is passed through, but not the slot of the host that holds it: the port above is the
hypervisor's. So nothing is said of what the link could do, nor of the path to the CPU.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.disk.udevdb import read_properties
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.vantage import is_guest
from plumbline.sources.pci import pci, pciconfig
from plumbline.sources.pci.pci import Bridge
from plumbline.sources.pci.pciconfig import PciConfig

_NVME_PATH = re.compile(r"(nvme[0-9]+)c[0-9]+(n[0-9]+)")
_SUSPENDED = frozenset({"suspended", "suspending"})
_ASLEEP = frozenset({"D3hot", "D3cold"})
_NOTHING = PciConfig()


class PciFunction(Struct, frozen=True):
    """One storage controller or network port. ``None`` and ``""``: unknown, or absent."""

    address: str  # 0000:01:00.0
    kind: str  # nvme, hba or nic
    name: str  # udev's name with vendor and device id, in the form of lspci -nn: the same for identical hardware
    driver: str = ""
    slot: str = ""  # The physical slot, as named by firmware or hotplug
    upstream: str = ""  # The port above: the other end of the link
    devices: tuple[str, ...] = ()  # Disks and network interfaces on this function, by their kernel names
    numa_node: int | None = None
    mtps: int | None = None  # Megatransfers per second and lane
    max_mtps: int | None = None  # The highest speed that both ends of the link support
    lanes: int | None = None
    max_lanes: int | None = None
    aspm_l0s: bool | None = None
    aspm_l1: bool | None = None
    ltr_enabled: bool | None = None
    ltr_snoop_ns: int | None = None
    ltr_no_snoop_ns: int | None = None
    behind_chipset: bool | None = None
    missing: str = ""  # Why configuration space is incomplete


class PciReading(Struct, frozen=True):
    """All functions, in order of address, and errors by address (also of the ports above) and severity."""

    functions: tuple[PciFunction, ...] = ()
    aer: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    skipped: tuple[tuple[str, str], ...] = ()  # Functions that were skipped, and why


def read_pci(roots: Roots, ports: Iterable[str] = ()) -> PciReading:
    """Every storage controller and network card; ``Unavailable`` when PCI has none. A malformed one is skipped.
    ``ports``: ports above functions that may have gone; their errors are read all the same."""
    reader = _Reader(roots)
    functions: list[PciFunction] = []
    aer: dict[str, Mapping[str, int]] = {}
    skipped: list[tuple[str, str]] = []
    for address in sysfs.entries(reader.root):
        try:
            function = reader.function(address)
            errors = {end: reader.aer(end) for end in (address, function.upstream) if end} if function else {}
        except ParseError:
            skipped.append((address, "malformed"))
            continue
        if function is not None:
            functions.append(function)
            aer.update((end, counts) for end, counts in errors.items() if counts)
    for port in ports:
        try:
            if port not in aer and (counts := reader.aer(port)):
                aer[port] = counts
        except ParseError:
            skipped.append((port, "malformed"))
    if not functions and not skipped and not aer:
        raise Unavailable(f"{reader.root}: no storage controller and no network card on PCI")
    return PciReading(tuple(functions), aer, tuple(skipped))


class _Reader:
    """One pass over the tree; data shared by all functions is read once."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self.root = roots.sys / "bus" / "pci" / "devices"
        self._slots = _slots(roots)
        self._devices = _devices(roots)
        self._guest = is_guest(roots)

    def function(self, address: str) -> PciFunction | None:
        """``None`` for functions of other kinds and for virtual functions; also when it has gone meanwhile."""
        path = self.root / address
        class_ = self._class(address)
        kind = None if class_ is None else pci.kind_of(class_)
        if kind is None or (path / "physfn").exists():
            return None
        above = pci.addresses_in(sysfs.link_text(path) or "")[:-1]
        ports = tuple(port for port in above if self._class(port) == pci.BRIDGE)
        upstream = ports[-1] if ports and ports[-1] == above[-1] else ""
        asleep = self._asleep(address)
        config = _NOTHING if asleep else _config(path / "config", extended=True)
        own, *bridges = (self._bridge(function) for function in (address, *ports))
        guest = self._guest or any(bridge.emulated for bridge in bridges)
        mtps = lanes = max_mtps = max_lanes = None
        if not asleep:
            mtps, lanes = _link(path, "current")
            if upstream and not guest:
                max_mtps, max_lanes = map(_lower, _link(path, "max"), _link(self.root / upstream, "max"))
        return PciFunction(
            address=address,
            kind=kind,
            name=f"{own.name} [{own.vendor:04x}:{own.device:04x}]".lstrip(),
            driver=(sysfs.link_text(path / "driver") or "").rpartition("/")[2],
            slot=self._slot(address, "" if asleep else upstream),
            upstream=upstream,
            devices=tuple(sorted(self._devices[address])),
            numa_node=_numa_node(path),
            mtps=mtps,
            max_mtps=max_mtps,
            lanes=lanes,
            max_lanes=max_lanes,
            aspm_l0s=_state(config.aspm_l0s, path / "link" / "l0s_aspm"),
            aspm_l1=_state(config.aspm_l1, path / "link" / "l1_aspm"),
            ltr_enabled=config.ltr_enabled,
            ltr_snoop_ns=config.ltr_snoop_ns,
            ltr_no_snoop_ns=config.ltr_no_snoop_ns,
            behind_chipset=None if guest else pci.behind_chipset(bridges),
            missing="asleep" if asleep else config.missing,
        )

    def aer(self, address: str) -> Mapping[str, int]:
        """Errors since the function appeared, by severity. The kernel has them, even for a sleeping function."""
        counts = {}
        for severity, total in pci.AER_TOTALS.items():
            path = self.root / address / f"aer_dev_{severity}"
            data = sysfs.read_bytes(path)
            if data:
                counts[severity] = pci.parse_aer(data.decode("ascii", "replace"), source=str(path), total=total)
        return counts

    def _class(self, address: str) -> int | None:
        return sysfs.read_parsed(self.root / address / "class", pci.parse_class)

    def _bridge(self, address: str) -> Bridge:
        path = self.root / address
        vendor, device = (sysfs.read_parsed(path / name, pci.parse_id) for name in ("vendor", "device"))
        properties = read_properties(self._roots, f"+pci:{address}")
        words = (sysfs.clean(properties.get(f"ID_{part}_FROM_DATABASE", b"")) for part in ("VENDOR", "MODEL"))
        return Bridge(vendor or 0, device or 0, " ".join(word for word in words if word))

    def _asleep(self, address: str) -> bool:
        """Whether it is suspended, or in a power state from which a read would wake it."""
        path = self.root / address
        status = sysfs.read_text(path / "power" / "runtime_status")
        return status in _SUSPENDED or sysfs.read_text(path / "power_state") in _ASLEEP

    def _slot(self, address: str, upstream: str) -> str:
        """The slot's name, or its number from the port above."""
        name = self._slots.get(address.rpartition(".")[0])
        if name is not None or not upstream:
            return name or ""
        number = _config(self.root / upstream / "config", extended=False).slot
        return "" if number is None else str(number)


def _lower(value: int | None, other: int | None) -> int | None:
    """``None`` when one end is unknown: a virtual machine sees a card but not its slot."""
    return None if value is None or other is None else min(value, other)


def _config(path: Path, *, extended: bool) -> PciConfig:
    """Empty when the file is absent or the function does not answer."""
    try:
        with path.open("rb", buffering=0) as file:
            data = _read_config(file.fileno(), extended=extended)
    except OSError:
        return _NOTHING
    answered = len(data) >= pciconfig.HEADER_BYTES and pciconfig.answers(data)
    return pciconfig.parse_config(data, source=str(path)) if answered else _NOTHING


def _read_config(file: int, *, extended: bool) -> bytes:
    """Configuration space; of the extended part, only 8 bytes of each capability, which include all of LTR."""
    data = os.pread(file, pciconfig.CONVENTIONAL_BYTES, 0)
    heads: dict[int, bytes] = {}
    offset = len(data) if extended and len(data) == pciconfig.CONVENTIONAL_BYTES else 0
    while offset and offset not in heads:
        head = os.pread(file, 8, offset)
        if len(head) < 8:
            break
        heads[offset] = head
        header = pciconfig.parse_extended_header(head)
        offset = header.next if header else 0
    if not heads:
        return data
    space = bytearray(data.ljust(pciconfig.EXTENDED_BYTES, b"\0"))
    for offset, head in heads.items():
        space[offset : offset + 8] = head
    return bytes(space)


def _link(path: Path, which: str) -> tuple[int | None, int | None]:
    """The link's ``current`` or ``max`` speed and lanes."""
    speed = sysfs.read_parsed(path / f"{which}_link_speed", pci.parse_speed)
    return speed, sysfs.read_parsed(path / f"{which}_link_width", pci.parse_lanes)


def _state(register: bool | None, path: Path) -> bool | None:
    """The device's own register; if that can't be read, the kernel's setting."""
    return register if register is not None else {"0": False, "1": True}.get(sysfs.read_text(path) or "")


def _numa_node(path: Path) -> int | None:
    text = sysfs.read_text(path / "numa_node")
    return None if text is None or text == "-1" else sysfs.parse_number(text, source=str(path / "numa_node"))


def _slots(roots: Roots) -> dict[str, str]:
    """``0000:5e:00`` → the slot's name."""
    root = roots.sys / "bus" / "pci" / "slots"
    slots: dict[str, str] = {}
    for slot in sysfs.entries(root):
        address = sysfs.read_text(root / slot / "address")
        if address:
            slots.setdefault(address, slot)
    return slots


def _devices(roots: Roots) -> defaultdict[str, set[str]]:
    """Devices by the address of their function. Reads only links, so no disk is queried."""
    devices: defaultdict[str, set[str]] = defaultdict(set)
    for root in (roots.sys / "block", roots.sys / "class" / "net"):
        for entry in sysfs.entries(root):
            addresses = pci.addresses_in(sysfs.link_text(root / entry) or "")
            if addresses:  # a path of native NVMe multipath is hidden, and its disk's name has no controller
                devices[addresses[-1]].add(_NVME_PATH.sub(r"\1\2", entry).replace("!", "/"))
    return devices
