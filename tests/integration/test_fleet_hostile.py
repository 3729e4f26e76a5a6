"""Honest nodes beside hostile ones, through a real sshd: whatever one says is its own row, and the others finish."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from support.hostile_nodes import LoopbackFleet, loopback_fleet

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for the nodes' host names"),
]
HONEST = ("stor01", "stor02", "stor03")
# Name → what it does; `state` alone is an honest answer
HOSTILE = {
    "bigmodel": "state(model='M' * 200_000)",
    "longmodel": "state(model='M' * 300)",
    "escmodel": "state(model='box\\x1b[2J')",
    "notfit": "state(cluster=True, closed={'health': 'HEALTH_ERR ' * 3000})",
    "unreached": "state(cluster=True, unreachable='no monitor')",
    "busy": "state(recording=True)",
    "namesake": "state(host='stor01')",
    "nested": "out.write('[' * 100_000)",
    "garbage": "sys.stdout.buffer.write(bytes(range(256)) * 100)",
    "flood": "out.write('x' * (20 << 20))",
    "empty": "pass",
    "huge": "state(good + '# ' + 'x' * (3 << 20)) if asked == 'state' else None",
    "lines": "state() if asked == 'state' else [print('network: rtt, run 1 of 3\\x1b[2J', n) for n in range(200_000)]",
    "otherclass": "state(good.replace('box-hdd', '../../x')) if asked == 'state' else None",
    "forged": "state(candidate=dict(sha256='0', text=good)) if asked == 'state' else None",
    "absurd": "state(good.replace('1ms', '999999999999999999s')) if asked == 'state' else None",
    "killed": "state() if asked == 'state' else os.kill(os.getpid(), 9)",
    "exit255": "sys.exit(255)",
    "stderr": "sys.stderr.write('\\x1b[2J' + 'y' * 3_000_000); sys.exit(1)",
    "hangs": "state() if asked == 'state' else time.sleep(3600)",
    "disks": "state(fingerprint=dict(disks={str(n): 'x' * 100 for n in range(50_000)}))",
    # a baseline as asked for, and then an answer to `install` that is none
    "install": "state() if asked == 'state' else (out.write('\\x1b[2J' * 100_000) if asked == 'install' else None)",
}
RECORDS = {"install", "lines"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackFleet]:
    with loopback_fleet(tmp_path_factory.mktemp("fleet"), HONEST, HOSTILE) as made:
        yield made


@pytest.fixture(scope="module")
def recorded(fleet: LoopbackFleet) -> subprocess.CompletedProcess[str]:
    return fleet.run(
        "record", "--share", "1", "--at-once", "8", "--runs", "2", "--node-timeout", "40s", "--health-timeout", "1s"
    )


def test_the_honest_ones_are_recorded_and_each_hostile_one_is_a_row(
    fleet: LoopbackFleet, recorded: subprocess.CompletedProcess[str]
) -> None:
    kept = {file.stem for file in (fleet.folder / "fleet/recorded").glob("*.yaml")}
    assert kept == {*HONEST, *RECORDS}, recorded.stdout + recorded.stderr
    assert recorded.returncode == 1
    rows = [line for line in recorded.stdout.splitlines() if line.startswith("failed: ")]
    assert sorted(row.split(": ")[1] for row in rows) == sorted(set(HOSTILE) - RECORDS)
    assert all(len(row) < 400 and row.isprintable() for row in rows)
    assert "Traceback" not in recorded.stderr
    assert (recorded.stdout + recorded.stderr).replace("\n", "").isprintable()
    assert len(recorded.stdout + recorded.stderr) < 4_000_000


def test_what_they_said_stays_small_in_the_recordings_state(
    fleet: LoopbackFleet, recorded: subprocess.CompletedProcess[str]
) -> None:
    assert recorded.returncode == 1
    file = fleet.folder / "fleet/fleet.json"
    assert file.stat().st_size < 20_000
    turns = json.loads(file.read_text())["turns"]
    assert {turns[name]["status"] for name in HONEST} == {"recorded"}


def test_they_are_accepted_pushed_and_shown(fleet: LoopbackFleet, recorded: subprocess.CompletedProcess[str]) -> None:
    assert recorded.returncode == 1
    # files that an earlier release kept of hostile nodes
    kept = fleet.folder / "fleet/recorded"
    (kept / "old.yaml").write_text("x" * (3 << 20))
    good = (kept / "install.yaml").read_text()
    (kept / "long.yaml").write_text(good.replace("box-hdd", "c" * 300))
    (kept / "up.yaml").write_text(good.replace("box-hdd", "../../x"))
    review = fleet.run("review", asks=False)
    assert review.returncode == 1
    assert {line.split(": ")[1] for line in review.stdout.splitlines() if line.startswith("failed: ")} == {
        "old", "long", "up",
    }  # fmt: skip
    # the round trips of loopback on a busy machine may be out of line
    although = [word for name in (*HONEST, *RECORDS) for word in ("--although", name)]
    accepted = fleet.run("accept", "--key", fleet.folder / "key", *although, asks=False)
    assert accepted.returncode == 0, accepted.stderr
    pushed = fleet.run("push")
    for name in HONEST:
        (row,) = (line for line in pushed.stdout.splitlines() if line.startswith(name))
        assert "in place: " in row
    assert pushed.returncode == 1
    assert pushed.stdout.replace("\n", "").isprintable()
    status = fleet.run("status")
    for name in HONEST:
        (row,) = (line for line in status.stdout.splitlines() if line.startswith(name))
        assert row.endswith("its own")
    assert status.stdout.replace("\n", "").isprintable()
    assert all(len(line) < 3000 for line in status.stdout.splitlines())
