"""A fresh Debian 12: a debootstrapped tree, commands in it, or a whole machine whose process 1 is systemd.

The machine has namespaces of its own (mounts, processes, network, host name, IPC, cgroups) and a /dev of its own, so
that nothing of it is left on the host when its process 1 is killed. It has no network but its loopback: what installs
there needs none.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

RELEASE = "bookworm"
PACKAGES = ("dbus", "libbpf1", "python3", "systemd")
"""Of the machine: what the package depends on, so that it installs without a network, and systemd."""
BOOTS_WITHIN_S = 90.0
MAKES_WITHIN_S = 900.0
_BOOT = """\
set -e
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
for node in null zero full random urandom tty; do
  touch "dev/$node"
  mount --bind "/dev/$node" "dev/$node"
done
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
mkdir sys/fs/cgroup/unified sys/fs/cgroup/systemd
mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
# hybrid, where the host has the old hierarchy; it can't be mounted where all is cgroup2
if mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd 2>/dev/null; then :
else umount sys/fs/cgroup/unified sys/fs/cgroup; mount -t cgroup2 cgroup2 sys/fs/cgroup; fi
pivot_root . mnt
umount -l /mnt
# as a container's manager does it: credentials reach a service by propagation
mount --make-rshared /
exec env -i container=plumbline PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=null
"""


def debian_tree(cache: Path, name: str, packages: tuple[str, ...] = ()) -> Path:
    """A debootstrapped tree below ``cache``, made once; skips where that is impossible and says why."""
    if os.geteuid() != 0:
        pytest.skip("debootstrap needs root")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed (Debian package debootstrap)")
    tree = cache / name
    if (tree / ".complete").exists():
        return tree
    shutil.rmtree(tree, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    include = [f"--include={','.join(packages)}"] if packages else []
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", *include, RELEASE, str(tree)],
        capture_output=True, text=True, timeout=MAKES_WITHIN_S, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"debootstrap: {(done.stdout or done.stderr).strip().splitlines()[-1]}")
    shutil.rmtree(tree / "var/cache/apt/archives")
    (tree / ".complete").touch()
    return tree


@contextlib.contextmanager
def copied(tree: Path, folder: Path) -> Iterator[Path]:
    """A copy that a test may do anything with."""
    target = folder / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", str(tree), str(target)], check=True, timeout=300)
    (target / ".complete").unlink()
    try:
        yield target
    finally:
        shutil.rmtree(target)


def in_tree(tree: Path, *argv: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
    """A command in the tree: processes and mounts of its own, the host's network, nothing left behind."""
    script = 'mount --make-rprivate /; mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"'
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", script, str(tree), *argv],
        capture_output=True, text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL, env=_ENVIRONMENT,
    )  # fmt: skip


_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "HOME": "/root",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A booted one."""

    root: Path
    pid: int

    def run(self, *argv: str, timeout_s: float = 120.0, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command in it, as root; what it said stands in the failure."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), "-m", "-p", "-u", "-i", "-n", "-C", *argv],
            capture_output=True, text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL, env=_ENVIRONMENT,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{' '.join(argv)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done

    def journal(self) -> str:
        """What the service said."""
        return self.run("journalctl", "-u", "plumbline", "--no-pager", "-o", "cat").stdout

    def get(self, path: str, *, within_s: float = 60.0) -> str:
        """The daemon's answer, as soon as there is one."""
        fetch = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=20).read().decode())"
        deadline = time.monotonic() + within_s
        while True:
            done = self.run("python3", "-c", fetch, f"http://127.0.0.1:10047{path}", check=False)
            if done.returncode == 0:
                return done.stdout
            assert time.monotonic() < deadline, done.stderr[-500:] + self.journal()[-2000:]
            time.sleep(0.5)


@contextlib.contextmanager
def booted(root: Path) -> Iterator[Machine]:
    """``root`` with systemd as its process 1; skips where the kernel does not allow it."""
    process = subprocess.Popen(
        # --pdeathsig: it ends with this process, however that ends
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup",
         "--fork", "--kill-child", "sh", "-c", _BOOT, "boot", str(root)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield _await(process, root)
    finally:
        # its child, process 1 of the machine, goes with it, and all others with that
        process.send_signal(signal.SIGKILL)
        process.wait(30)


def _await(process: subprocess.Popen[str], root: Path) -> Machine:
    deadline = time.monotonic() + BOOTS_WITHIN_S
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < deadline:
        if process.poll() is not None:
            assert process.stderr
            pytest.skip(f"no systemd in namespaces here: {process.stderr.read().strip()[-200:]}")
        pids = children.read_text().split()
        if pids and Path(f"/proc/{pids[0]}/exe").resolve().name == "systemd":
            machine = Machine(root, int(pids[0]))
            if machine.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded"):
                machine.run("python3", "-c", _LOOPBACK_UP)
                return machine
        time.sleep(0.2)
    pytest.fail("the machine did not boot")


_LOOPBACK_UP = """\
import fcntl, socket, struct
# SIOCSIFFLAGS, IFF_UP | IFF_RUNNING: the tree has no ip(8)
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))
"""
