"""A long run and a storm of kills in short; a crowd of scrapers; clocks that jump; a full disk; a daemon that is
stopped and goes on. The long versions are `make soak` and `make kill-storm`; docs/endurance.md has the figures."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from endurance import crowd
from endurance.kills import leftovers, storm
from endurance.soak import Sample, Soak
from plumbline.core.files import is_temporary
from plumbline.core.storage_names import MARKER
from plumbline.probes.run.state import read_state
from support.daemon import WITHIN_S, Daemon, alive, eventually, running
from support.mutilated import BOMBS
from support.programs import need
from support.scraped import Scrape

pytestmark = pytest.mark.long
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not root")
TESTS = Path(__file__).parents[1]
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
CANARY = "canary"


def canary_in(folder: Path) -> dict[str, object]:
    return {
        "probes": [
            {"type": "canary", "name": CANARY, "directory": str(folder / CANARY), "file_size": "1MiB", "rate": 50}
        ]
    }


def works(daemon: Daemon) -> bool:
    return daemon.metrics().get("plumbline_probe_success", probe=CANARY) == 1


def operations(daemon: Daemon) -> float:
    return daemon.metrics().total("plumbline_canary_latency_seconds_count", probe=CANARY)


# --- a long run, and a storm


@as_root
@pytest.mark.needs_root
def test_two_thousand_scrapes_and_nothing_grows() -> None:
    need("ip")
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"}
    argv = [sys.executable, "-m", "endurance.soak", "--scrapes", "2000", "--without-fio", "--json"]
    done = subprocess.run(
        ["unshare", "--net", *argv], capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    result = Soak(**{**found, "samples": tuple(Sample(**each) for each in found["samples"])})

    assert result.failed == 0, done.stderr[-2000:]
    assert len(result.descriptors) == 1, result.descriptors
    assert len(result.threads) == 1, result.threads
    after = result.after_warm_up
    # 20 reloads, 40 ports that came and went: a leak of one page a scrape would be 6 MiB here
    assert after[-1].pss_kib - after[0].pss_kib < 3 << 10, [each.pss_kib for each in after]


def test_killed_at_any_moment_nothing_is_left_and_nothing_is_damaged(folder: Path) -> None:
    seen = storm(folder, kills=8, seed=1, fio=False)

    assert seen.faults == []
    assert seen.kills == 8
    assert seen.with_children > 0
    assert leftovers(folder) == []


WRITER = """
import sys, threading
from pathlib import Path
from plumbline.probes.run.state import ProbeRecord, StateStore
store = StateStore(Path(sys.argv[1]))
store.open()
print(len(store.get("fio").skipped.get("x" * 200, 0) * "x"), flush=True)
while True:
    store.put("fio", store.get("fio").with_skip("x" * 200, "y" * 5000))
"""


def test_killed_while_the_state_is_written(folder: Path) -> None:
    """The same moment again and again: a file that was being replaced."""
    counts = [0]
    for number in range(30):
        with subprocess.Popen([sys.executable, "-c", WRITER, folder / "state"], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            counts.append(int(process.stdout.readline()))
            time.sleep(number / 300)
            process.kill()
        read_state(folder / "state")
    assert counts == sorted(counts)
    assert counts[-1] > 0
    left = [each for each in (folder / "state").iterdir() if each.name not in {MARKER, "state.json", "lock"}]
    assert all(is_temporary(each.name) for each in left)
    assert len([each for each in left if each.stat().st_size]) <= 1


# --- a crowd


def test_a_hundred_scrapers_share_pages(folder: Path) -> None:
    """All whole, and far fewer collections than pages: each page shows the process' CPU time, so two tell apart."""
    with running(folder, config={"probes": [], "web": {"max_requests": 128}}) as daemon:
        daemon.metrics()
        with ThreadPoolExecutor(100) as pool:
            answers = list(pool.map(lambda _: daemon.get("/metrics"), range(200)))

        assert {answer.status for answer in answers} == {200}
        pages = {answer.text for answer in answers}
        assert len(pages) < 100
        for text in pages:
            page = Scrape.of_text(text)
            assert page.series("plumbline_build_info")
            assert {each.value for each in page.series("plumbline_collector_success")} == {1}


