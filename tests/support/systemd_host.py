"""A storage host in a container: systemd as its first process, podman inside, a network and a disk of its own.

A health check of podman is a timer of systemd, and cephadm makes units, so both want more than a container that runs
one program. It sees podman's images as a second store and copies none. ``/proc/sys`` is read-only, because it is this
machine's; /dev has this machine's devices, those that are there when it starts. Control groups are this machine's too:
systemd gets each hierarchy by itself, below a directory of its own, which it makes new ones in and remounts read-only.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .daemon import eventually
from .page_commands import ROOT
from .podman import CONFIGURATION, STORE, Podman
from .scraped import Scrape

IMAGE = "localhost/plumbline-platform"
IMAGES = ROOT / "tests" / "platforms" / "images"
ADDRESS = "192.0.2.11"
BOOT_S = 120.0
WITHIN_S = 120.0
DISK = "/var/lib/containers"
"""On this machine's disk, and no overlay: what is measured needs a disk below."""
SHIPPED = "/srv/plumbline"
"""A copy of what the pages need of the repository."""
FOLDERS = ("alerts", "dashboards", "deploy")
_INIT = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec /sbin/init"
_NETWORK = f"""
ip link add eth0 type veth peer name eth1
ip address add {ADDRESS}/24 dev eth0
ip link set eth0 up
ip link set eth1 up
ip route add default via 192.0.2.1 dev eth0
"""
_STORAGE = f"""\
[storage]
driver = "overlay"
graphroot = "{DISK}/storage"
runroot = "/run/containers/storage"
[storage.options]
additionalimagestores = ["/images"]
"""


