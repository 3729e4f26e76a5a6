"""A Debian of its own on this machine: a namespace host whose PID 1 is systemd, or a plain chroot without one.

A base is made once by debootstrap and kept; each host is an overlay over one, and nothing outlives it. A chroot has
this machine's network, a host with systemd one that leads nowhere. SSH reaches both without: sshd's inetd mode
inside, ``nsenter`` as the client's ProxyCommand.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BASES = Path(os.environ.get("PLUMBLINE_DEBIAN", str(Path(__file__).parents[2] / ".debian")))
"""Where the bases are kept, some 300 MB each."""

SUITE = os.environ.get("SUITE", "bookworm")
"""The Debian release of the hosts, by make's ``SUITE=trixie``."""

BOOT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Base:
    """A kind of fresh Debian: what is installed beyond debootstrap's least, and what only lies in apt's cache."""

    name: str
    installed: tuple[str, ...] = ()
    by_apt: bool = False  # for packages whose first alternatives conflict: debootstrap takes those
    fetched: tuple[str, ...] = ()
    suite: str = SUITE


MINIMAL = Base("minimal")
"""Neither Python nor systemd."""

SERVER = Base(
    "server",
    # what a Debian server has when Ansible first meets it; and libbpf1, which our package recommends
    installed=("systemd", "systemd-sysv", "dbus", "python3", "ca-certificates", "openssh-server", "libbpf1"),
    # packages that tests install on hosts without a network
    fetched=("python3-venv", "python3-apt", "python3-yaml", "procps", "prometheus", "prometheus-alertmanager"),
)

_MOUNTS = """
set -e
base=$1 work=$2
root=$work/root
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for node in null zero full random urandom tty; do
  touch "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/run/sshd"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
echo "127.0.0.1 localhost" >"$root/etc/hosts"   # an installer writes it, debootstrap does not
touch "$root/var/lib/apt/lists"   # fetched a moment ago, as far as apt's module is concerned
mount -t sysfs -o ro sysfs "$root/sys"
"""

_CHROOT = """
printf '#!/bin/sh\\nexit 101\\n' >"$root/usr/sbin/policy-rc.d"; chmod 755 "$root/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$root/etc/resolv.conf"
touch "$work/ready"
exec sleep infinity
"""

# /proc/sys read-only: what this host's systemd would set is this machine's. A cgroup namespace: its units are
# below ours.
_SYSTEMD = """
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
ip link set lo up
# an address to advertise: Alertmanager does not start on a host that has only loopback
ip link add eth0 type veth peer name eth1
ip address add 192.168.77.1/24 dev eth0
ip link set eth0 up
ip link set eth1 up
mkdir -p "$root/old"
cd "$root"
pivot_root . old
umount -l /old
rmdir /old
mount --make-rshared /   # as on any host: systemd leaves it to a container's manager, and hands out credentials by it
exec env -i container=plumbline-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system
"""

_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "HOME": "/root",
}


# A release that is not out yet may have a list past its date on a mirror that is not new.
_APT = "apt-get -o Acquire::Check-Valid-Until=false"
_INSTALL = f"{_APT} update && {_APT} install -y --no-install-recommends"


def missing() -> str | None:
    """Why there can be no such host here, in one line; None: there can."""
    if os.geteuid() != 0:
        return "root is needed for namespaces and mounts"
    needed = ("debootstrap", "unshare", "nsenter", "setpriv", "ssh", "ssh-keygen", "ip")
    absent = [name for name in needed if not shutil.which(name)]
    if absent:
        return f"not found: {', '.join(absent)}"
    return None if _cgroups() else "no cgroup2 is mounted here, and systemd wants one"


def made(base: Base) -> Path:
    """The base's tree, made now (minutes) unless it is there; one of an earlier list gets what it lacks. RuntimeError
    with the last words of debootstrap or apt."""
    done = BASES / f"{base.name}-{base.suite}"
    if done.is_dir():
        if absent := lacking(done, base.installed):
            _run_inside(done, f"{_INSTALL} {' '.join(absent)}{'' if base.fetched else ' && apt-get clean'}")
        return done
    BASES.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=BASES, prefix="making-"))
    try:
        include = [f"--include={','.join(base.installed)}"] if base.installed and not base.by_apt else []
        source = [_mirror(base.suite), *_script(base.suite)]
        _run(["debootstrap", "--variant=minbase", *include, base.suite, str(making), *source])
        if base.by_apt:
            _run_inside(making, f"{_INSTALL} {' '.join(base.installed)}")
        _run(["chroot", str(making), "apt-get", "clean"])
        if base.fetched:
            _run_inside(making, f"{_INSTALL} --download-only {' '.join(base.fetched)}")
        making.chmod(0o755)
        making.rename(done)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return done