def test_a_hundred_scrapers_of_a_daemon_that_allows_forty(folder: Path) -> None:
    with running(folder, config={"probes": []}) as daemon, ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: daemon.get("/metrics"), range(150)))

        assert {answer.status for answer in answers} <= {200, 503}
        assert any(answer.status == 200 for answer in answers)
        for text in {answer.text for answer in answers if answer.status == 200}:
            Scrape.of_text(text)
        for answer in answers:
            if answer.status == 503:
                assert answer.headers["retry-after"] == "1"
                assert "raise web.max_requests" in answer.text
        assert daemon.get("/metrics").status == 200


def test_scrapers_beside_two_thousand_connections(folder: Path) -> None:
    """A short form of ``python -m endurance.crowd``: nothing grows with the connections, scrapers are served."""
    tally, (before, *crowded, after) = crowd.attend(folder, 20, every_s=5)
    assert tally.opened > crowd.CONNECTIONS
    places = 40 + 64  # web.max_requests, and idle ones
    for _, threads, descriptors in crowded:
        assert threads <= before[1] + places + 10
        assert descriptors <= before[2] + places + 10
    assert max(pss for pss, _, _ in crowded) < before[0] + 25
    assert after[1] <= before[1] + 20
    total = sum(tally.statuses.values())
    assert total >= crowd.SCRAPERS
    assert tally.statuses["200"] > 0.5 * total, tally.statuses


# --- clocks that jump