@dataclass(frozen=True, slots=True)
class Host:
    """A running one; ``name`` is the container's and the host's."""

    podman: Podman
    name: str

    def call(
        self, script: str, *, terminal: bool = False, given: str | None = None, timeout_s: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """A script of bash, as root, at the repository's top; whatever comes of it."""
        flags = ["--interactive", *(["--tty"] if terminal else []), f"--workdir={SHIPPED}"]
        return self.podman.call("exec", *flags, self.name, "bash", "-e", "-c", script, given=given, timeout_s=timeout_s)

    def run(self, script: str, *, terminal: bool = False, given: str | None = None, timeout_s: float = 600) -> str:
        """Its standard output; AssertionError with what it said when it fails."""
        done = self.call(script, terminal=terminal, given=given, timeout_s=timeout_s)
        assert done.returncode == 0, f"{script}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def booted(self) -> bool:
        """Whether all units have been started; some may have failed."""
        return self.call("systemctl is-system-running").stdout.strip() in {"running", "degraded"}

    def write(self, path: str, text: str) -> None:
        """A file, its folder as well."""
        self.run(f"mkdir -p {shlex.quote(str(Path(path).parent))}; cat > {shlex.quote(path)}", given=text)

    def get(self, url: str, *flags: str) -> str | None:
        """What a server on it answers; None: it does not, or not with 200."""
        done = self.call(shlex.join(["curl", "-sS", "--fail", "--max-time", "20", *flags, url]))
        return done.stdout if done.returncode == 0 else None

    def scrape(self, url: str = "http://127.0.0.1:10047", *flags: str, within_s: float = WITHIN_S) -> Scrape:
        """The whole page, as soon as there is one."""
        answer = f"{url}/metrics?profile=full"
        return Scrape.of_text(eventually(lambda: self.get(answer, *flags), within_s=within_s, every_s=1))

    @contextlib.contextmanager
    def outside(
        self, container: str, *serve: str, user: int, listen: str = "127.0.0.1", port: int = 10048
    ) -> Iterator[str]:
        """Its URL: the same daemon beside its container, as the same user, without capabilities."""
        self.run(
            # systemd knows no user without a name
            f"getent passwd {user} || {{ groupadd --gid {user} other; useradd --uid {user} --gid {user} other; }};"
            f"rm -rf {DISK}/outside; mkdir -p {DISK}/outside; podman cp {container}:/opt/plumbline /opt/outside;"
            f"chown {user}:{user} {DISK}/outside; chmod 700 {DISK}/outside"
        )
        rights = [f"User={user}", f"Group={user}", "CapabilityBoundingSet=", "NoNewPrivileges=yes"]
        properties = [word for right in rights for word in ("-p", right)]
        flags = [f"--web.listen-address={listen}:{port}", f"--storage.path={DISK}/outside"]
        argv = ["systemd-run", "--unit=outside", *properties, "/opt/outside/bin/python", "-m", "plumbline", "serve"]
        self.run(shlex.join([*argv, *serve, *flags]))
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            self.call("systemctl stop outside; systemctl reset-failed outside; rm -rf /opt/outside")


def differing(host: Host, one: str, other: str) -> set[str]:
    """Series that one page has and the other has not."""
    pages = [{f"{each.name}{sorted(each.labels.items())}" for each in host.scrape(url).samples} for url in (one, other)]
    return pages[0] ^ pages[1]


def answered(said: str) -> dict[str, str]:
    """What ``plumbline doctor`` shows in a terminal, which wraps its cells where it is narrow: question → state."""
    lines = iter(re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines())
    head = next((line for line in lines if line.startswith("State ")), None)
    assert head is not None, said
    at, end = head.index("Question"), head.index("Answer")
    rows: list[list[str]] = []
    for line in lines:
        state, question = line[:at].strip(), line[at:end].strip()
        if state:
            rows.append([state, question])
        elif rows:
            rows[-1][1] += f" {question}" if question else ""
    return {question: state for state, question in rows}


@contextlib.contextmanager
def systemd_host(podman: Podman, name: str, *, target: str = "host", shared: Sequence[str] = ()) -> Iterator[Host]:
    """Booted; gone at the end with all that ran on it. ``shared``: more volumes, as podman takes them."""
    image = f"{IMAGE}-{target}"
    podman.build([f"--target={target}", "-t", image, "-f", str(IMAGES / "Containerfile"), str(IMAGES)])
    disk = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="plumbline-host-"))
    for folder in ("containers", "ceph"):
        (disk / folder).mkdir()
    volumes = [
        f"{disk}/containers:{DISK}", f"{disk}/ceph:/var/lib/ceph", f"{STORE}:/images:ro",
        *(f"{each}:{each}" for each in _hierarchies()), *shared,
    ]  # fmt: skip
    flags = [
        f"--name={name}", f"--hostname={name}", "--privileged", "--systemd=false", "--cgroupns=host", "--network=none",
        "--pids-limit=-1", "--env=container=podman", "--stop-signal=SIGRTMIN+3",
        *(f"--tmpfs={each}" for each in ("/sys/fs/cgroup", "/run", "/run/lock", "/tmp")),
        *(f"--volume={each}" for each in volumes),
    ]  # fmt: skip
    host, made = Host(podman, name), list[str]()
    try:
        made += podman.run("run", "-d", *flags, image, "sh", "-c", _INIT).split()
        podman.run("exec", name, "sh", "-e", "-c", _NETWORK)
        podman.run("exec", name, "mkdir", "-p", SHIPPED)
        for folder in FOLDERS:
            podman.run("cp", str(ROOT / folder), f"{name}:{SHIPPED}/{folder}")
        podman.run("cp", str(ROOT / "Containerfile"), f"{name}:{SHIPPED}/Containerfile")
        host.write("/etc/containers/containers.conf", CONFIGURATION.format(processes=30000, network="host"))
        host.write("/etc/containers/storage.conf", _STORAGE)
        eventually(host.booted, within_s=BOOT_S, every_s=1)
        yield host
    finally:
        made += host.call("podman events --stream=false --filter event=create --format '{{.ID}}'").stdout.split()
        host.call("podman stop --all --time=5; podman rm --all --force; podman umount --all")
        podman.call("stop", "--time=30", name)
        podman.call("rm", "--force", "--time=5", "--volumes", name)
        shutil.rmtree(disk, ignore_errors=True)
        _remove_groups(made)


def _hierarchies() -> list[str]:
    """Where this machine has a hierarchy of control groups."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [place for _, place, kind, *_ in mounts if kind in {"cgroup", "cgroup2"}]


def _remove_groups(containers: list[str]) -> None:
    """What these left behind, and nothing of anybody else's; a group in use stays."""
    for hierarchy in _hierarchies():
        for container in containers:
            top = Path(hierarchy, "libpod_parent", f"libpod-{container}")
            for group in sorted([top, *(each for each in top.rglob("*") if each.is_dir())], reverse=True):
                with contextlib.suppress(OSError):
                    group.rmdir()
