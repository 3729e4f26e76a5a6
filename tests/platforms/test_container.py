"""docs/container.md as it stands: the image is built, and the rows of its tables that this machine can have are run.

``make test-platforms`` (root) runs it with Debian's podman; elsewhere it is skipped. The base of the image is made by
debootstrap, and it and what is built are kept in ``.debian/``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import container_page
from support.container_page import NAME, PAGE, STATE, row
from support.daemon import eventually
from support.loops import Loops
from support.podman import Podman
from support.ports import free_port
from support.scraped import Scrape

PORT = 10047
WITHIN_S = 90.0
DISK_GROUP = 6

pytestmark = pytest.mark.timeout(1800)


@contextlib.contextmanager
def started(podman: Podman, *more: str, state: str = STATE) -> Iterator[None]:
    """The page's container, with the flags of a row; the volume stays."""
    argv = container_page.run(*more, exists=lambda path: Path(path).exists(), state=state)
    try:
        podman.run(*argv[1:])
        yield
    finally:
        podman.call("rm", "--force", "--time=5", NAME)


def logs(podman: Podman) -> str:
    done = podman.call("logs", NAME)
    return done.stdout + done.stderr


@pytest.fixture(autouse=True)
def _fresh(podman: Podman) -> Iterator[None]:
    podman.call("volume", "rm", "--force", NAME)
    yield
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
    with started(podman):
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
    with started(podman):
        scrape()
    with started(podman, *row("latency histograms (eBPF)"), state=STATE.removesuffix(":U")):
        eventually(lambda: "belongs to user 65534, and this process is user 0" in logs(podman), within_s=WITHIN_S)


def test_histograms_need_the_profile_before_podman_5(podman: Podman, tmp_path: Path) -> None:
    rights = row("latency histograms (eBPF)")
    major = int(podman.run("--version").split()[-1].partition(".")[0])
    with started(podman, *rights):
        if major >= 5:
            eventually(histograms, until=lambda seen: seen[0] > 0 and not seen[1], within_s=WITHIN_S, every_s=1)
        else:
            assert histograms() == (0, 1.0)
    profile = tmp_path / "seccomp.json"
    profile.write_bytes(subprocess.run([sys.executable, "-c", PAGE.written()], capture_output=True, check=True).stdout)
    with started(podman, *rights, f"--security-opt=seccomp={profile}"):
        eventually(histograms, until=lambda seen: seen[0] > 0 and not seen[1], within_s=WITHIN_S, every_s=1)


def test_smart_runs_with_its_rights(podman: Podman) -> None:
    with started(podman, *row("SMART, NVMe")):
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
        with started(podman, "-v", "/dev:/dev:ro"):
            assert podman.call(*read).returncode
        with started(podman, *row("raw disks")):
            assert podman.run(*read) == "512\n"
    finally:
        os.chown(disk, before.st_uid, before.st_gid)
        disk.chmod(before.st_mode & 0o7777)


@pytest.mark.parametrize("way", ["U", "chown"])
def test_the_way_back_from_root(podman: Podman, way: str) -> None:
    with started(podman, "--user=0"):
        scrape()
    if way == "chown":
        podman.run(*container_page.owned("65534:65534")[1:])
    with started(podman, state=STATE if way == "U" else STATE.removesuffix(":U")):
        scrape()
