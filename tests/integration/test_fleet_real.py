"""A fleet of real nodes, each a namespace with its own sshd, files and network: recorded in waves with an interruption,
judged, accepted, put in place, taken by daemons; one node is replaced, two are upgraded, files are refused.

The tests are one story and stand in its order; the fixture at the top has told its beginning.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.daemon import COMMAND, eventually
from support.sshd_fleet import SshFleet, ssh_fleet, write_node_config

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make namespaces"),
]
# long beside what a busy machine adds
DELAYS = {"stor01": 0.05, "stor02": 0.05, "stor03": 0.05, "stor04": 0.05, "stor05": 0.15}
SLOW = "stor05"
DOMAINS = {"stor01": "rack1", "stor02": "rack1", "stor03": "rack2", "stor04": "rack2", "stor05": "rack3"}
OF_A_CLASS, RUNS = 0.5, ("--runs", "3")
WITHIN_S = 60.0


class Story(NamedTuple):
    """The fleet, and how its recording went: the interrupted one, what it left, and the one that went on."""

    fleet: SshFleet
    stopped: subprocess.CompletedProcess[str]
    left: dict[str, Any]
    resumed: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("fleet")
    with ssh_fleet(folder, DELAYS, DOMAINS) as fleet:
        signers = folder / "etc/allowed_signers"
        for node in fleet.nodes.values():
            write_node_config(node.folder, allowed_signers=str(signers))
            (node.folder / "etc/allowed_signers").write_text(f"ada@example {(folder / 'key.pub').read_text()}")
        stopped = _interrupted(fleet)
        assert (folder / "fleet/fleet.json").exists(), stopped
        left = json.loads((folder / "fleet/fleet.json").read_text())
        resumed = fleet.run("record", "--share", str(OF_A_CLASS), *RUNS, asks=True)
        yield Story(fleet, stopped, left, resumed)


def _interrupted(fleet: SshFleet) -> subprocess.CompletedProcess[str]:
    """A recording that gets SIGTERM while its second wave measures."""
    argv = fleet.argv("record", "--dir", fleet.folder / "fleet", "--share", str(OF_A_CLASS), *RUNS, *fleet.on_nodes())
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = ""
        for line in process.stdout:
            said += line
            if "(wave 2 of" in line and ", run 2 of 3" in line:
                break
        process.send_signal(signal.SIGTERM)  # once: a second one ends the command at once
        said += process.stdout.read()
        return subprocess.CompletedProcess(argv, process.wait(60), said, process.stderr.read())


def test_an_interrupted_recording_goes_on_where_it_was(story: Story) -> None:
    assert story.stopped.returncode == 130, story.stopped.stderr
    assert "2 of 5 nodes are recorded, the next `fleet record` goes on" in story.stopped.stderr
    turns = story.left["turns"]
    assert sorted(name for name, turn in turns.items() if turn.get("status") == "recorded") == ["stor01", "stor03"]
    assert sorted(name for name, turn in turns.items() if turn.get("status") == "running") == ["stor02", "stor04"]

    assert story.resumed.returncode == 0, story.resumed.stderr
    assert "continuing: 2 of 5 nodes are recorded" in story.resumed.stderr
    assert "measuring stor02, stor04" in story.resumed.stdout
    assert "stor01" not in story.resumed.stdout
    assert "left" in story.resumed.stdout
    kept = story.fleet.folder / "fleet/recorded"
    assert sorted(file.stem for file in kept.glob("*.yaml")) == sorted(DELAYS)


def test_no_two_nodes_of_a_domain_and_no_more_than_the_share_measured_at_once(story: Story) -> None:
    turns = json.loads((story.fleet.folder / "fleet/fleet.json").read_text())["turns"]
    spans = {name: (turn["finished"] - turn["seconds"], turn["finished"]) for name, turn in turns.items()}
    for name, (began, _) in spans.items():
        beside = {other for other, (start, end) in spans.items() if start <= began < end} - {name}
        assert all(DOMAINS[other] != DOMAINS[name] for other in beside)
        assert len(beside) + 1 <= OF_A_CLASS * len(DELAYS)


def test_the_slow_node_is_found_before_it_is_accepted(story: Story) -> None:
    found = story.fleet.run("review")
    assert found.returncode == 1, found.stderr
    assert f"out of line: {SLOW}: network" in found.stdout
    assert "1 out of line" in found.stdout

    rows = json.loads(story.fleet.run("review", "--json").stdout)
    assert {row["node"] for row in rows if row["outlier"]} == {SLOW}

    refused = story.fleet.run("accept", "--key", story.fleet.folder / "key")
    assert refused.returncode == 1
    assert f"out of line with their class: {SLOW}" in refused.stderr
    assert not (story.fleet.folder / "fleet/accepted").exists()


def test_the_others_are_accepted_and_each_node_judges_by_its_own(story: Story) -> None:
    fleet = story.fleet
    with fleet.daemon("stor01") as daemon:
        eventually(lambda: 'plumbline_baseline_missing{probe="rtt' in fleet.page("stor01", daemon), within_s=WITHIN_S)
        assert _missing(fleet.page("stor01", daemon)) == 1
        accepted = fleet.run("accept", "--key", fleet.folder / "key", "--by", "Ada", "--without", SLOW)
        assert accepted.returncode == 0, accepted.stderr
        pushed = fleet.run("push", asks=True)
        assert pushed.returncode == 0, pushed.stdout + pushed.stderr
        assert pushed.stdout.count("signed by ada@example") == 5
        eventually(lambda: _missing(fleet.page("stor01", daemon)) == 0, within_s=WITHIN_S)
        page = fleet.page("stor01", daemon)
        assert 'source="measured",profile="stor01"' in page
        info = 'plumbline_baseline_fleet_class_info{source="measured",profile="stor01",fleet_class="box-hdd"} 1'
        assert info in page
    again = fleet.run("push", asks=True)
    assert again.stdout.count("in place") == 5
    assert "signed by" not in again.stdout


def _missing(page: str) -> float:
    lines = [line for line in page.splitlines() if line.startswith("plumbline_baseline_missing{")]
    assert len(lines) == 1, lines
    return float(lines[0].rpartition(" ")[2])


def test_a_node_without_its_own_says_everywhere_that_it_has_its_class_figures(story: Story) -> None:
    fleet = story.fleet
    listed = _on_node(fleet, SLOW, "baseline", "list").stdout
    assert "box-hdd" in listed
    assert "class" in listed
    assert "baseline.class.yaml" in listed
    with fleet.daemon(SLOW) as daemon:
        eventually(lambda: 'source="class"' in fleet.page(SLOW, daemon), within_s=WITHIN_S)
        page = fleet.page(SLOW, daemon)
        assert _missing(page) == 0
        judging = [line for line in page.splitlines() if line.startswith("plumbline_baseline_applicable{")]
        assert any(
            'source="class",profile="box-hdd"' in line and float(line.rpartition(" ")[2]) == 1 for line in judging
        )
        eventually(lambda: "none recorded here" in fleet.page(SLOW, daemon, "/"), within_s=WITHIN_S)
    status = fleet.run("status", asks=True)
    assert status.returncode == 1
    (row,) = (line for line in status.stdout.splitlines() if line.startswith(SLOW))
    assert "its class's" in row


def _on_node(fleet: SshFleet, name: str, *words: str, sent: str = "") -> subprocess.CompletedProcess[str]:
    flags = ["--config.file", str(fleet.folder / "etc/plumbline.yaml"), "--storage.path", str(fleet.folder / "var")]
    argv = [*fleet.nodes[name].inside, *COMMAND, *words, *flags]
    return subprocess.run(argv, input=sent, capture_output=True, text=True, timeout=120, check=False)


def test_an_unsigned_or_changed_file_is_refused_and_the_old_one_kept(story: Story, tmp_path: Path) -> None:
    fleet, node = story.fleet, story.fleet.nodes["stor03"]
    file = node.storage / "baseline.yaml"
    good = file.read_text()
    with fleet.daemon("stor03") as daemon:
        eventually(lambda: _missing(fleet.page("stor03", daemon)) == 0, within_s=WITHIN_S)
        before = [line for line in fleet.page("stor03", daemon).splitlines() if "plumbline_baseline_latency" in line]
        new = node.storage / "baseline.yaml.new"
        new.write_text(good.replace("tolerance_ratio: 1.", "tolerance_ratio: 9."))
        new.replace(file)
        refusal = "reload refused, the running configuration stays"
        eventually(lambda: refusal in daemon.said(), within_s=WITHIN_S)
        (line,) = {line.partition(refusal)[2] for line in daemon.said().splitlines() if refusal in line}
        assert "baseline.yaml.sig: by ada@example, but not of this text" in line
        page = fleet.page("stor03", daemon)
        assert [line for line in page.splitlines() if "plumbline_baseline_latency" in line] == before
        new.write_text(good)
        new.replace(file)
        eventually(lambda: "configuration reloaded" in daemon.said(), within_s=WITHIN_S)

    signature = (node.storage / "baseline.yaml.sig").read_text()
    forged = json.dumps({"kind": "measured", "text": good.replace("ms", "us"), "signature": signature})
    refused = _on_node(fleet, "stor03", "baseline", "install", sent=forged)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "but not of this text" in refused.stderr
    stranger = tmp_path / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stranger], check=True)
    sign = ["ssh-keygen", "-Y", "sign", "-q", "-f", stranger, "-n", "plumbline-baseline"]
    by_stranger = subprocess.run(sign, input=good, capture_output=True, text=True, check=True).stdout
    parcel = json.dumps({"kind": "measured", "text": good, "signature": by_stranger})
    refused = _on_node(fleet, "stor03", "baseline", "install", sent=parcel)
    assert refused.returncode == 1
    assert "not by a key of" in refused.stderr
    assert file.read_text() == good

    recorded = _on_node(fleet, "stor03", "baseline", "record")
    assert recorded.returncode == 1
    assert "only signed files are used here" in recorded.stderr


def test_a_replaced_node_takes_its_class_figures_until_it_is_recorded(story: Story, tmp_path: Path) -> None:
    fleet, node = story.fleet, story.fleet.nodes["stor02"]
    serial = next(iter(sorted(Path("/sys/block").glob("*/serial"))), None)
    if serial is None:
        pytest.skip("no disk of this machine has a serial number to replace")
    other = tmp_path / "serial"
    other.write_text("ANOTHER1\n")
    node.run("mount", "--bind", str(other), str(serial.resolve()))
    for file in node.storage.iterdir():
        file.unlink()
    pushed = fleet.run("push", asks=True)
    assert pushed.returncode == 0, pushed.stderr
    (row,) = (line for line in pushed.stdout.splitlines() if line.startswith("stor02"))
    assert "its disks are others than at acceptance" in row
    assert "baseline.class.yaml" in row

    again = fleet.run("record", *RUNS, asks=True)
    assert again.returncode == 0, again.stderr
    assert "measuring stor02" in again.stdout
    accepted = fleet.run("accept", "--key", fleet.folder / "key", "--without", SLOW)
    assert accepted.returncode == 0, accepted.stderr
    assert fleet.run("push", asks=True).returncode == 0
    assert (node.storage / "baseline.yaml").exists()
    assert not (node.storage / "baseline.class.yaml").exists()


def test_after_an_upgrade_only_what_changed_is_recorded_again(story: Story) -> None:
    fleet = story.fleet
    for name in ("stor01", "stor03"):
        fleet.nodes[name].run("sysctl", "-q", "-w", "net.ipv4.tcp_sack=0")
    plan = fleet.run("record", "--plan", asks=True)
    assert plan.returncode == 0, plan.stderr
    assert "2 nodes in 2 waves" in plan.stdout  # a tenth of a class of five is one node
    assert plan.stdout.count("tuning: ") == 2
    before = (fleet.nodes["stor04"].storage / "baseline.yaml").stat().st_mtime_ns

    recorded = fleet.run("record", *RUNS, asks=True)
    assert recorded.returncode == 0, recorded.stderr
    assert "2 of 2 nodes recorded" in recorded.stdout
    accepted = fleet.run("accept", "--key", fleet.folder / "key", "--without", SLOW)
    assert accepted.returncode == 0, accepted.stderr
    pushed = fleet.run("push", asks=True)
    assert pushed.stdout.count("signed by") == 3  # and the class's new figures for the node that judges by them
    assert (fleet.nodes["stor04"].storage / "baseline.yaml").stat().st_mtime_ns == before
    made = sorted((fleet.folder / "fleet/acceptances").glob("*.json"))
    assert len(made) == 3
    assert json.loads(made[-1].read_text())["now"] == ["stor01", "stor03"]


def test_every_acceptance_is_signed_and_says_who_when_and_on_what(story: Story) -> None:
    fleet = story.fleet
    first = sorted((fleet.folder / "fleet/acceptances").glob("*.json"))[0]
    said = json.loads(first.read_text())
    assert said["accepted_by"] == "Ada"
    assert said["nodes"]["stor01"]["fingerprint"]["kernel"] == os.uname().release
    assert said["nodes"]["stor01"]["beside"]
    signers = fleet.folder / "etc/allowed_signers"
    signers.write_text(f"ada@example {(fleet.folder / 'key.pub').read_text()}")
    verify = [
        "ssh-keygen", "-Y", "verify", "-f", signers, "-I", "ada@example", "-n", "plumbline-baseline",
        "-s", f"{first}.sig",
    ]  # fmt: skip
    with first.open() as text:
        done = subprocess.run(verify, stdin=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
