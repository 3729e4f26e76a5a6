"""Every command of every runbook that this machine can run is run: on a node (ssh runs it here), with a real daemon,
Prometheus and, in ``test_ceph_runbooks.py``, a real cluster. It may find nothing; it must not be a mistake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from requirements.programs import listed

from plumbline import cli
from support.daemon import eventually, running
from support.programs import need
from support.prometheus import prometheus
from support.rules import RULES
from support.runbook_node import NOT_HERE, Node, bad, meanings, missing, path_of, prelude_of, shim
from support.runbooks import SETUP, code_blocks, lines

pytestmark = pytest.mark.integration

CLUSTER = re.compile(r"\b(ceph|ceph_daemon|rados|rbd|cephfs-journal-tool)\b(?!\.)")
BELONGS_TO_PROMETHEUS = ("promtool check config /etc", "promtool check rules /etc", "amtool check-config /etc")
"""Files that this machine has not."""
INSTALLATIONS = ("package", "wheel", "compose", "cephadm", "Kubernetes")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    need("prometheus")
    folder = tmp_path_factory.mktemp("runbooks")
    shims = folder / "bin"
    shims.mkdir()
    shim(shims, "ssh", 'shift; exec sh -c "$*"')
    with running(folder, config={"probes": []}) as daemon:
        address = urlsplit(daemon.url).netloc
        (folder / "rules").mkdir()
        shutil.copy(RULES, folder / "rules")
        (folder / "log").write_text("collector probe health config\n")
        with prometheus(folder, target=address, rules=folder / "rules") as server:
            eventually(lambda: server.query("plumbline_build_info"))
            yield Node(
                prelude_of(folder, daemon), meanings(folder, address, server.url), os.environ | {"PATH": path_of(shims)}
            )


def on_a_node(heading: str) -> dict[str, dict[str, str]]:
    return {
        line: known
        for line, known in lines(heading).items()
        if not CLUSTER.match(line) and not line.startswith(BELONGS_TO_PROMETHEUS)
    }


def run_all(node: Node, heading: str) -> dict[str, subprocess.CompletedProcess[str]]:
    """Line → its end, of all lines whose programs are here: those that are not are named, with the reason."""
    asked = on_a_node(heading)
    lacking = {name for line in asked for name in missing(line)}
    assert lacking <= NOT_HERE.keys() | listed().keys(), lacking - NOT_HERE.keys()
    here = [line for line in asked if not missing(line)]
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(here, pool.map(lambda line: node.run(line, asked[line]), here), strict=True))


@pytest.mark.long
def test_every_command_of_a_diagnosis_is_understood(node: Node) -> None:
    """On a machine with few of these programs this runs less: what it must be able to is counted at the end."""
    done = run_all(node, "Diagnosis")
    wrong = [f"{line}\n{each.returncode} {each.stderr[-400:]}" for line, each in done.items() if bad(each)]
    assert not wrong, "\n".join(wrong)
    assert len(done) > 150
    assert sum(each.returncode == 0 for each in done.values()) > len(done) / 2


SAFE = """
set -e
mount --make-rprivate /
mount --bind "$FOLDER" "$FOLDER"
ip link set lo up
ip link add ens2f0 type veth peer name ens2f1
ip link add bond0 type veth peer name bond1
mount -t sysfs -o ro sysfs /sys
mount -t tmpfs -o mode=755 none /dev
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/zero c 1 5
mknod -m 666 /dev/urandom c 1 9
mount -o remount,bind,ro /proc
mount -o remount,bind,ro /
exec "$@"
"""
"""A host on which nothing can be broken: ports of its own, no disk, files and the kernel's settings read-only."""


@pytest.mark.long
@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces")
def test_every_command_that_mends_is_understood(node: Node) -> None:
    """Where it can do no harm. Those of Ceph: ``test_ceph_runbooks.py``."""
    folder = node.here["/etc/plumbline"]
    inside = ("unshare", "--net", "--mount", "env", f"FOLDER={folder}", "sh", "-c", SAFE, "sh")
    safe = replace(node, inside=inside)
    assert safe.run("touch /etc/x /proc/sys/vm/swappiness", {}).stderr.count("Read-only file system") >= 1
    assert safe.run("ls /dev", {}).stdout.split() == ["null", "urandom", "zero"]
    done = run_all(safe, "Mitigation")
    wrong = [f"{line}\n{each.returncode} {each.stderr[-400:]}" for line, each in done.items() if bad(each)]
    assert not wrong, "\n".join(wrong)
    assert len(done) > 40
    links = [each.returncode for line, each in done.items() if " ip link set " in line]
    assert len(links) >= 5
    assert set(links) == {0}


