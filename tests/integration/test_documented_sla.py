"""docs/documented-sla.md, command by command, until a real Prometheus judges; and ``plumbline doctor``."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.daemon import COMMAND, Daemon, eventually, running
from support.disks import disk_folder
from support.ports import free_port
from support.prometheus import RULES, Prometheus, prometheus

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]
PAGE = Path(__file__).parents[2] / "docs" / "documented-sla.md"
CONFIGURATION, STORAGE, SERVER = "/etc/plumbline/plumbline.yaml", "/var/lib/plumbline", "http://PROMETHEUS:9090"
MINE = """\
# What the node does already.
web: {listen_address: "127.0.0.1:10047"}
probes:
  - {type: canary, name: canary, device_class: ssd, file_size: 4MiB}   # always on
"""
JUDGES = {"unnoba-2020": "randread-4k-qd1-j1", "infn-2025": "randread-4k-qd1-j8"}
"""The documents whose figures may judge → the workload that is measured for an SSD. The canary here reads the first."""


def commands() -> list[list[str]]:
    """Every line of the page's ``sh`` blocks as a list of words."""
    blocks = re.findall(r"(?ms)^```sh\n(.+?)^```$", PAGE.read_text("utf-8"))
    return [shlex.split(line) for block in blocks for line in block.replace("\\\n", " ").splitlines()]


@dataclass
class Node:
    """A node with a daemon; ``profile``: what it shall be judged by; ``server``: where its Prometheus is."""

    folder: Path
    profile: str
    server: str = ""

    @property
    def file(self) -> Path:
        return self.folder / "plumbline.yaml"

    def run(self, words: list[str], *more: str) -> subprocess.CompletedProcess[str]:
        """A command of the page, with this node's paths and addresses."""
        told = {CONFIGURATION: str(self.file), STORAGE: str(self.folder / "state"), "unnoba-2020": self.profile}
        told |= {SERVER: self.server}
        argv = [*COMMAND, *(told.get(word, word) for word in words[1:]), *more]
        return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def test_the_page_has_the_commands_that_are_run_here() -> None:
    assert [" ".join(words[1:3]) for words in commands()] == [
        "baseline advise", "baseline advise", "config check", "baseline list", "probe list", "doctor --config.file",
    ]  # fmt: skip
    assert {word for words in commands() for word in words if word.startswith(("/", "http"))} == {
        CONFIGURATION, STORAGE, SERVER,
    }  # fmt: skip


@pytest.mark.parametrize("profile", JUDGES)
def test_from_nothing_to_a_judged_panel(tmp_path_factory: pytest.TempPathFactory, profile: str) -> None:
    with disk_folder(tmp_path_factory) as folder:
        node = Node(folder, profile)
        node.file.write_text(MINE)
        see, add, check, listed, probes, doctor = commands()
        # the class of this machine's disks is not known to its kernel
        seen = node.run(see, "--device-class", "ssd")
        assert seen.returncode == 0, seen.stderr
        assert f"judge: {{ssd: {profile if profile == 'unnoba-2020' else 'unnoba-2020'}}}" in seen.stdout
        assert node.file.read_text() == MINE

        printed = node.run(add, "--device-class", "ssd")
        assert (printed.returncode, printed.stderr) == (0, "")
        lines = printed.stdout.partition("Add to the configuration:\n")[2]
        more = yaml.safe_load("".join(re.findall(r"(?m)^  .*\n", lines)))
        config = yaml.safe_load(MINE)
        config["probes"] += more.get("probes", [])
        config["baseline"] = more["baseline"]
        node.file.write_text(yaml.safe_dump(config))
        assert node.run(check).stdout == f"{node.file}: good\n"
        assert config["baseline"]["judge"] == {"ssd": profile}
        assert [each.get("workload") for each in config["probes"]][-1] in {JUDGES[profile], None}
        assert "Nothing to add: what is comparable is measured" in node.run(add, "--device-class", "ssd").stdout
        judging = {each["name"]: each["judges"] for each in json.loads(node.run(listed, "--json").stdout)}
        assert judging == {name: ["ssd"] if name == profile else [] for name in judging}
        assert node.run(probes).returncode == 0

        _judged(node, doctor)