def lacking(tree: Path, packages: Iterable[str]) -> list[str]:
    """Those that dpkg has no files of in the tree, whatever their architecture."""
    names = {path.name.removesuffix(".list").partition(":")[0] for path in (tree / "var/lib/dpkg/info").glob("*.list")}
    return [package for package in packages if package not in names]


def _run_inside(tree: Path, command: str) -> None:
    """With /proc, which packages' scripts read, and no service started: this machine's ports may be taken."""
    shutil.copyfile("/etc/resolv.conf", tree / "etc/resolv.conf")
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    script = 'mount -t proc proc "$1/proc" && exec chroot "$1" sh -c "$2"'
    settings = [f"{name}={value}" for name, value in _ENVIRONMENT.items()]
    _run(["unshare", "--mount", "env", "-i", *settings, "sh", "-c", script, "sh", str(tree), command])
    policy.unlink()


def _mirror(suite: str) -> str:
    """The mirror this machine has its own Debian packages from; "": debootstrap's default. A mirror of one release has
    the others."""
    if not shutil.which("apt-get"):
        return ""
    form = "$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)"
    listed = subprocess.run(["apt-get", "indextargets", "--format", form], capture_output=True, text=True, check=False)
    mirrors = {
        codename: uri
        for uri, codename, *of in (line.split() for line in listed.stdout.splitlines())
        if of == ["main", "Debian"] and "-" not in codename  # neither updates nor security
    }
    return mirrors.get(suite) or next(iter(mirrors.values()), "")


def _script(suite: str) -> list[str]:
    """What debootstrap makes a release by that is younger than itself: unstable's."""
    scripts = Path("/usr/share/debootstrap/scripts")
    return [] if (scripts / suite).exists() else [str(scripts / "sid")]


def _run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()[-3:]
        raise RuntimeError(f"{argv[0]} failed: {' | '.join(said)}")


