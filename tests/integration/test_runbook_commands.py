"""Every command of every runbook that this machine can run is run: on a node (ssh runs it here), with a real daemon,
Prometheus and, in ``test_ceph_runbooks.py``, a real cluster. It may find nothing; it must not be a mistake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from plumbline import cli
from support.daemon import Daemon, eventually, running
from support.programs import need
from support.prometheus import prometheus
from support.rules import RULES
from support.runbooks import SETUP, code_blocks, lines, programs

pytestmark = pytest.mark.integration

MISTAKE = re.compile(
    r"(invalid|unrecognized|unknown|illegal|unexpected) (option|subcommand|command|column|operator|predicate|user)"
    r"|(unrecognized|unknown|unexpected) arguments?"
    r"|usage:|syntax error|bad flag|no such option|command not found|missing operand|unbound variable|parse error"
    r"|conversion .* unknown|unrecogni[sz]ed option|invalid choice|Unmatched|is unknown, try",
    re.IGNORECASE,
)
OWN = {"for", "done", "cat", "ls", "plumbline", "ceph_daemon"}
"""Words of the shell and names that the tests give a meaning."""
STOPS_S = 6
"""Commands that watch (``iostat 1 60``) are ended after this long: by then they have understood their options."""
CLUSTER = re.compile(r"\b(ceph|rados|rbd|cephfs-journal-tool)\b(?!\.)")
BELONGS_TO_PROMETHEUS = ("promtool check config /etc", "promtool check rules /etc", "amtool check-config /etc")
"""Files that this machine has not."""
INSTALLATIONS = ("package", "wheel", "compose", "cephadm", "Kubernetes")


@dataclass(frozen=True)
class Node:
    """Where lines are run: what stands before each, and which text of the pages means what here."""

    prelude: str
    here: Mapping[str, str]
    environment: Mapping[str, str]

    def run(self, line: str, known: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        values = {name: self.value(name, value) for name, value in known.items()}
        script = self.prelude + "".join(f"{name}={value}\n" for name, value in values.items()) + line
        for text, meant in self.here.items():
            script = script.replace(text, meant)
        argv = ["timeout", "--kill-after=2", str(STOPS_S), "bash", "-uc", script]
        return subprocess.run(
            argv, capture_output=True, text=True, errors="replace", env=dict(self.environment), check=False, timeout=60
        )

    def value(self, name: str, example: str) -> str:
        """A network card where the page has one, a disk where it has one."""
        if name in ("DEVICE", "SLAVE") and re.match(r"en|bond", example):
            return min((path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo"), default="lo")
        if name in ("DEVICE", "DISK"):
            return min(path.name for path in Path("/sys/block").iterdir())
        return example


def shim(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


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


def path_of(shims: Path) -> str:
    return f"{shims}:{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"


def prelude_of(folder: Path, daemon: Daemon) -> str:
    """What setup.md sets, for a daemon that no service manager runs."""
    return (
        f"PLUMBLINE=plumbline PLUMBLINE_AS_DAEMON=plumbline PLUMBLINE_LOG='cat {folder}/log'\n"
        f"PLUMBLINE_FLAGS='--config.file {folder}/plumbline.yaml --storage.path {folder}'\n"
        "PROMETHEUS=http://localhost:9090\n"
        f"PLUMBLINE_STATE={folder} PLUMBLINE_STATUS='kill -0 {daemon.pid}'\n"
    )


def meanings(folder: Path, address: str, prometheus_url: str) -> dict[str, str]:
    return {
        "stor01.example:10047": address,
        "http://localhost:10047": f"http://{address}",
        "prom.example:9090": urlsplit(prometheus_url).netloc,
        "http://localhost:9090": prometheus_url,
        "192.0.2.12": "127.0.0.1",
        "stor01.example": "127.0.0.1",
        "/etc/plumbline": str(folder),
        "/var/tmp/by-hand": f"{folder}/by-hand",
        "--size=64M": "--size=1M",
        "--runtime=10 ": "--runtime=1 ",
    }


def on_a_node() -> dict[str, dict[str, str]]:
    return {
        line: known
        for line, known in lines("Diagnosis").items()
        if not CLUSTER.match(line) and not line.startswith(BELONGS_TO_PROMETHEUS)
    }


def missing(line: str) -> set[str]:
    """Programs that a line needs and this machine lacks."""
    return {name for name in programs(line) - OWN if shutil.which(name) is None}


@pytest.mark.long
def test_every_command_of_a_diagnosis_is_understood(node: Node) -> None:
    """On a machine with few of these programs this runs less: what it must be able to is counted at the end."""
    asked = {line: known for line, known in on_a_node().items() if not missing(line)}
    with ThreadPoolExecutor(8) as pool:
        done = dict(zip(asked, pool.map(lambda line: node.run(line, asked[line]), asked), strict=True))
    wrong = [f"{line}\n{each.returncode} {each.stderr[-400:]}" for line, each in done.items() if bad(each)]
    assert not wrong, "\n".join(wrong)
    assert len(done) > 150
    assert sum(each.returncode == 0 for each in done.values()) > len(done) / 2


def bad(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode in (126, 127) or MISTAKE.search(done.stderr) is not None


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
