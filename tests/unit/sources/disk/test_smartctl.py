"""smartctl's answers, and what a program of that name may do instead of answering."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from plumbline.core.process import Completed, ProcessRunner
from plumbline.errors import ParseError
from plumbline.sources.disk import diskhealth
from plumbline.sources.disk.diskhealth import Asleep, DiskHealth, NoHealth, Reason
from plumbline.sources.disk.smartctl import MAX_OUTPUT_BYTES, command, parse_answer, read_smartctl
from support.daemon import alive, eventually
from support.programs import need

ANSWERS = Path(__file__).parents[3] / "fixtures" / "disk-health"
NODE = Path("/dev/sdx")


def answer(name: str) -> diskhealth.Answer:
    return parse_answer((ANSWERS / f"{name}.json").read_bytes(), source="smartctl /dev/sdx")


def test_a_sata_ssd_by_its_statistics() -> None:
    assert answer("sata-ssd") == DiskHealth(
        smart_passed=True,
        wear_percent=25,
        media_errors=7,
        unsafe_shutdowns=17,
        power_cycles=41,
        power_on_hours=20000,
        written_bytes=2_000_000_000 * 512,
        read_bytes=4_000_000_000 * 512,
        temperature_celsius=31,
        warning_celsius=70,
        reallocated_sectors=3,
        pending_sectors=0,
        offline_uncorrectable_sectors=0,
        interface_errors=4,
    )


def test_a_disk_behind_a_controller() -> None:
    assert answer("sata-ssd-megaraid") == answer("sata-ssd")
    argv = command("/usr/sbin/smartctl", Path("/dev/bus/0"), "controller", "megaraid,8")
    assert argv[argv.index("-d") + 1] == "megaraid,8"
    assert argv[argv.index("-n") + 1] == "standby,3"
    assert argv[-1] == "/dev/bus/0"


def test_an_old_smartctl_and_a_disk_without_statistics() -> None:
    assert answer("sata-ssd-7.0") == DiskHealth(
        smart_passed=True,
        wear_percent=3,
        power_cycles=3,
        power_on_hours=8760,
        read_bytes=12 * 2**30,
        temperature_celsius=28,
        reallocated_sectors=0,
    )


def test_a_failing_disk_still_gives_its_figures() -> None:
    health = answer("sata-hdd-failing")
    assert isinstance(health, DiskHealth)
    assert health.smart_passed is False
    assert (health.reallocated_sectors, health.pending_sectors, health.offline_uncorrectable_sectors) == (2048, 24, 8)
    assert (health.media_errors, health.wear_percent, health.warning_celsius) == (112, None, None)


def test_sas() -> None:
    assert answer("sas-hdd") == DiskHealth(
        smart_passed=True,
        media_errors=3,
        power_on_hours=30000,
        written_bytes=127_551_260_000_000,
        read_bytes=162_438_759_000_000,
        temperature_celsius=33,
        critical_celsius=65,
        reallocated_sectors=5,
    )
    ssd = answer("sas-ssd")
    assert isinstance(ssd, DiskHealth)
    assert (ssd.wear_percent, ssd.critical_celsius, ssd.media_errors) == (4, None, None)


@pytest.mark.parametrize("name", ["asleep", "asleep-sas", "asleep-exit-2"])
def test_asleep_is_no_failure(name: str) -> None:
    assert isinstance(answer(name), Asleep)


@pytest.mark.parametrize(
    ("name", "reason", "says"),
    [
        ("recorded-loop", Reason.NOT_SUPPORTED, "Unable to detect device type"),
        ("recorded-loop-sat", Reason.NO_ANSWER, "CHECK POWER MODE"),
        ("recorded-forbidden", Reason.NO_PERMISSION, "disk-health.conf"),
        ("recorded-gone", Reason.GONE, "No such device"),
        ("recorded-command-line", Reason.NO_ANSWER, "INVALID ARGUMENT"),
        ("no-smart", Reason.NOT_SUPPORTED, "lacks SMART"),
        ("recorded-megaraid-none", Reason.NO_PERMISSION, "megaraid_sas_ioctl_node.*no such controller, or its node"),
        ("recorded-cciss-none", Reason.GONE, "cciss_disk_00"),
    ],
)
def test_why_there_is_nothing(name: str, reason: str, says: str) -> None:
    with pytest.raises(NoHealth, match=says) as caught:
        answer(name)
    assert caught.value.reason == reason
    assert "/dev/sdx" in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b'{"smartctl": 1}', b'{"smartctl":{"exit_status":"x"}}'])
def test_garbage(text: bytes) -> None:
    with pytest.raises(ParseError, match="smartctl /dev/sdx"):
        parse_answer(text, source="smartctl /dev/sdx")


def test_it_never_asks_without_looking_for_sleep_first() -> None:
    for transport, kind in (("sata", "sat"), ("sas", "sat,auto"), ("scsi", "sat,auto"), (None, "sat,auto")):
        argv = command("/usr/sbin/smartctl", NODE, transport)
        assert argv[argv.index("-n") + 1] == "standby,3"
        assert argv[argv.index("-d") + 1] == kind
        assert argv[-1] == "/dev/sdx"


# --- a program that stands in for smartctl and hardware


@pytest.fixture
def stand_in(tmp_path: Path) -> Callable[[str], str]:
    def make(script: str) -> str:
        program = tmp_path / "smartctl"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    return make


StandIn = Callable[[str], str]


@pytest.fixture
def runner() -> ProcessRunner:
    return ProcessRunner(os.environ)


def test_an_answer_in_full(stand_in: StandIn, runner: ProcessRunner) -> None:
    program = stand_in(f'test "$LC_ALL" = C && cat {ANSWERS}/sata-hdd-failing.json; exit 216')
    health = read_smartctl(NODE, "sata", program, runner)
    assert isinstance(health, DiskHealth)
    assert health.pending_sectors == 24


def test_one_that_never_ends_is_killed_with_its_children(
    stand_in: StandIn, runner: ProcessRunner, tmp_path: Path
) -> None:
    program = stand_in(f"trap '' TERM\nsleep 600 & echo $! > {tmp_path}/child\nwait\nsleep 600")
    with pytest.raises(NoHealth, match="no answer within 2 s") as caught:
        read_smartctl(NODE, "sata", program, runner, timeout_s=2)
    assert caught.value.reason == Reason.NO_ANSWER
    child = int((tmp_path / "child").read_text())
    assert eventually(lambda: not alive(child))


@pytest.mark.parametrize(
    ("script", "reason", "says"),
    [
        ("yes '{'", Reason.MALFORMED, f"more than {MAX_OUTPUT_BYTES} octets"),
        ("kill -9 $$", Reason.NO_ANSWER, "exit -9"),
        ("echo broken library >&2; exit 127", Reason.NO_PROGRAM, "broken library"),
        ("exit 137", Reason.NO_ANSWER, "exit 137"),
    ],
)
def test_what_else_a_program_may_do(
    script: str, reason: str, says: str, stand_in: StandIn, runner: ProcessRunner
) -> None:
    with pytest.raises(NoHealth, match=says) as caught:
        read_smartctl(NODE, "sata", stand_in(script), runner, timeout_s=60)
    assert caught.value.reason == reason


def test_garbage_from_a_program(stand_in: StandIn, runner: ProcessRunner) -> None:
    with pytest.raises(ParseError, match="not smartctl's JSON"):
        read_smartctl(NODE, "sata", stand_in("echo Segmentation fault; exit 139"), runner)


def test_not_installed(runner: ProcessRunner) -> None:
    with pytest.raises(NoHealth, match="install the package smartmontools") as caught:
        read_smartctl(NODE, "sata", None, runner)
    assert caught.value.reason == Reason.NO_PROGRAM


def test_no_second_one_while_the_first_is_stuck_in_the_kernel() -> None:
    class Stuck:
        """A command that outlives SIGKILL for three looks."""

        looks = 0

        def run(self, argv: Sequence[str], *, timeout_s: float, max_output_bytes: int = 0) -> Completed:
            return Completed(tuple(argv), None, timed_out=True)

        def holds(self, argv: Sequence[str]) -> bool:
            self.looks += 1
            return self.looks <= 3

    stuck, pauses = Stuck(), []
    with pytest.raises(NoHealth, match="no answer"):
        read_smartctl(NODE, "sata", "smartctl", stuck, pause=pauses.append)
    assert (stuck.looks, len(pauses)) == (4, 3)


def test_the_real_program_about_something_that_is_no_disk(tmp_path: Path) -> None:
    program = need("smartctl")
    for node in ("/dev/null", str(tmp_path / "nothing")):
        done = subprocess.run(command(program, Path(node), "sas"), capture_output=True, timeout=60, check=False)
        with pytest.raises(NoHealth):
            parse_answer(done.stdout, source=node)


@pytest.mark.needs_root
def test_the_real_program_about_a_loop_device(tmp_path: Path) -> None:
    program = need("smartctl")
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("needs root and losetup")
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True, timeout=60, check=False)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    loop = Path(made.stdout.strip())
    try:
        with pytest.raises(NoHealth):
            read_smartctl(loop, "sata", program, ProcessRunner(os.environ))
    finally:
        subprocess.run(["losetup", "-d", loop], timeout=60, check=True)


def _sata(**statistics: int) -> bytes:
    """A disk at 48 °C; its device statistics by page and offset."""
    pages: dict[int, list[dict[str, object]]] = {}
    for place, value in statistics.items():
        page, offset = place.removeprefix("at_").split("_")
        pages.setdefault(int(page), []).append({"offset": int(offset, 16), "value": value, "flags": {"valid": True}})
    return json.dumps(
        {
            "smartctl": {"exit_status": 0},
            "device": {"protocol": "ATA"},
            "smart_status": {"passed": True},
            "temperature": {"current": 48},
            "power_on_time": {"hours": 1200},
            "ata_device_statistics": {"pages": [{"number": page, "table": table} for page, table in pages.items()]},
        }
    ).encode()


@pytest.mark.parametrize(
    ("limit", "believed"), [(0, None), (13, None), (29, None), (-1, None), (127, None), (255, None), (70, 70), (40, 40)]
)
def test_a_temperature_limit_that_can_not_be_is_none(limit: int, believed: int | None) -> None:
    health = parse_answer(_sata(at_5_058=limit), source="sda")
    assert isinstance(health, DiskHealth)
    assert (health.warning_celsius, health.temperature_celsius) == (believed, 48)


@pytest.mark.parametrize(
    "count", [2**31 - 1, 2**32 - 1, 2**48 - 1, 2**63 - 1, 2**64 - 1, -1, 1.5, "12", None, [], True]
)
def test_a_count_that_can_not_be_is_unknown_and_the_rest_stands(count: object) -> None:
    answer = json.loads(_sata())
    answer["device"]["protocol"] = "SCSI"
    answer |= {
        "scsi_grown_defect_list": 7,
        "temperature": {"current": 31, "drive_trip": 0},
        "scsi_error_counter_log": {
            "read": {"gigabytes_processed": "111.889", "total_uncorrected_errors": 3},
            "write": {"gigabytes_processed": "24.267", "total_uncorrected_errors": count},
        },
    }
    health = parse_answer(json.dumps(answer).encode(), source="sdb")
    assert isinstance(health, DiskHealth)
    assert (health.media_errors, health.reallocated_sectors, health.power_on_hours) == (3, 7, 1200)
    assert (health.smart_passed, health.temperature_celsius, health.critical_celsius) == (True, 31, None)
    for place in (("scsi_grown_defect_list",), ("power_on_time", "hours"), ("temperature", "current")):
        spoiled = json.loads(json.dumps(answer))
        *way, last = place
        inner = spoiled
        for step in way:
            inner = inner[step]
        inner[last] = count
        health = parse_answer(json.dumps(spoiled).encode(), source="sdb")
        assert isinstance(health, DiskHealth)
        assert health.smart_passed is True, place