@dataclass(frozen=True, slots=True)
class DebianHost:
    """One running host: ``enter`` is the command that leads into it, ``root`` its tree as this machine sees it."""

    enter: tuple[str, ...]
    root: Path
    key: Path

    def call(self, *argv: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
        """A command inside, as root; whatever comes of it."""
        settings = [f"{name}={value}" for name, value in _ENVIRONMENT.items()]
        return subprocess.run(
            [*self.enter, "/usr/bin/env", "-i", *settings, *argv], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False,
        )  # fmt: skip

    def run(self, *argv: str, check: bool = True, timeout_s: float = 300.0) -> str:
        """Standard output of a command inside; with ``check`` a failure raises with what the command said."""
        done = self.call(*argv, timeout_s=timeout_s)
        if check and done.returncode:
            said = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
            raise AssertionError(f"{shlex.join(argv)}: exit {done.returncode}: {said}")
        return done.stdout

    def read(self, path: str) -> str:
        """A file inside."""
        return self.run("cat", path)

    def exists(self, path: str) -> bool:
        """Whether there is something at ``path``, a dangling link included."""
        return self.run("sh", "-c", f"[ -e {path} ] || [ -L {path} ] && echo yes", check=False) == "yes\n"

    def get(self, url: str, *, within_s: float = 0.0) -> str:
        """What an HTTP server inside answers, as soon as it does; AssertionError when that is not 200 in time."""
        fetch = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=20).read().decode())"
        deadline = time.monotonic() + within_s
        while True:
            try:
                return self.run("python3", "-c", fetch, url)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.5)

    def inventory(self) -> dict[str, object]:
        """Ansible's variables for this host."""
        proxy = shlex.join([*self.enter, "/usr/sbin/sshd", "-i"])
        settings = ("UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "LogLevel=ERROR")
        options = ["-F", "none", *(word for setting in settings for word in ("-o", setting))]
        return {
            # Ansible keeps a connection by this name: without one of its own the next host is reached over this one's
            "ansible_host": self.key.parent.name,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": shlex.join([*options, "-o", f"ProxyCommand={proxy}"]),
            "ansible_python_interpreter": "/usr/bin/python3",
        }


@contextmanager
def debian_host(base: Base, *, systemd: bool, copies: Sequence[str] = ()) -> Iterator[DebianHost]:
    """A host over ``base``, with systemd as PID 1 or a chroot. ``copies``: files of this machine that it has, too.
    RuntimeError when it does not come up."""
    lower = made(base)
    # an overlay needs a real file system below
    folder = Path(tempfile.mkdtemp(prefix="plumbline-host-", dir="/var/tmp"))
    try:
        for name in ("upper", "work", "root"):
            (folder / name).mkdir()
        key = _give_key(folder)
        for name in copies:
            copy = folder / "upper" / name.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, copy)
        with _started(lower, folder, key, systemd=systemd) as host:
            yield host
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _started(lower: Path, folder: Path, key: Path, *, systemd: bool) -> Iterator[DebianHost]:
    spaces = ["-m", "-p", "-f", "-i", "-u", *(["-n", "-C"] if systemd else [])]
    script = _MOUNTS + (_SYSTEMD if systemd else _CHROOT)
    # --pdeathsig: it ends with this process, however that ends
    argv = ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces, "--kill-child=SIGKILL",
            "sh", "-c", script, "sh", str(lower), str(folder)]  # fmt: skip
    group = _new_group() if systemd else None
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            preexec_fn=None if group is None else lambda: _join(group),  # noqa: PLW1509  (before anything is started)
        )  # fmt: skip
    try:
        yield _wait(process, log, folder, key, systemd=systemd)
    finally:
        for pid in (child(process.pid), process.pid):
            with contextlib.suppress(ProcessLookupError):
                if pid:
                    os.kill(pid, signal.SIGKILL)
        process.wait(timeout=30)
        if group is not None:
            _remove(group)


def _give_key(folder: Path) -> Path:
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    ssh = folder / "upper/root/.ssh"
    ssh.mkdir(parents=True)
    (folder / "upper/root").chmod(0o700)
    ssh.chmod(0o700)
    shutil.copyfile(f"{key}.pub", ssh / "authorized_keys")
    return key


def _wait(process: subprocess.Popen[bytes], log: Path, folder: Path, key: Path, *, systemd: bool) -> DebianHost:
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        pid = child(process.pid)
        tree = Path(f"/proc/{pid}/root")
        if pid and systemd and Path(f"/proc/{pid}/comm").read_text() == "systemd\n":
            host = DebianHost(("nsenter", "-t", str(pid), "-a"), tree, key)
            if host.run("/usr/bin/systemctl", "is-system-running", check=False).strip() in {"running", "degraded"}:
                return host
        if pid and (folder / "ready").exists():
            root = str(folder / "root")
            enter = ("nsenter", "-t", str(pid), "-m", "-p", "-i", "-u", "chroot", root)
            return DebianHost(enter, tree / root.lstrip("/"), key)
        time.sleep(0.2)
    raise RuntimeError(f"the host did not come up: {log.read_text(errors='replace')[-500:]}")


def child(pid: int) -> int | None:
    """The PID 1 of namespaces that ``unshare``, ``pid``, made; as this machine numbers it."""
    with contextlib.suppress(FileNotFoundError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else None
    return None


def _cgroups() -> Path | None:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)


def _new_group() -> Path:
    where = _cgroups()
    if where is None:
        raise RuntimeError(str(missing()))
    for old in where.glob("plumbline-test-*-*"):  # of a run that was killed
        if not Path("/proc", old.name.split("-")[2]).exists():
            _remove(old, within_s=0.0)
    group = where / f"plumbline-test-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    return group


def _join(group: Path) -> None:
    (group / "cgroup.procs").write_text("0")


def _remove(group: Path, *, within_s: float = 10.0) -> None:
    """From the leaves; the kernel takes a moment to notice that the last process is gone."""
    deadline = time.monotonic() + within_s
    while True:
        for path in sorted((found for found in group.rglob("*") if found.is_dir()), reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)
