"""A machine as a newcomer's: a bare Debian with ca-certificates, git, make and python3, this machine's network, and
nothing of ours but a clone of the repository.

It has mount, process, host name and IPC namespaces of its own and an init that reaps; its tree lies as a plain
directory on this machine's disk, because tests want a file system with a disk below, /tmp too. The tree of the last
run stays in ``.debian/`` for who wants to look at it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.debian_host import BASES, Base, child, made

ROOT = Path(__file__).parents[2]
CLONE = "/srv/plumbline"
"""Readable for all: tests run the daemon as the user nobody, too."""
STARTS_WITHIN_S = 60.0

_AUTHORITIES = "usr/local/share/ca-certificates"
"""Whom an administrator of this machine trusts besides: registries may be reached through one of them."""

# pivot_root and not chroot: whoever enters sees the mount points that PID 1 has. /sys and /dev as they are here, with
# what is mounted below: control groups, loop devices.
_INIT = """
set -e
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir "$root/run/lock"
for name in $2; do
  mkdir -p "$root$name"
  mount --bind -o ro "$name" "$root$name"
done
hostname newcomer
cd "$root"
mkdir -p old
pivot_root . old
umount -l /old
rmdir /old
touch /run/newcomer
while :; do sleep 60; done   # dash takes in every child that ends while it waits for this one
"""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """``pid`` is the init's, as this machine numbers it."""

    pid: int

    def argv(self, command: str) -> list[str]:
        """What runs ``command`` in a shell inside the clone."""
        settings = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            **_registries(),
        }
        given = [f"{name}={value}" for name, value in settings.items()]
        enter = ["nsenter", "-t", str(self.pid), "-m", "-p", "-i", "-u"]
        return [*enter, "env", "-i", *given, "sh", "-c", f"cd {CLONE} && {command}"]

    @contextmanager
    def started(self, command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """``command`` as in a terminal: what it says is added to ``log``; in the end its whole group is killed."""
        with log.open("ab") as out:
            process = subprocess.Popen(
                self.argv(command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def run(self, command: str, log: Path, *, timeout_s: float) -> int:
        """Exit code of ``command``. subprocess.TimeoutExpired when it takes longer."""
        with self.started(command, log) as process:
            return process.wait(timeout_s)


def missing() -> str | None:
    """Why there can be no such machine here, in one line; None: there can."""
    if os.geteuid() != 0:
        return "root is needed for namespaces and mounts"
    absent = [name for name in ("debootstrap", "git", "nsenter", "setpriv", "unshare") if not shutil.which(name)]
    return f"not found: {', '.join(absent)}" if absent else None


@contextmanager
def newcomer(suite: str, *, kept: bool = False) -> Iterator[Newcomer]:
    """The machine, running, with a clone of what is committed: bare, or ``kept`` as the last such run left it but for
    the commit. RuntimeError when it does not come up."""
    base = made(Base("newcomer", installed=("ca-certificates", "git", "make", "python3"), suite=suite))
    tree = BASES / f"newcomer-{suite}-{'kept' if kept else 'last'}"
    clone = tree / CLONE.lstrip("/")
    if not kept:
        shutil.rmtree(tree, ignore_errors=True)
    if not clone.exists():
        shutil.rmtree(tree, ignore_errors=True)
        subprocess.run(["cp", "-a", str(base), str(tree)], check=True)
        give(tree)
        _git("clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone))
    else:
        _git("-C", str(clone), "fetch", "--quiet", str(ROOT), "HEAD")
        _git("-C", str(clone), "reset", "--quiet", "--hard", "FETCH_HEAD")
    with _started(tree) as pid:
        yield Newcomer(pid)


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True)


def give(tree: Path) -> None:
    """What this machine has that leads to the registries."""
    shutil.copyfile("/etc/resolv.conf", tree / "etc/resolv.conf")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost newcomer\n::1 localhost\n")
    settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout.splitlines()
    acquire = [line for line in settings if line.startswith("Acquire::")]
    (tree / "etc/apt/apt.conf.d/99as-here").write_text("".join(f"{line}\n" for line in acquire))
    if Path("/etc/pip.conf").exists():
        shutil.copyfile("/etc/pip.conf", tree / "etc/pip.conf")
    if Path("/", _AUTHORITIES).is_dir():
        shutil.copytree(Path("/", _AUTHORITIES), tree / _AUTHORITIES, dirs_exist_ok=True)
        subprocess.run(["chroot", str(tree), "update-ca-certificates"], check=True, capture_output=True)


def _registries() -> dict[str, str]:
    """The environment that leads pip and apt to their registries here."""
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    names = {name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")}
    return {name: bundle if name == "PIP_CERT" else os.environ[name] for name in sorted(names)}


def _shared() -> str:
    """Directories of packages that pip is told to look into."""
    return " ".join(path for path in os.environ.get("PIP_FIND_LINKS", "").split() if Path(path).is_dir())


@contextmanager
def _started(tree: Path) -> Iterator[int]:
    argv = ["setpriv", "--pdeathsig", "KILL", "unshare", "-m", "-p", "-f", "-i", "-u", "--kill-child=SIGKILL",
            "sh", "-c", _INIT, "sh", str(tree), _shared()]  # fmt: skip
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
        try:
            pid = _wait(process)
            if pid is None:
                said.seek(0)
                raise RuntimeError(f"the machine did not come up: {said.read()[-500:]}")
            yield pid
        finally:
            for pid in (child(process.pid), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    if pid:
                        os.kill(pid, signal.SIGKILL)
            process.wait(timeout=60)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """The init's process id as soon as all is mounted."""
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        pid = child(process.pid)
        if pid and Path(f"/proc/{pid}/root/run/newcomer").exists():
            return pid
        time.sleep(0.1)
    return None
