"""docs/container.md as it stands: the image is built, and the rows of its tables that this machine can have are run.

``make test-platforms`` (root) runs it with Debian's podman; elsewhere it is skipped. The base of the image is made by
debootstrap, and it and what is built are kept in ``.debian/``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.daemon import eventually
from support.debian_host import BASES, Base, made
from support.loops import Loops
from support.newcomer import give
from support.ports import free_port
from support.scraped import Scrape

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "container.md").read_text("utf-8")
BASE = "docker.io/library/debian:bookworm-slim"
NAME, STATE, PORT = "plumbline", "plumbline:/var/lib/plumbline:U", 10047
WITHIN_S = 90.0
DISK_GROUP = 6

pytestmark = [
    pytest.mark.skipif(not os.environ.get("PLUMBLINE_PLATFORMS"), reason="takes minutes: make test-platforms"),
    pytest.mark.skipif(os.geteuid() != 0, reason="root is needed for containers"),
    pytest.mark.timeout(1800),
]


def commands(words: str) -> list[list[str]]:
    """The page's commands that begin with ``words``, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line) for line in lines if line.startswith(words)]


def row(purpose: str) -> list[str]:
    """The flags of one row of the page."""
    (found,) = re.findall(rf"^\| {re.escape(purpose)} \| (.*) \|$", PAGE, re.MULTILINE)
    return [flag for words in re.findall(r"`(-[^`]*)`", found) for flag in shlex.split(words)]


