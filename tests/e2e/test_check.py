"""``plumbline check`` on this machine, and the same findings from the daemon: metric and status page."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plumbline.collectors.registry import NAMES
from support.daemon import eventually, run, running
from support.hosts import tree
from support.netns import Namespace, namespace

pytestmark = pytest.mark.timeout(120)
needs_settings = pytest.mark.skipif(
    "sysctl" not in NAMES,
    reason="this release does not read kernel settings: nothing applies to a virtual machine",
)


def check(folder: Path, *flags: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return run("check", "--wait", "500ms", "--storage.path", folder / "state", *flags, prefix=prefix)


def test_it_starts_and_writes_nothing(tmp_path: Path) -> None:
    done = check(tmp_path, "--json")
    assert done.returncode in (0, 1, 2, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_is_one_line_and_its_own_exit_code(tmp_path: Path) -> None:
    done = check(tmp_path, "--config.file", str(tmp_path / "missing.yaml"))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("plumbline: ")
    assert done.stderr.count("\n") == 1
    done = run("check", "--wait", "soon")
    assert done.returncode == 3
    assert "--wait" in done.stderr


def test_a_disk_that_hangs_is_told_and_holds_nothing_up(tmp_path: Path) -> None:
    """A pipe without a writer stands for an attribute that waits for the disk."""
    queue = tmp_path / "sys" / "block" / "sda" / "queue"
    queue.mkdir(parents=True)
    os.mkfifo(queue / "scheduler")
    os.mkfifo(queue.parent / "dev")
    (queue.parents[1] / "sdb").symlink_to(queue.parent)
    began = time.monotonic()
    done = check(tmp_path, "--json", "--path.sysfs", str(tmp_path / "sys"))
    assert time.monotonic() - began < 50  # ten seconds, once, and room for a busy machine
    assert done.stderr.splitlines() == [
        "not judged: disk facts: no answer within 10 s; see dmesg",
        "not judged: disk queues: no answer within 10 s; see dmesg",
    ]
    assert {each["check"].partition(".")[0] for each in json.loads(done.stdout)["findings"]} == {"network"}


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """A storage node's sysfs: an SSD under bfq, a hard disk whose flushes somebody switched off."""
    return tree(tmp_path / "host", "disks-storage-node", "disk-queues").sys


def of_disks(done: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """What is not met, by check and subject."""
    findings = json.loads(done.stdout)["findings"]
    found = {(each["check"], each["subject"]): each for each in findings if each["check"].startswith("disk.")}
    return {key: each for key, each in found.items() if not each["met"]}


def test_the_commands_for_disks_mend_them(disks: Path, tmp_path: Path) -> None:
    flags = ("--json", "--path.sysfs", str(disks))
    found = of_disks(check(tmp_path, *flags))
    assert found.keys() == {
        ("disk.scheduler", "sda"),
        ("disk.read-ahead", "sda"),
        ("disk.scheduler", "sdc"),
        ("disk.flushes-omitted", "sdc"),
    }
    for each in found.values():
        command = each["fix"]["now"].replace("/sys/", f"{disks}/")
        subprocess.run(["sh", "-c", command], check=True)
    assert of_disks(check(tmp_path, *flags)) == {}


def test_findings_on_disks_are_in_the_table_and_in_the_daemons_metric_and_page(disks: Path, tmp_path: Path) -> None:
    table = check(tmp_path, "--path.sysfs", str(disks)).stdout
    assert "echo none > /sys/block/sda/queue/scheduler" in table
    assert 'ENV{ID_SERIAL_SHORT}=="S4EXAMPLE00001", ATTR{queue/scheduler}="none"' in table
    with running(tmp_path, "--path.sysfs", disks) as daemon:

        def open_ones() -> set[tuple[str, str]]:
            series = daemon.metrics().series("plumbline_finding")
            return {(each.labels["check"], each.labels["subject"]) for each in series if each.value}

        assert eventually(lambda: open_ones() >= {("disk.scheduler", "sda"), ("disk.flushes-omitted", "sdc")})
        page = daemon.page()
    assert "disk.flushes-omitted" in page
    assert "/sys/block/sda/queue/scheduler" in page


@needs_settings
def test_for_programs(tmp_path: Path) -> None:
    done = check(tmp_path, "--json")
    said = json.loads(done.stdout)
    worst = 2 if said["summary"]["critical"] else 1 if said["summary"]["warning"] else 0
    assert done.returncode == worst
    assert said["window_seconds"] == 0.5
    open_ones = [each for each in said["findings"] if not each["met"]]
    assert all(each["fix"]["now"] for each in open_ones)
    assert said["summary"]["met"] == len(said["findings"]) - len(open_ones) > 0


@needs_settings
def test_ports_that_a_hypervisor_or_the_kernel_makes_up_get_no_hardware_advice(tmp_path: Path) -> None:
    virtual = {"lo"} | {
        entry.name
        for entry in Path("/sys/class/net").iterdir()
        if not (entry / "device").exists() or (entry / "device" / "driver").resolve().name == "virtio_net"
    }
    hardware = {"ring-below-maximum", "pause-off", "coalescing-off", "offloads-off", "link-below-capability"}
    for each in json.loads(check(tmp_path, "--json").stdout)["findings"]:
        assert not (each["subject"] in virtual and each["check"].partition(".")[2] in hardware)


@pytest.fixture
def mistuned() -> Iterator[Namespace]:
    """A network namespace without selective acknowledgements and with too little receive memory."""
    with namespace() as made:
        for setting in ("net.ipv4.tcp_sack=0", "net.ipv4.tcp_rmem=4096 16384 1048576"):
            subprocess.run(["ip", "netns", "exec", made.name, "sysctl", "-qw", setting], check=True)
        yield made


@needs_settings
@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace: needs root")
def test_the_command_it_gives_mends_it(mistuned: Namespace, tmp_path: Path) -> None:
    inside = ("ip", "netns", "exec", mistuned.name)

    def open_findings() -> dict[str, dict[str, dict[str, str]]]:
        said = json.loads(check(tmp_path, "--json", prefix=inside).stdout)
        return {each["check"]: each for each in said["findings"] if not each["met"]}

    found = open_findings()
    assert {"network.tcp-sack", "network.tcp-rmem"} <= found.keys()
    assert check(tmp_path, prefix=inside).returncode == 1
    for each in ("network.tcp-sack", "network.tcp-rmem"):
        subprocess.run([*inside, "sh", "-c", found[each]["fix"]["now"]], check=True, capture_output=True)
    assert open_findings().keys().isdisjoint({"network.tcp-sack", "network.tcp-rmem"})


@needs_settings
def test_the_daemon_says_the_same(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        findings = eventually(lambda: daemon.metrics().series("plumbline_finding"))
        said = {(each.labels["check"], each.labels["subject"]) for each in findings}
        assert ("network.tcp-sack", "net.ipv4.tcp_sack") in said
        assert {each.value for each in findings} <= {0, 1}
        assert "Findings" in daemon.get("/").text
