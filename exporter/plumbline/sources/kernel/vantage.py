"""What this node runs as: a host, a virtual machine or a container.

The same figure means different things in each: a guest measures what its hypervisor leaves it. The signs are those
of systemd-detect-virt(1) (``src/basic/virt.c``), read without root. The innermost environment counts, so a container
in a virtual machine is a container. Verbatim, from a KVM guest and from a process in a Docker container:

    /proc/cpuinfo                   flags : fpu vme de … rdrand hypervisor lahf_lm …
    /sys/class/dmi/id/sys_vendor    QEMU
    /proc/self/cgroup               12:devices:/docker/4e6f…
"""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from plumbline.core.kernel import TABLE
from plumbline.core.roots import Roots
from plumbline.sources.kernel import sysfs

_DMI = ("product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version")
# firmware names of virtual machines; not Microsoft's vendor name, which its laptops have too
_MACHINES = (
    "KVM", "OpenStack", "KubeVirt", "Amazon EC2", "QEMU", "VMware", "VMW", "innotek GmbH", "VirtualBox", "Oracle VM",
    "Xen", "HVM domU", "Bochs", "Parallels", "BHYVE", "Hyper-V", "Apple Virtualization", "Google Compute Engine",
    "Nutanix AHV", "Alibaba Cloud ECS", "DigitalOcean", "Hetzner vServer",
)  # fmt: skip
# control group names given by container runtimes, matched against one component of the path
_CONTAINER_GROUP = re.compile(
    r"docker|docker-[0-9a-f]{12,}\.scope|libpod-.+\.scope|libpod|lxc|lxc\.payload(\..+)?|kubepods(\.slice)?"
    r"|kubepods-.+\.slice|crio-.+\.scope|cri-containerd-.+\.scope|machine-.+\.scope"
)
_DOM0_FEATURE = 1 << 11  # XENFEAT_dom0, xen/include/public/features.h


class Vantage(StrEnum):
    """The ``vantage`` label."""

    HOST = "host"
    VM = "vm"
    CONTAINER = "container"


class Signs(Struct, frozen=True):
    """Evidence for the vantage; empty fields are absent signs."""

    container_word: str = ""  # $container of this process or of init: podman, lxc, systemd-nspawn …
    kubernetes: bool = False
    container_files: tuple[str, ...] = ()  # Files that container runtimes create in the root directory
    groups: tuple[str, ...] = ()  # Paths of this process' control groups
    openvz: bool = False
    hypervisor: str = ""  # /sys/hypervisor/type
    dom0: bool = False  # Xen's own host: it runs under the hypervisor, but owns the hardware
    firmware: tuple[str, ...] = ()  # DMI strings
    hypervisor_flag: bool = False  # CPUID reports a hypervisor (x86)
    hypervisor_node: bool = False  # The device tree reports a hypervisor (arm64, ppc64)


def judge(signs: Signs) -> tuple[Vantage, str]:
    """The innermost vantage, and the sign that shows it."""
    if by := _container(signs):
        return Vantage.CONTAINER, by
    if by := _owned(signs):
        return Vantage.HOST, by
    if by := _machine(signs):
        return Vantage.VM, by
    return Vantage.HOST, "no sign of anything else"


def _container(signs: Signs) -> str:
    if signs.container_word:
        return f"$container is {signs.container_word}"
    if signs.container_files:
        return f"{signs.container_files[0]} exists"
    if signs.kubernetes:
        return "Kubernetes' variables are set"
    for group in signs.groups:
        if any(_CONTAINER_GROUP.fullmatch(part) for part in group.split("/")):
            return f"control group {group}"
    return "OpenVZ" if signs.openvz else ""


def _owned(signs: Signs) -> str:
    """The sign that the hardware is this system's own, although a hypervisor shows."""
    if signs.dom0:
        return "Xen's dom0"
    # a bare-metal Amazon instance, whose firmware also says Amazon EC2
    return next((f"firmware {text}" for text in signs.firmware if text.endswith(".metal")), "")


def _machine(signs: Signs) -> str:
    if signs.hypervisor:
        return f"hypervisor {signs.hypervisor}"
    for text in signs.firmware:
        if any(text.startswith(machine) for machine in _MACHINES):
            return f"firmware {text}"
    if signs.hypervisor_flag:
        return "the CPU's hypervisor flag"
    return "a hypervisor in the device tree" if signs.hypervisor_node else ""


def parse_groups(text: str) -> tuple[str, ...]:
    """Paths of ``hierarchy:controllers:path`` lines (cgroups(7)); other lines are ignored."""
    return tuple(
        parts[2] for line in text.splitlines() if len(parts := line.split(":", 2)) == 3 and parts[2].startswith("/")
    )


def parse_hypervisor_flag(text: str) -> bool:
    """Whether the first CPU's flags in ``/proc/cpuinfo`` include ``hypervisor``."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return "hypervisor" in value.split()
    return False


def parse_dom0(capabilities: str, features: str) -> bool:
    """From ``/proc/xen/capabilities`` (``control_d``) or, when xenfs is not mounted, the feature bits (hex)."""
    if "control_d" in re.split(r"[,\s]+", capabilities):
        return True
    digits = features.strip()
    return bool(re.fullmatch(r"[0-9a-f]{1,16}", digits)) and bool(int(digits, 16) & _DOM0_FEATURE)


def read_vantage(roots: Roots, *, root: Path, environment: Mapping[str, str]) -> tuple[Vantage, str]:
    """The vantage of this process; ``root`` is its root directory. Unreadable files count as absent signs."""
    init = dict(
        pair.split("=", 1) for pair in _text(roots.proc / "1" / "environ").split("\0") if "=" in pair
    )  # only root may read it
    marks = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
    return judge(
        replace(
            _read_machine(roots),
            container_word=environment.get("container", "") or init.get("container", ""),
            kubernetes="KUBERNETES_SERVICE_HOST" in environment,
            container_files=tuple(mark for mark in marks if _exists(root / mark.lstrip("/"))),
            groups=parse_groups(_text(roots.proc / "self" / "cgroup")),
            openvz=_exists(roots.proc / "vz") and not _exists(roots.proc / "bc"),
        )
    )


def is_guest(roots: Roots) -> bool:
    """Whether the kernel runs in a virtual machine, with or without a container around this process."""
    signs = _read_machine(roots)
    return not _owned(signs) and bool(_machine(signs))


def _read_machine(roots: Roots) -> Signs:
    dmi = (_text(roots.sys / "class" / "dmi" / "id" / name).strip() for name in _DMI)
    xen = roots.sys / "hypervisor"
    return Signs(
        hypervisor=_text(xen / "type").strip(),
        dom0=parse_dom0(_text(roots.proc / "xen" / "capabilities"), _text(xen / "properties" / "features")),
        firmware=tuple(filter(None, dmi)),
        hypervisor_flag=parse_hypervisor_flag(_text(roots.proc / "cpuinfo")),
        hypervisor_node=_exists(roots.sys / "firmware" / "devicetree" / "base" / "hypervisor"),
    )


def _text(file: Path) -> str:
    return (sysfs.read_bytes(file, TABLE) or b"").decode("utf-8", "replace")


def _exists(file: Path) -> bool:
    return os.access(file, os.F_OK)
