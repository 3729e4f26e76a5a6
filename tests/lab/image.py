"""The disk that a guest boots from, and the QEMU that runs it: made once, kept in ``.debian/``.

QEMU is Debian 13's on every machine: Debian 12's has no ``igb``. It runs from a tree of its own, so no package of this
machine changes. The guest has Debian's own kernel and every tool that a row holds the daemon against.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from lab import hardware
from support.debian_host import BASES, Base, made

SUITES = ("bookworm", "trixie", "forky")

PACKAGES = (
    "linux-image-amd64", "systemd", "systemd-sysv", "systemd-timesyncd", "udev", "dbus", "kmod", "procps", "psmisc",
    "openssh-server", "python3", "libbpf1", "bpftool", "ethtool", "iproute2", "iputils-ping", "rdma-core",
    "ibverbs-utils", "ibverbs-providers", "nvme-cli", "smartmontools", "mdadm", "lvm2", "dmsetup", "cryptsetup-bin",
    "multipath-tools",
    "pciutils", "lsscsi", "sg3-utils", "fio", "iperf3", "qperf", "jq", "e2fsprogs", "prometheus",
    "prometheus-alertmanager",
    "nfs-kernel-server", "nfs-common", "tgt", "open-iscsi", "apparmor", "util-linux-extra",
    "ifupdown", "ifenslave", "network-manager",
    "podman", "crun", "catatonit",
)  # fmt: skip
_QEMU = Base("qemu", installed=("qemu-system-x86", "qemu-utils", "qemu-block-extra"), suite="trixie")
_QUIET = (
    "prometheus.service", "prometheus-alertmanager.service", "nfs-server.service", "rpcbind.service", "rpcbind.socket",
    "multipathd.service", "multipathd.socket", "smartmontools.service", "mdmonitor.service", "apt-daily.timer",
    "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer",
    "mdcheck_start.timer", "mdcheck_continue.timer", "systemd-timesyncd.service", "networking.service",
    "systemd-networkd-wait-online.service", "systemd-binfmt.service", "getty@tty1.service", "modprobe@drm.service",
    "tgt.service", "iscsid.socket", "open-iscsi.service",
    "NetworkManager.service", "NetworkManager-wait-online.service", "wpa_supplicant.service",
    "podman.socket", "podman-auto-update.timer",
)  # fmt: skip
"""Units that a row starts itself, that would change what is measured, or that only cost an emulated processor time."""

SIZE = "8G"
# The drop-ins that the documentation names for disks' health and latencies and for PCI Express.
_INSTALL = """
set -e
tree=$1 changed=$2 disk=$3 size=$4
root=$changed/root
mount -t overlay overlay -o "lowerdir=$tree,upperdir=$changed/upper,workdir=$changed/work" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
chroot "$root" dpkg --force-depends --install /root/plumbline.deb
for name in disk-health disk-latency pcie; do
  install -D -m 644 "$root/usr/share/plumbline/systemd/$name.conf" \
    "$root/etc/systemd/system/plumbline.service.d/$name.conf"
done
chroot "$root" systemctl enable systemd-networkd ssh
for unit in $5; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done
chroot "$root" ssh-keygen -A
umount "$root/proc" "$root/dev"
mkfs.ext4 -q -L lab -d "$root" "$disk" "$size"
"""
MANAGEMENT_MAC = "52:54:00:00:00:01"
_FILES = {
    "etc/hostname": "lab\n",
    "etc/hosts": "127.0.0.1 localhost lab\n",
    "etc/fstab": "/dev/vda / ext4 defaults,noatime 0 1\n",
    "etc/ssh/sshd_config.d/lab.conf": "PermitRootLogin prohibit-password\nUseDNS no\nMaxSessions 40\n",
    "etc/systemd/network/10-mgmt.link": f"[Match]\nMACAddress={MANAGEMENT_MAC}\n[Link]\nName=mgmt0\n",
    "etc/systemd/network/10-mgmt.network": "[Match]\nName=mgmt0\n[Network]\nAddress=10.0.2.15/24\n",
    "etc/modprobe.d/lab.conf": "".join(f"blacklist {name}\n" for name in ("kvm_amd", "kvm_intel", "pcspkr", "joydev")),
    "etc/multipath.conf": "defaults {\n find_multipaths yes\n user_friendly_names yes\n}\n",
}


def qemu() -> Path:
    """The tree that QEMU runs in.

    Its NVMe controller is renamed there: a model QEMU is a hypervisor's disk, which the daemon asks for no health.
    """
    tree = made(_QEMU)
    program = tree / "usr/bin/qemu-system-x86_64"
    content = program.read_bytes()
    if b"QEMU NVMe Ctrl" in content:
        renamed = program.with_name("renamed")
        renamed.write_bytes(content.replace(b"QEMU NVMe Ctrl", b"LABS NVMe Ctrl"))
        renamed.chmod(0o755)
        renamed.rename(program)
    return tree


def key() -> Path:
    """The SSH key that every guest lets in."""
    path = BASES / "lab-key"
    if not path.exists():
        BASES.mkdir(parents=True, exist_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def image(suite: str, deb: Path, folder: Path) -> None:
    """Puts ``disk.raw``, ``vmlinuz`` and ``initrd`` into ``folder``: that Debian with the package ``deb`` installed.
    RuntimeError with the last words of what failed.

    dpkg runs here, in the guest's tree: emulated, it would take many minutes. The guest's own systemd starts the
    service. ``make test-packages`` is where an installation is tested.
    """
    # apt: of alternatives debootstrap takes the first, so on Debian 14 dracut for the kernel and initramfs-tools for
    # sg3-utils-udev, which conflict
    tree = made(Base("lab", installed=PACKAGES, by_apt=True, suite=suite))
    for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd", "initrd.img-*")):
        shutil.copyfile(next((tree / "boot").glob(pattern)), folder / name)
    changed = folder / "changed"
    for name in ("upper", "work", "root"):
        (changed / name).mkdir(parents=True)
    _configure(changed / "upper")
    shutil.copyfile(deb, changed / "upper/root/plumbline.deb")
    disk = str(folder / "disk.raw")
    try:
        _run("unshare", "--mount", "sh", "-c", _INSTALL, "sh", str(tree), str(changed), disk, SIZE, " ".join(_QUIET))
    finally:
        shutil.rmtree(changed)


def _configure(tree: Path) -> None:
    for name, content in _FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content)
    for nic in hardware.NICS:
        link = f"[Match]\nMACAddress={nic.mac()}\n[Link]\nName={nic.name}\n"
        (tree / f"etc/systemd/network/10-{nic.name}.link").write_text(link)
    ssh = tree / "root/.ssh"
    ssh.mkdir(mode=0o700, parents=True)
    ssh.parent.chmod(0o700)
    shutil.copyfile(f"{key()}.pub", ssh / "authorized_keys")
    (tree / "etc/machine-id").write_text("")  # made at the first boot


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise RuntimeError(f"{argv[0]} failed: {(done.stdout + done.stderr).strip()[-300:]}")
