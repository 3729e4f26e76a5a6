"""`plumbline baseline record` with real tools: network and disk in one walk, interrupted, and gone on with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.baseline.site import LoadedSite, read_site
from plumbline.core.storage_names import WORK_FILE
from support.daemon import COMMAND, eventually, running, write_config
from support.disks import disk_folder
from support.iperf3 import iperf3_server
from support.ports import free_port

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.skipif(not all(map(shutil.which, ("fio", "iperf3"))), reason="fio or iperf3 is not installed"),
]
BUSY = {"max_load_per_cpu": 1000, "max_device_busy": 1.0}
FIO = {"file_size": "16MiB", "device_class": "here", **BUSY}
QUICK = ("--run-duration", "1s", "--runs", "2", "--force")
"""The machine under these tests is busy: runs may lie far apart, which has tests of its own."""
WITHIN_S = 240.0


@dataclass(frozen=True, slots=True)
class Site:
    """A host's configuration, whose iperf3 peer is a server here."""

    folder: Path
    port: int

    @property
    def storage(self) -> Path:
        return self.folder / "state"

    @property
    def work(self) -> Path:
        return self.storage / WORK_FILE

    @property
    def config(self) -> dict[str, Any]:
        return {
            "probes": [
                {"type": "fio", "name": "random", "workload": "randread-4k-qd16-j1", **FIO},
                {"type": "fio", "name": "capped", "workload": "randwrite-4k-qd1-j1", "rate_iops": 50, **FIO},
                {"type": "canary", "name": "canary", "device_class": "here"},
                {"type": "rtt", "name": "rtt", "targets": ["127.0.0.1"], "packets": 20, "gap": "5ms", **BUSY},
                {"type": "path-mtu", "name": "mtu", "targets": ["127.0.0.1"], **BUSY},
                {"type": "iperf3", "name": "net", "targets": [f"127.0.0.1:{self.port}"], **BUSY},
            ],
        }

    def start(self, *more: str) -> subprocess.Popen[str]:
        file = write_config(self.folder, self.config)
        words = ("baseline", "record", "--config.file", str(file), "--storage.path", str(self.storage), *more)
        return subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip

    def record(self, *more: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*more)
        out, err = process.communicate(timeout=WITHIN_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def kept(self) -> list[str]:
        """Of each finished run its step."""
        return [run["step"] for run in json.loads(self.work.read_bytes())["runs"]] if self.work.exists() else []

    def written(self) -> LoadedSite:
        file = self.storage / "baseline.yaml"
        return read_site(file, host=os.uname().nodename)


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with disk_folder(tmp_path_factory) as folder:
        port = free_port()
        with iperf3_server("127.0.0.1", port):
            yield Site(folder, port)


def starts(output: str) -> list[str]:
    """The runs that were begun: ``disk: random, run 1 of 2``."""
    return [line.partition(" (")[0] for line in output.splitlines() if ", run " in line]


def test_network_and_disk_in_one_walk_beside_the_daemon_that_watches_them(site: Site) -> None:
    with running(site.folder, config=site.config) as daemon:
        done = site.record(*QUICK, "--latency-target", "50ms")
        assert done.returncode == 0, done.stdout + done.stderr
        assert starts(done.stdout) == [
            "network: rtt/127.0.0.1, run 1 of 2",
            f"network: net/127.0.0.1:{site.port}, run 1 of 2",
            "network: rtt/127.0.0.1, run 2 of 2",
            f"network: net/127.0.0.1:{site.port}, run 2 of 2",
            "disk: canary, run 1 of 2",
            "disk: random, run 1 of 2",
            "disk: capped, run 1 of 2",
            "disk: canary, run 2 of 2",
            "disk: random, run 2 of 2",
            "disk: capped, run 2 of 2",
            "disk: random: IOPS at 50 ms, run 1 of 1",
            "disk: capped: IOPS at 50 ms, run 1 of 1",
        ]
        assert "left out: mtu/127.0.0.1: a path MTU needs no baseline" in done.stderr
        assert not site.work.exists()

        loaded = site.written()
        entries = {(each.workload, each.operation): each for each in loaded.file.entries}
        assert [each.workload for each in loaded.file.entries] == [
            "icmp-rtt-56", "tcp-throughput-s1", "tcp-throughput-s1", "randread-4k-qd1-j1",
            "randwrite-4k-qd1-j1-dsync", "randread-4k-qd16-j1", "randwrite-4k-qd1-j1",
        ]  # fmt: skip
        for direction in ("transmit", "receive"):
            net = entries["tcp-throughput-s1", direction]
            assert net.throughput is not None
            assert net.throughput.value > 1e7
            assert len(net.throughput_of_runs) == 2
        assert {"mean", "p50", "p99"} <= set(entries["icmp-rtt-56", "round-trip"].latency.seconds())
        random, capped = entries["randread-4k-qd16-j1", "read"], entries["randwrite-4k-qd1-j1", "write"]
        assert random.iops is not None
        assert (capped.iops, capped.rate_iops) == (None, 50)
        for found in (random.iops_at_latency, capped.iops_at_latency):
            assert found is not None
            assert (found.target.text, found.percentile) == ("50ms", 99)
            assert found.iops.value > 50, "the search knows no cap"
            assert 1 <= found.queue_depth <= 128
        assert all(each.runs == 2 for each in loaded.file.entries)
        notes = "\n".join(loaded.file.notes)
        assert "only 2 runs of each probe" in notes
        assert "runs of 1 s" in notes
        assert loaded.file.fingerprint is not None
        assert set(loaded.file.tools) == {"plumbline", "fio", "iperf3"}
        assert loaded.file.recorded_by

        # the daemon takes it by itself, and it judges the probes that measured it
        def judged() -> set[str]:
            series = daemon.metrics().series("plumbline_baseline_applicable", source="measured")
            return {each.labels["workload"] for each in series if each.value == 1}

        eventually(lambda: judged() == {each.workload for each in loaded.file.entries}, within_s=60)
        missing = daemon.metrics().series("plumbline_baseline_missing")
        assert {each.labels["workload"]: each.value for each in missing if each.labels["workload"] != "path-mtu"} == (
            dict.fromkeys(judged(), 0)
        )


def test_a_recording_that_is_killed_goes_on_where_it_ended(site: Site) -> None:
    only = ("--layer", "disk", *QUICK)
    process = site.start(*only)
    eventually(lambda: len(site.kept()) >= 3, within_s=120)
    process.kill()
    process.communicate(timeout=30)
    kept = site.kept()
    assert kept[:3] == ["canary", "random", "capped"]
    assert not (site.storage / "baseline.yaml").exists()

    done = site.record(*only)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"continuing with {len(kept)} finished runs of an earlier recording" in done.stderr
    assert len(starts(done.stdout)) == 6 - len(kept)
    assert all(each.runs == 2 for each in site.written().file.entries)


def test_a_recording_that_is_told_to_stop_says_so_and_leaves_nothing_running(site: Site) -> None:
    process = site.start("--probe", "random", "--run-duration", "30s", "--force")
    assert process.stdout is not None
    process.stdout.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    eventually(lambda: "fio" in _commands(children), within_s=60)
    fio = children.read_text().split()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == f"plumbline: stopped; finished runs are kept in {site.work}: the next record continues with them\n"
    assert not any(Path(f"/proc/{pid}").exists() for pid in fio)


def _commands(children: Path) -> str:
    try:
        return " ".join(Path(f"/proc/{pid}/comm").read_text().strip() for pid in children.read_text().split())
    except OSError:
        return ""


def test_restart_and_a_changed_probe_are_measured_anew(site: Site) -> None:
    only = ("--probe", "random", "--probe", "capped", "--run-duration", "1s", "--force")
    assert site.record(*only, "--runs", "2").returncode == 0
    # a file exists, so without --force or --replace nothing is touched, not even the disk
    refused = site.record("--probe", "random", "--runs", "2")
    assert refused.returncode == 1
    assert "exists already" in refused.stderr
    process = site.start(*only, "--runs", "3")
    eventually(lambda: len(site.kept()) >= 2, within_s=120)
    process.kill()
    process.communicate(timeout=30)

    again = site.record(*only, "--runs", "2", "--restart")
    assert "goes on" not in again.stderr
    assert len(starts(again.stdout)) == 4


def test_one_probe_that_gives_nothing_keeps_the_file_from_being_written_and_costs_no_other_run(site: Site) -> None:
    # nobody listens at the iperf3 peer
    done = site.record("--probe", "rtt", "--probe", "net", *QUICK)
    assert done.returncode == 1
    assert done.stderr.startswith(f"plumbline: record: 1 of 2 measured nothing: net/127.0.0.1:{site.port}: ")
    assert "--without NAME" in done.stderr
    assert done.stderr.count("\n") == 1
    assert site.kept() == ["rtt/127.0.0.1"] * 2
    assert not (site.storage / "baseline.yaml").exists()

    done = site.record("--layer", "network", "--without", "net", *QUICK)
    assert done.returncode == 0, done.stderr
    assert starts(done.stdout) == []
    assert f"left out: net/127.0.0.1:{site.port}: on request (--without)" in "\n".join(site.written().file.notes)


def test_two_recordings_at_once(site: Site) -> None:
    process = site.start("--probe", "random", *QUICK)
    assert process.stdout is not None
    process.stdout.readline()
    second = site.record("--probe", "capped", *QUICK)
    assert second.returncode == 1
    assert "record.lock: held by plumbline baseline record" in second.stderr
    process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0


def test_what_a_person_signs(site: Site) -> None:
    done = site.record("--probe", "rtt", *QUICK)
    assert done.returncode == 0, done.stderr
    text = (site.storage / "baseline.yaml").read_text()
    day = time.strftime("%Y-%m-%d", time.gmtime())
    assert text.startswith(f"# Baseline of {os.uname().nodename}, recorded {day} ")
    assert "# Accepted by: ___" in text
    assert "\n# --- network: between this host and its peers (1 figure set, 2 runs each)\n" in text
    assert yaml.safe_load(text)["kernel"] == os.uname().release
