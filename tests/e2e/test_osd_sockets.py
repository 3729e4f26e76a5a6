"""OSDs' admin sockets without a cluster: none here, none that may be asked, and the rights that docs/ceph.md names.

The unit's hardening is imitated with what makes it up: another user, a user namespace of its own (PrivateUsers), the
system read-only (ProtectSystem=strict). That it leaves Unix sockets to the service is read from the file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.admin_sockets import AdminSocket
from support.daemon import COMMAND, eventually, running, write_config
from support.osd_fleet import answers, osd_fleet
from support.programs import need

SYSTEMD = Path(__file__).parents[2] / "systemd"
NO_NAMESPACE = 77
OWNER, GROUP, OURS = 54321, 54322, 54323
"""Ceph's user and group, and the service's: numbers that nobody has."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not root: can't be somebody else")


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A directory that everybody may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="plumbline-osds-") as made:
        os.chmod(made, 0o755)  # noqa: PTH101
        yield Path(made)


def config_of(folder: Path) -> dict[str, object]:
    return {"probes": [], "ceph": {"admin_sockets": [f"{folder}/*-osd.*.asok"]}}


def test_a_host_without_osds_says_so_once(folder: Path, sockets: Path) -> None:
    with running(folder, config=config_of(sockets)) as daemon:
        page = daemon.metrics()
        assert page.get("plumbline_collector_available", collector="osd") == 0
        assert page.get("plumbline_collector_success", collector="osd") == 1, "normal on most hosts"
        assert not [name for name in page.names() if name.startswith("plumbline_osd_")]
        said = "no OSD's admin socket here, or none that this user may see; see docs/ceph.md"
        eventually(lambda: said in daemon.page())
        assert daemon.page().count(said) == 1
        assert "osd" not in daemon.said().lower()


def test_top_says_the_same_in_one_line(folder: Path, sockets: Path) -> None:
    said = top(folder, sockets)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == "plumbline: no OSD's admin socket here, or none that this user may see; see docs/ceph.md\n"


def test_osds_are_on_the_page_and_on_the_screen(folder: Path, sockets: Path) -> None:
    with osd_fleet(sockets, 12, peers=11), running(folder, config=config_of(sockets)) as daemon:
        page = eventually(lambda: (page := daemon.metrics()).names() >= {"plumbline_osd_socket_up"} and page)
        assert page.total("plumbline_osd_socket_up") == 12
        assert page.total("plumbline_osd_latency_seconds_count", operation="write") > 12 * 10_000
        said = top(folder, sockets, "--json")
        assert len(json.loads(said.stdout)["osds"]) == 12
        assert "12 OSDs, 0 operations/s" in top(folder, sockets, "--once").stdout


def test_one_that_hangs_is_on_both(folder: Path, sockets: Path) -> None:
    silent = AdminSocket(sockets / "ceph-osd.1.asok", {}, silent=True)
    other = AdminSocket(sockets / "ceph-osd.2.asok", answers(peers=2))
    try:
        with running(folder, config=config_of(sockets)) as daemon:
            page = eventually(lambda: (page := daemon.metrics()).names() >= {"plumbline_osd_socket_up"} and page)
            assert page.get("plumbline_osd_socket_up", ceph_daemon="osd.1") == 0
            assert page.get("plumbline_osd_socket_up", ceph_daemon="osd.2") == 1
            assert "osd.1 hung: " in top(folder, sockets, "--once").stdout
    finally:
        silent.close()
        other.close()


def top(folder: Path, sockets: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    config = write_config(folder, config_of(sockets))
    argv = [*COMMAND, "ceph", "top", "--config.file", config, "--interval", "0.2s", *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


ASKS = """
import _strptime, ctypes, os, sys  # later it could not be imported: this Python may be its owner's alone
from plumbline.errors import PlumblineError
import plumbline.core.jsontext
from plumbline.sources.ceph.osds import find_osds, read_osds
folder, us, group = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.setgroups([group]); os.setresgid(us, us, us); os.setresuid(us, us, us)
if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):  # CLONE_NEWUSER
    sys.exit(77)
try:
    open(folder + "/written", "w")
except OSError as error:
    print(error.strerror)
try:
    print(read_osds(find_osds([folder + "/*.asok"]), timeout_s=60)[0].state == "answers")
except PlumblineError as error:
    print(error)
"""


@as_root
@pytest.mark.parametrize(
    ("mode", "said"),
    [
        pytest.param(0o755, r".*osd\.7\.asok: permission denied; querying it needs write permission, .*", id="as made"),
        pytest.param(0o770, "True", id="with admin_socket_mode 0770"),
    ],
)
def test_connecting_takes_the_right_to_write(sockets: Path, mode: int, said: str) -> None:
    """Of a socket that Ceph's user owns and whose group is ours, the file system read-only, in a user namespace."""
    served = AdminSocket(sockets / "ceph-osd.7.asok", answers(peers=2))
    try:
        os.chown(sockets / "ceph-osd.7.asok", OWNER, GROUP)
        (sockets / "ceph-osd.7.asok").chmod(mode)
        read_only = f"mount --bind {sockets} {sockets} && mount -o remount,bind,ro {sockets}"
        python = [sys.executable, "-c", ASKS, str(sockets), str(OURS), str(GROUP)]
        done = subprocess.run(
            [need("unshare"), "--mount", "sh", "-c", f'{read_only} && exec "$@"', "sh", *python],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    finally:
        served.close()
    if done.returncode == NO_NAMESPACE:
        pytest.skip("this kernel gives user namespaces to root alone")
    assert done.returncode == 0, done.stderr
    read_only_said, answer = done.stdout.splitlines()
    assert read_only_said == "Read-only file system"
    assert re.fullmatch(said, answer), done.stdout


def settings(file: str) -> list[str]:
    return [line for line in (SYSTEMD / file).read_text().splitlines() if re.match(r"[A-Z]\w+=", line)]


def test_the_unit_leaves_unix_sockets_and_ceph_s_directory_to_the_service() -> None:
    unit = settings("plumbline.service")
    (families,) = [line for line in unit if line.startswith("RestrictAddressFamilies=")]
    assert "AF_UNIX" in families.partition("=")[2].split()
    hidden = [
        line for line in unit if line.startswith(("InaccessiblePaths=", "TemporaryFileSystem=", "RootDirectory="))
    ]
    assert hidden == []
    assert "SystemCallFilter=@system-service" in unit  # socket and connect are in it


def test_the_drop_in_gives_a_group_and_nothing_else() -> None:
    assert settings("drop-ins/osd-sockets.conf") == ["SupplementaryGroups=ceph"]