@dataclass(frozen=True)
class Podman:
    """With its images and volumes apart from the machine's own."""

    flags: tuple[str, ...]
    configuration: Path

    def call(self, *argv: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        """Whatever comes of it."""
        environment = os.environ | {"CONTAINERS_CONF": str(self.configuration)}
        return subprocess.run(
            ["podman", *self.flags, *argv], env=environment, cwd=ROOT, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip

    def run(self, *argv: str) -> str:
        """Its standard output; AssertionError with what it said when it fails."""
        done = self.call(*argv)
        assert done.returncode == 0, f"{shlex.join(argv)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    @contextlib.contextmanager
    def started(self, *more: str, state: str = STATE) -> Iterator[None]:
        """The page's container, with the flags of a row; the volume stays."""
        (argv,) = commands("podman run")
        image = argv.pop()
        for at in [number for number, word in enumerate(argv) if word == "-v"][::-1]:
            if argv[at + 1] == STATE:
                argv[at + 1] = state
            elif not Path(argv[at + 1].partition(":")[0]).exists():
                del argv[at : at + 2]  # a machine without udev, or without Ceph
        try:
            self.run(*argv[1:], *more, image)
            yield
        finally:
            self.call("rm", "--force", "--time=5", NAME)

    def logs(self) -> str:
        done = self.call("logs", NAME)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed (Debian package podman)")
    folder = tmp_path_factory.mktemp("podman")
    configuration = folder / "containers.conf"
    # no systemd here that would make control groups; the limits of an ordinary login
    configuration.write_text(
        '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=32000:32000"]\n'
        '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n'
    )
    BASES.mkdir(exist_ok=True)
    podman = Podman(
        (f"--root={BASES.resolve() / 'podman'}", f"--runroot={BASES.resolve() / 'podman-run'}"), configuration
    )
    try:
        if podman.call("image", "exists", BASE).returncode:
            _import_base(podman, folder)
        ((program, *build),) = commands("podman build")
        assert program == "podman"
        podman.run(*build[:-1], "--network=host", "--layers", build[-1])
        yield podman
    finally:
        podman.call("volume", "rm", "--force", NAME)
        podman.call("image", "prune", "--force")


def _import_base(podman: Podman, folder: Path) -> None:
    """A Debian with what leads to this machine's registries, as the page says for a proxy."""
    base, tree = made(Base("container", installed=("ca-certificates",), suite="bookworm")), folder / "base"
    subprocess.run(["cp", "-a", base, tree], check=True)
    give(tree)
    subprocess.run(["tar", "-C", tree, "-cf", folder / "base.tar", "."], check=True)
    podman.run("import", str(folder / "base.tar"), BASE)


@pytest.fixture(autouse=True)
def _fresh(podman: Podman) -> None:
    podman.call("volume", "rm", "--force", NAME)


def scrape(port: int = PORT) -> Scrape:
    """The whole page, as soon as there is one."""

    def look() -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?profile=full", timeout=20) as answer:
                return answer.read().decode()  # type: ignore[no-any-return]
        except OSError:
            return None

    return Scrape.of_text(eventually(look, within_s=WITHIN_S, every_s=0.5))


def series(port: int) -> set[str]:
    return {f"{each.name} {json.dumps(each.labels, sort_keys=True)}" for each in scrape(port).samples}


def histograms() -> tuple[int, float | None]:
    """Buckets of disks, and what the finding about them says: 1, they are missing."""
    page = scrape()
    return len(page.series("plumbline_disk_latency_seconds_bucket")), page.get(
        "plumbline_finding", check="disk.latency-histograms"
    )


def test_it_has_the_series_of_a_process_outside(podman: Podman, tmp_path: Path) -> None:
    with podman.started():
        outside = Path("/var/tmp") / f"plumbline-outside-{os.getpid()}"  # nobody can read it there
        try:
            podman.run("cp", f"{NAME}:/opt/plumbline", str(outside))
            python = outside / "bin/python"
            if subprocess.run([python, "-c", "import plumbline"], capture_output=True, check=False).returncode:
                pytest.skip("this machine's python3 is not of the image's release")
            state, port = outside / "state", free_port()
            state.mkdir(mode=0o700)
            os.chown(state, 65534, 65534)
            user = [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--bounding-set=-all",
                "--no-new-privs",
            ]
            serve = ["-m", "plumbline", "serve", f"--web.listen-address=127.0.0.1:{port}", f"--storage.path={state}"]
            with subprocess.Popen([*user, python, *serve], cwd="/", stderr=subprocess.DEVNULL) as process:
                try:
                    eventually(
                        lambda: series(port) ^ series(PORT), until=lambda found: not found, within_s=WITHIN_S, every_s=2
                    )
                finally:
                    process.terminate()
        finally:
            shutil.rmtree(outside, ignore_errors=True)
        page = scrape()
        assert {sample.value for sample in page.series("plumbline_collector_success")} == {1.0}


def test_root_without_the_right_to_override_is_refused_the_state_of_another_user(podman: Podman) -> None:
    with podman.started():
        scrape()
    with podman.started(*row("latency histograms (eBPF)"), state=STATE.removesuffix(":U")):
        eventually(lambda: "belongs to user 65534, and this process is user 0" in podman.logs(), within_s=WITHIN_S)


def test_histograms_need_the_profile_before_podman_5(podman: Podman, tmp_path: Path) -> None:
    flags = row("latency histograms (eBPF)")
    major = int(podman.run("--version").split()[-1].partition(".")[0])
    with podman.started(*flags):
        if major >= 5:
            eventually(histograms, until=lambda seen: seen[0] > 0 and not seen[1], within_s=WITHIN_S, every_s=1)
        else:
            assert histograms() == (0, 1.0)
    script = re.search(r"<<'END' > \S+\n(.*?)\nEND$", PAGE, re.MULTILINE | re.DOTALL)
    assert script
    profile = tmp_path / "seccomp.json"
    profile.write_bytes(subprocess.run([sys.executable, "-c", script[1]], capture_output=True, check=True).stdout)
    with podman.started(*flags, f"--security-opt=seccomp={profile}"):
        eventually(histograms, until=lambda seen: seen[0] > 0 and not seen[1], within_s=WITHIN_S, every_s=1)


def test_smart_runs_with_its_rights(podman: Podman) -> None:
    with podman.started(*row("SMART, NVMe")):
        assert scrape().get("plumbline_collector_success", collector="health") == 1.0
        held = podman.run("exec", NAME, "sh", "-c", "grep CapBnd /proc/self/status").split()[1]
        assert int(held, 16) == 1 << 17 | 1 << 21 | 1 << 2  # sys_rawio, sys_admin, dac_read_search


def test_the_group_of_disks_reads_one(podman: Podman, loops: Loops) -> None:
    disk = Path("/dev", loops.disk())
    before = disk.stat()
    read = ["exec", NAME, "python3", "-c", f"print(len(open('{disk}', 'rb').read(512)))"]
    os.chown(disk, 0, DISK_GROUP)
    disk.chmod(0o660)
    try:
        with podman.started("-v", "/dev:/dev:ro"):
            assert podman.call(*read).returncode
        with podman.started(*row("raw disks")):
            assert podman.run(*read) == "512\n"
    finally:
        os.chown(disk, before.st_uid, before.st_gid)
        disk.chmod(before.st_mode & 0o7777)


@pytest.mark.parametrize("way", ["U", "chown"])
def test_the_way_back_from_root(podman: Podman, way: str) -> None:
    with podman.started("--user=0"):
        scrape()
    if way == "chown":
        (argv,) = commands("docker run")
        podman.run(*["65534:65534" if word == "0:0" else word for word in argv[1:]])
    with podman.started(state=STATE if way == "U" else STATE.removesuffix(":U")):
        scrape()