def test_the_wall_clock_jumps_both_ways(folder: Path) -> None:
    """libfaketime moves CLOCK_REALTIME of the daemon and its workers; the machine's own clock is nobody's to set."""
    if FAKETIME is None:
        pytest.skip("libfaketime is not installed (Debian package libfaketime)")
    offset = folder / "offset"
    offset.write_text("+0")
    environment = {
        **os.environ, "LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    with running(folder, config=_with_fio(folder), environment=environment) as daemon:
        eventually(lambda: works(daemon), within_s=2 * WITHIN_S)
        runs = _runs(daemon)
        for jump in ("+400d", "-400d", "+2h", "-30y", "+0"):
            new = offset.with_suffix(".new")
            new.write_text(jump)
            new.replace(offset)  # libfaketime makes an error of time() out of a file that is half written
            page = daemon.metrics()
            counted = operations(daemon)
            eventually(lambda counted=counted: operations(daemon) > counted + 5)  # type: ignore[misc]
            assert page.total("plumbline_canary_latency_seconds_sum") < 60  # no operation of 400 days
            ages = [each.value for each in page.series("plumbline_probe_in_flight_seconds")]
            assert all(0 <= age < 120 for age in ages), ages
            shown = daemon.get("/")
            assert shown.status == 200
            assert not re.search(r"-\d[\d.]* (ms|s|min|h|d)\w* ago", shown.text)
            # by the clock of the daemon: neither future nor overdue
            moved_s = {"d": 86400, "h": 3600, "y": 365 * 86400}.get(jump[-1], 0) * int(jump.rstrip("dhy"))
            last = daemon.metrics().get("plumbline_probe_last_success_timestamp_seconds", probe="fio")
            assert last is not None
            assert -60 < time.time() + moved_s - last < 600, jump
        assert _runs(daemon) - runs <= 6  # no burst to make up for 400 days
        eventually(lambda: works(daemon), within_s=2 * WITHIN_S)
        # libfaketime's clock_nanosleep refuses a sleep now and then while its file changes; the kernel's never does
        said = re.sub(
            r"Traceback(?:(?!Traceback).)*?_sleep\((?:(?!Traceback).)*?\[Errno 22\] Invalid argument",
            "",
            daemon.said(),
            flags=re.DOTALL,
        )
        assert "Traceback" not in said


def test_a_state_from_the_future(folder: Path) -> None:
    """Written under a clock that was wrong: the probe runs soon, and nothing waits for that time to come."""
    config = _with_fio(folder)
    with running(folder, config=config) as daemon:
        eventually(lambda: _runs(daemon), within_s=2 * WITHIN_S)
        daemon.stop()
    state = folder / "state" / "state.json"
    content = json.loads(state.read_text())
    future = time.time() + 400 * 86400
    for record in content["probes"].values():
        record["ticked"] = future
        for result in (record["result"], record["success"]):
            if result:
                result["started"] = future
    state.write_text(json.dumps(content))
    with running(folder, config=config) as daemon:
        before = _runs(daemon)
        eventually(lambda: _runs(daemon) > before, within_s=2 * WITHIN_S)
        assert daemon.get("/").status == 200
        started = daemon.metrics().get("plumbline_probe_last_run_timestamp_seconds", probe="fio")
        assert started is not None
        assert started < time.time() + 60
        assert "unreadable state" not in daemon.said()


def _with_fio(folder: Path) -> dict[str, object]:
    need("fio")
    heavy = {
        "type": "fio", "name": "fio", "directory": str(folder / "fio"), "workload": "randwrite-4k-qd1-j1",
        "file_size": "1MiB", "runtime": "1s", "timeout": "5s", "interval": "10s",
        "max_device_busy": 1, "max_load_per_cpu": 1000,
    }  # fmt: skip
    probes = canary_in(folder)["probes"]
    assert isinstance(probes, list)
    return {"probes": [*probes, heavy]}


def _runs(daemon: Daemon) -> float:
    return daemon.metrics().total("plumbline_probe_runs_total", probe="fio")


# --- a full disk


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    point = folder / "small"
    point.mkdir()
    done = subprocess.run(
        [need("mount"), "-t", "tmpfs", "-o", "size=256k,mode=700", "none", point],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"can't mount here: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run([need("umount"), "--lazy", point], check=True)


@as_root
@pytest.mark.needs_root
def test_the_disk_of_the_state_is_full_and_has_room_again(folder: Path) -> None:
    with small_disk(folder) as small:
        flags = ("--storage.path", small)
        with running(folder, *flags, config=_with_fio(folder)) as daemon:
            eventually(lambda: _runs(daemon) >= 1, within_s=2 * WITHIN_S)
            before = (small / "state.json").read_bytes()
            filler = small / "filler"
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
            runs = _runs(daemon)
            eventually(lambda: _runs(daemon) >= runs + 2, within_s=3 * WITHIN_S)

            assert (small / "state.json").read_bytes() == before
            assert daemon.said().count("can't be written: No space left on device") == 1
            assert daemon.metrics().get("plumbline_state_last_save_successful") == 0
            assert daemon.get("/").status == 200
            filler.unlink()
            eventually(lambda: daemon.metrics().get("plumbline_state_last_save_successful") == 1, within_s=2 * WITHIN_S)
            assert daemon.said().count("written again") == 1
            remembered = _runs(daemon)
            assert daemon.stop()[0] == 0
        assert sum(read_state(small)["fio"].runs.values()) >= remembered
        assert "Traceback" not in daemon.said()


# --- stopped and going on


def test_stopped_for_a_while_and_going_on(folder: Path) -> None:
    """As a frozen control group or a suspended machine: the whole group stands still, then goes on."""
    with running(folder, config=_with_fio(folder)) as daemon:
        eventually(lambda: works(daemon) and _runs(daemon), within_s=3 * WITHIN_S)
        runs, counted = _runs(daemon), operations(daemon)
        everybody = [daemon.pid, *daemon.children()]
        for pid in everybody:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(12)  # more than an interval of fio's
        for pid in reversed(everybody):
            os.kill(pid, signal.SIGCONT)

        page = daemon.metrics()
        assert {each.value for each in page.series("plumbline_collector_success")} == {1}
        assert _runs(daemon) - runs <= 2  # no burst
        # 12 s at 50 a second would be 600: what was missed is not made up for
        assert operations(daemon) - counted < 400
        eventually(lambda: works(daemon) and _runs(daemon) > runs, within_s=2 * WITHIN_S)
        assert all(alive(pid) for pid in (daemon.pid, daemon.worker()))
        assert "Traceback" not in daemon.said()


# --- spoilt files, to a daemon that runs


def test_reloads_of_files_that_explode(folder: Path) -> None:
    with running(folder, config={"probes": []}) as daemon:
        pid = daemon.pid
        for name in ("aliases as probes", "brackets", "an alias of itself", "nested expressions", "a NUL"):
            line = daemon.reload(BOMBS[name])
            assert "reload refused, the running configuration stays: " in line, name
            assert len(line) < 1000
        assert daemon.reload({"probes": []}).endswith("reloaded\n")
        assert (daemon.pid, daemon.get("/metrics").status) == (pid, 200)
        assert "Traceback" not in daemon.said()