def _judged(node: Node, doctor: list[str]) -> None:
    """The daemon with this configuration under a real Prometheus: the panel's series is there."""
    hurried = node.file.read_text().replace("interval: 1h", "interval: 10s").replace("runtime: 5s", "runtime: 1s")
    hurried = hurried.replace("timeout: 5m", "timeout: 5s").replace("1024MiB", "4MiB").replace("128MiB", "4MiB")
    config: dict[str, Any] = yaml.safe_load(hurried)
    for probe in config["probes"]:
        if probe["type"] == "fio":
            probe |= {"max_load_per_cpu": 1000, "max_device_busy": 1.0}
        else:
            probe["rate"] = 40
    with (
        running(node.folder, config=config) as daemon,
        prometheus(node.folder, target=daemon.url.removeprefix("http://")) as server,
    ):
        node.server = server.url
        source = f'source="documented", workload="{JUDGES[node.profile]}"'
        found = eventually(lambda: server.query(f"plumbline:degradation:ratio{{{source}}}"), within_s=180)
        assert found
        assert f"documented: {node.profile}" in daemon.page()
        assert f"documented: {node.profile}, ssd: " in daemon.page()
        done = node.run(doctor, "--daemon", daemon.url, "--json")
        answers = {each["question"]: each["state"] for each in json.loads(done.stdout)["answers"]}
        assert answers["is it scraped"] == "ok"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with disk_folder(tmp_path_factory) as found:
        yield found


SITE = {
    "schema_version": 1,
    "entries": [{"workload": "randread-4k-qd1-j1", "device_class": "ssd", "latency": {"p50": "1ms", "p99": "2ms"}}],
}
CANARY = {"type": "canary", "name": "canary", "device_class": "ssd", "file_size": "4MiB", "rate": 40,
          "workloads": ["randread-4k-qd1-j1"]}  # fmt: skip


def doctor(daemon: Daemon, *flags: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and question → state and answer."""
    argv = [*COMMAND, "doctor", "--config.file", str(daemon.storage.parent / "plumbline.yaml"), "--daemon", daemon.url,
            "--json", *flags]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    said = json.loads(done.stdout)
    assert said["missing"] == sum(each["state"] == "missing" for each in said["answers"])
    return done.returncode, {each["question"]: (each["state"], each["says"]) for each in said["answers"]}


def linked(folder: Path, url: str) -> Path:
    """The rules of a site that has a Grafana at ``url``."""
    made = folder / "rules"
    made.mkdir()
    for file in RULES.glob("*.yaml"):
        document = yaml.load(file.read_bytes(), yaml.CSafeLoader)
        for group in document["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    rule["annotations"]["dashboard_url"] = url
        (made / file.name).write_text(yaml.dump(document, Dumper=yaml.CSafeDumper))
    return made


def test_the_doctor_of_a_whole_installation_and_of_one_part_after_the_other_gone(folder: Path) -> None:
    site = folder / "site.yaml"
    site.write_text(json.dumps(SITE))
    config = {"probes": [CANARY], "baseline": {"files": [str(site)]}, "ceph": {"conf": str(folder / "no-ceph.conf")}}
    with running(folder, config=config) as daemon:
        rules = linked(folder, f"{daemon.url}/-/healthy")
        target = daemon.url.removeprefix("http://")
        with prometheus(folder, target=target, rules=rules, alertmanager=f"127.0.0.1:{free_port()}") as server:
            code, answers = eventually(lambda: _well(daemon, server), within_s=180)
            assert code == 0
            assert answers["is it scraped"] == ("ok", f"by {server.url}, as instance {target}")
            assert answers["do links to runbooks resolve"][1].startswith(f"{daemon.url}/runbooks/")
            assert answers["does Ceph answer"][0] == "not asked"

            daemon.reload({**config, "baseline": {}})
            code, answers = doctor(daemon, "--prometheus", server.url)
            assert (code, answers["is there a baseline"]) == (1, ("missing", "no baseline judges: canary"))

            daemon.stop()
            code, answers = doctor(daemon, "--prometheus", server.url)
            assert code == 1
            assert answers["is the daemon up"][0] == answers["is it scraped"][0] == "missing"
            assert "is there a baseline" not in answers
    # and Prometheus gone
    code, answers = doctor(daemon, "--prometheus", server.url, "--timeout", "1s")
    assert (code, answers["do rules see it"][0]) == (1, "missing")


def _well(daemon: Daemon, server: Prometheus) -> tuple[int, dict[str, tuple[str, str]]] | None:
    code, answers = doctor(daemon, "--prometheus", server.url)
    return (code, answers) if code == 0 else None


def test_the_doctor_without_prometheus_counts_what_it_did_not_ask_as_nothing(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(json.dumps(SITE))
    config = {"probes": [CANARY], "baseline": {"files": [str(site)]}, "ceph": {"conf": str(tmp_path / "no-ceph.conf")}}
    with running(tmp_path, config=config) as daemon:
        code, answers = doctor(daemon)
    assert code == 0, os.linesep.join(map(str, answers.items()))
    assert [question for question, (state, _) in answers.items() if state == "not asked"] == [
        "is it scraped", "do rules see it", "are the labels of Ceph's metrics what rules take them for",
        "does an Alertmanager get its alerts", "do links to runbooks resolve", "do links to dashboards resolve",
        "does Ceph answer",
    ]  # fmt: skip