def test_a_mistake_would_be_found(node: Node) -> None:
    for line in (
        'ssh "$NODE" ps --nonsense',
        'ssh "$NODE" $PLUMBLINE chek',
        'ssh "$NODE" "lsblk -o NAME,NONSENSE"',
        "nothing-of-this-name",
    ):
        assert bad(node.run(line, {"NODE": "stor01.example"})), line


# --- installations -------------------------------------------------------------------------------------------------

RECORD = 'printf "%s\\n" "$(basename "$0")" "$@" >> "$RECORD"; printf "==\\n" >> "$RECORD"'


def setup_of(number: int) -> str:
    """The block of one installation; the wheel's stands on the package's."""
    first, *blocks = code_blocks(SETUP.read_text("utf-8"))
    return first + (blocks[0] + blocks[1] if number == 1 else blocks[number])


@pytest.fixture
def ran(tmp_path: Path) -> Callable[[int, str], list[list[str]]]:
    """Runs a line with the variables of an installation → what was really executed on the node, as argument lists."""
    shims = tmp_path / "bin"
    shims.mkdir()
    for name in (
        "plumbline",
        "docker",
        "cephadm",
        "crictl",
        "systemctl",
        "systemd-run",
        "journalctl",
        "ceph",
        "kubectl",
    ):
        answers = 'case "$1" in ps) echo 0123abcd; exit;; volume) echo /volumes/state; exit;; esac; '
        shim(shims, name, answers + RECORD)
    shim(shims, "ssh", 'shift; exec sh -c "$*"')
    shim(shims, "hostname", "echo stor01")
    environment = {"PATH": f"{shims}:{os.environ['PATH']}", "RECORD": str(tmp_path / "record"), "NODE": "stor01"}

    def run(number: int, line: str) -> list[list[str]]:
        script = setup_of(number).replace("/opt/plumbline/bin/", "") + line
        subprocess.run(["bash", "-euc", script], env=environment, check=True, timeout=60)
        return [call.strip("\n").split("\n") for call in (tmp_path / "record").read_text().split("==\n") if call]

    return run


@pytest.mark.parametrize("number", range(len(INSTALLATIONS)), ids=INSTALLATIONS)
def test_every_installation_runs_plumbline_with_the_daemons_flags(number: int, ran: Callable[..., Any]) -> None:
    (call,) = ran(number, 'ssh "$NODE" $PLUMBLINE disk "sda" $PLUMBLINE_FLAGS')
    at = max(place for place, word in enumerate(call) if word == "plumbline")
    options = cli._parser().parse_args(call[at + 1 :])
    assert options.device == "sda"
    assert str(options.config_file) == "/etc/plumbline/plumbline.yaml"
    host = number in (0, 1)
    assert str(options.path_procfs) == ("/proc" if host else "/host/proc")
    expected = {
        2: ["docker", "exec", "0123abcd"],
        3: ["cephadm", "enter", "--name", "container.plumbline.stor01", "--"],
        4: ["crictl", "exec", "0123abcd"],
    }
    assert call[:at] == expected.get(number, [])


@pytest.mark.parametrize("number", range(len(INSTALLATIONS)), ids=INSTALLATIONS)
def test_every_installation_records_reloads_and_shows_its_log(number: int, ran: Callable[..., Any]) -> None:
    calls = ran(
        number,
        'ssh "$NODE" $PLUMBLINE_AS_DAEMON baseline record --replace $PLUMBLINE_FLAGS\n'
        'ssh "$NODE" $PLUMBLINE_LOG | cat\nssh "$NODE" $PLUMBLINE_STATUS | cat\n'
        'ssh "$NODE" $PLUMBLINE_RELOAD\nssh "$NODE" $PLUMBLINE_RESTART\nssh "$NODE" echo "$PLUMBLINE_STATE"',
    )
    manager = ("systemctl", "systemctl", "docker", "cephadm", "crictl")[number]
    assert [call[0] for call in calls if call[0] == manager][-2:] == [manager, manager]
    assert "record" in calls[0]
    if number < 2:
        assert calls[0][0] == "systemd-run"


@pytest.mark.parametrize(
    ("number", "call"),
    [
        (5, ["ceph", "orch", "daemon", "restart", "osd.71"]),
        (6, ["systemctl", "restart", "ceph-osd@71"]),
        (7, ["kubectl", "-n", "rook-ceph", "rollout", "restart", "deployment/rook-ceph-osd-71"]),
    ],
    ids=["cephadm", "packages", "Rook"],
)
def test_a_daemon_of_ceph_is_restarted_as_its_installation_does_it(
    number: int, call: list[str], ran: Callable[..., Any]
) -> None:
    assert ran(number, 'ceph_daemon restart "osd.71"') == [call]


def test_each_installation_has_its_block() -> None:
    assert len(code_blocks(SETUP.read_text("utf-8"))) == 1 + len(INSTALLATIONS) + 3
