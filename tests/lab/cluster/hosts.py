"""Three storage hosts and the switch between them: a systemd and a network each, two OSDs' disks, our package.

They are namespaces and no virtual machines: three emulated ones left each OSD less than a hundredth of a processor. So
the kernel is this machine's. It has no bonding and no netem; each host is told which disks are its own.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import ceph
from support.debian_host import Base, DebianHost, debian_host
from support.loops import Loops
from support.netns import Namespace
from support.rules import ROOT

NIC = "nic0"
MTU = 9000
_INSTALLED = (
    "systemd", "systemd-sysv", "udev", "dbus", "procps", "openssh-server", "python3", "libbpf1", "ethtool",
    "iproute2", "iputils-ping", "smartmontools", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-common",
)  # fmt: skip
SWITCH = "switch"
_READY_WITHIN_S = 600.0
_CONFIG = """\
web: {{listen_address: "[::]:10047"}}
devices: {{ceph_public: [{nic}], ceph_cluster: [{nic}], disk_exclude: '(?!{disks}).*'}}
baseline: {{files: [/etc/plumbline/site.yaml]}}
probes:
- {{type: rtt, name: rtt, targets: [{targets}], {often}}}
"""
OFTEN: dict[str, object] = {"interval": "1m", "timeout": "25s", "device_class": "10g", "max_load_per_cpu": 1000}
"""Round trips are measured every minute, however busy the machine is."""
SITE = """\
schema_version: 1
entries:
- {workload: icmp-rtt-56, device_class: 10g, latency: {p50: 2ms, p99: 100ms}, tolerance_ratio: 2}
"""
"""Round trips on a machine that does other things: what is more than twice as long is the network."""


@dataclass(frozen=True, slots=True)
class Host:
    """One that runs. ``disks``: OSD → the kernel's name of its disk."""

    name: str
    inside: DebianHost
    disks: dict[int, str]

    def run(self, script: str) -> str:
        """A shell's standard output, as root."""
        return self.inside.run("/bin/sh", "-ec", script, timeout_s=900.0)

    def write(self, path: str, content: str) -> None:
        """A file, from the host's root."""
        file = self.inside.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def drop_in(self, name: str, *optional: str) -> None:
        """One of ours for the daemon's unit, with these of its lines that are comments as shipped."""
        text = (ROOT / "systemd/drop-ins" / name).read_text()
        for line in optional:
            assert f"#{line}\n" in text, line
            text = text.replace(f"#{line}\n", f"{line}\n")
        self.write(f"etc/systemd/system/plumbline.service.d/{name}", text)

    def freeze(self, *, frozen: bool) -> None:
        """Every process of it."""
        group = next(
            line for line in Path(f"/proc/{self.inside.enter[2]}/cgroup").read_text().splitlines() if line[:3] == "0::"
        )
        (_unified() / group.split("/")[1] / "cgroup.freeze").write_text(str(int(frozen)))

    def pid(self, unit: str) -> int:
        """Of the service's main process, as this machine numbers it."""
        inside = int(self.run(f"systemctl show --property=MainPID --value {unit}"))
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                numbers = next(line for line in status.read_text().splitlines() if line.startswith("NSpid:")).split()[
                    1:
                ]
                same = (status.parent / "ns/pid").readlink() == Path(f"/proc/{self.inside.enter[2]}/ns/pid").readlink()
                if same and int(numbers[-1]) == inside:
                    return int(numbers[0])
        raise AssertionError(f"{unit} has no process")


def base(suite: str) -> Base:
    """Their Debian, with its Ceph: 18 of trixie, 20 of forky."""
    return Base("lab-ceph", installed=_INSTALLED, by_apt=True, suite=suite)


@contextmanager
def running(network: Namespace, suite: str, deb: Path, keys: ceph.Keys, folder: Path) -> Iterator[dict[str, Host]]:
    """All three by name, with their monitors, and our daemon ready in each. ``folder`` holds the disks."""
    network.batch(f"link add {SWITCH} type bridge\nlink set {SWITCH} mtu {MTU} up\n")
    network.ip("address", "add", f"{ceph.CLIENT}/24", "dev", SWITCH)
    found = {}
    with ExitStack() as stack:
        loops = Loops(folder)
        stack.callback(loops.close)
        for name in ceph.HOSTS:
            inside = stack.enter_context(debian_host(base(suite), systemd=True))
            found[name] = Host(name, inside, {number: loops.sparse(4) for number in ceph.osds(name)})
            _connect(network, found[name])
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda host: _install(host, deb, keys), found.values()))
        for host in found.values():
            host.inside.get("http://127.0.0.1:10047/-/ready", within_s=_READY_WITHIN_S)
        yield found


def _connect(network: Namespace, host: Host) -> None:
    """Its one port at the switch is called as it is."""
    network.ip("link", "add", host.name, "type", "veth", "peer", "name", NIC, "netns", host.inside.enter[2])
    network.batch(f"link set {host.name} mtu {MTU} master {SWITCH} up\n")
    host.run(
        f"hostname {host.name}; ip link set {NIC} mtu {MTU} up; ip address add {ceph.address(host.name)}/24 dev {NIC}"
    )
    # systemd would set it: who may ping
    allow = "echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range"
    subprocess.run(["nsenter", "-t", host.inside.enter[2], "-n", "sh", "-c", allow], check=True)
    host.write("etc/hostname", f"{host.name}\n")
    for disk in host.disks.values():
        number = Path(f"/sys/block/{disk}/dev").read_text().strip().replace(":", " ")
        host.run(f"mknod /dev/{disk} b {number}; chown ceph:ceph /dev/{disk}")


def _install(host: Host, deb: Path, keys: ceph.Keys) -> None:
    ceph.install(host, keys)
    targets = ", ".join(ceph.address(other) for other in ceph.HOSTS if other != host.name)
    often = ", ".join(f"{key}: {value}" for key, value in OFTEN.items())
    disks = "|".join(f"{disk}$" for disk in host.disks.values())
    host.write("etc/plumbline/plumbline.yaml", _CONFIG.format(nic=NIC, disks=disks, targets=targets, often=often))
    host.write("etc/plumbline/site.yaml", SITE)
    host.drop_in("osd-sockets.conf", "ProtectProc=default")  # Ceph 18 leaves its connections to the kernel to tell
    shutil.copyfile(deb, host.inside.root / "root/plumbline.deb")
    host.run("dpkg --force-depends --force-confold --install /root/plumbline.deb")


def _unified() -> Path:
    fields = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return next(Path(each[1]) for each in fields if each[2] == "cgroup2")
