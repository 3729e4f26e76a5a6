"""The demo's parts that need neither Prometheus nor root: configurations, cgroup lookups, processes that end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deploy.demo import configs, slowdown, webhook
from deploy.demo.processes import DemoError, Processes, program
from deploy.demo.story import milliseconds

from support.daemon import alive

MOUNTINFO_V1 = """\
26 23 0:23 / /sys/fs/cgroup rw,relatime shared:9 - tmpfs tmpfs rw,mode=755
27 26 0:24 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:10 - cgroup cgroup rw,cpu,cpuacct
33 26 0:30 / /sys/fs/cgroup/blkio rw,relatime shared:16 - cgroup cgroup rw,blkio
36 26 0:33 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
"""
MOUNTINFO_V2 = "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def test_alertmanagers_committed_routes_stay_and_only_receivers_and_waits_change() -> None:
    committed = {
        "global": {"smtp_smarthost": "mail.example:25"},
        "route": {
            "receiver": "tickets",
            "group_by": ["alertname"],
            "group_wait": "30s",
            "routes": [{"receiver": "pager", "matchers": ['severity="critical"'], "repeat_interval": "1h"}],
        },
        "inhibit_rules": [{"source_matchers": ['alertname="PlumblineDown"'], "equal": ["instance"]}],
        "receivers": [{"name": "tickets", "email_configs": [{"to": "ops@example"}]}, {"name": "pager"}],
    }

    demo = configs.alertmanager(committed, webhook="http://127.0.0.1:1")

    waits = {"group_wait": "1s", "group_interval": "5s", "repeat_interval": "12h"}
    assert demo == {
        "inhibit_rules": [{"source_matchers": ['alertname="PlumblineDown"'], "equal": ["instance"]}],
        "receivers": [
            {"name": "tickets", "webhook_configs": [{"url": "http://127.0.0.1:1/tickets", "send_resolved": True}]},
            {"name": "pager", "webhook_configs": [{"url": "http://127.0.0.1:1/pager", "send_resolved": True}]},
        ],
        "route": {
            "receiver": "tickets",
            "group_by": ["alertname"],
            **waits,
            "routes": [{"receiver": "pager", "matchers": ['severity="critical"'], **waits}],
        },
    }


def test_one_ticket_waits_less_and_nothing_else_differs() -> None:
    rules = Path(__file__).parents[3] / "alerts" / "out"
    text = "".join(file.read_text("utf-8") for file in sorted(rules.glob("*.yaml")))
    shipped, hastened = text.splitlines(), configs.impatient(text).splitlines()
    changed = [(was.strip(), now.strip()) for was, now in zip(shipped, hastened, strict=True) if was != now]
    assert changed == [
        ("for: 6m", "for: 1m"),
        ("This has lasted for at least 6m.", "This has lasted for at least 1m."),
    ]


def test_a_webhook_message_becomes_notifications() -> None:
    payload = {
        "receiver": "pager",
        "status": "firing",
        "alerts": [{"status": "resolved", "labels": {"alertname": "A"}, "annotations": {"summary": "s"}, "endsAt": ""}],
    }

    assert webhook.notifications(payload) == [
        webhook.Notification("pager", "resolved", {"alertname": "A"}, {"summary": "s"})
    ]


@pytest.mark.parametrize(
    ("mountinfo", "found"),
    [
        (MOUNTINFO_V1, (Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup/unified"))),
        (MOUNTINFO_V2, (None, Path("/sys/fs/cgroup"))),
        ("", (None, None)),
    ],
)
def test_controllers(mountinfo: str, found: tuple[Path | None, Path | None]) -> None:
    assert slowdown.controllers(mountinfo) == found


def test_membership() -> None:
    cgroup = "7:blkio:/system.slice/x\n1:cpu,cpuacct:/\n0::/user.slice\n"

    assert slowdown.membership(cgroup, "blkio") == "system.slice/x"
    assert slowdown.membership(cgroup, "cpuacct") == ""
    assert slowdown.membership(cgroup, "") == "user.slice"
    with pytest.raises(DemoError, match="no memory cgroup"):
        slowdown.membership(cgroup, "memory")


@pytest.mark.needs_root
def test_a_limit_that_the_kernel_refuses_is_named_with_its_reason() -> None:
    v1, v2 = slowdown.controllers(Path("/proc/self/mountinfo").read_text())
    mount = v1 or v2
    if os.geteuid() != 0 or mount is None:
        pytest.skip("not root, or no control groups here")
    name = "blkio.throttle.write_iops_device" if v1 else "io.max"
    group = mount / f"plumbline-test-{os.getpid()}"
    # no disk has this number
    slow = slowdown.Throttle(group, {name: "4095:1048575 wiops=2"}, home=lambda _: mount, description="")
    try:
        with pytest.raises(DemoError) as refused:
            slow.apply([])
    finally:
        slow.remove()

    assert re.fullmatch(
        rf"the kernel refuses the I/O limit '4095:1048575 wiops=2' in {group}/{name}: E[A-Z]+ \(.+\)",
        str(refused.value),
    )
    assert not group.exists()


def test_a_program_that_is_missing_names_its_package() -> None:
    with pytest.raises(DemoError, match=r"no-such-program is not installed; as root: apt-get install .* some-package"):
        program("no-such-program", "some-package")


@pytest.mark.parametrize(("seconds", "text"), [(0.000251, "0.251 ms"), (0.4321, "432 ms"), (1.5, "1.5e+03 ms")])
def test_milliseconds(seconds: float, text: str) -> None:
    assert milliseconds(seconds) == text


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    yield started
    started.stop()


def test_who_ends_by_itself_is_named_with_its_last_words(processes: Processes) -> None:
    process = processes.start("talker", ["sh", "-c", "echo no space left >&2; exit 3"])
    process.popen.wait(10)

    with pytest.raises(DemoError, match=r"talker ended by itself \(exit code 3\)\n    no space left"):
        processes.check()


def test_stop_ends_everything_even_a_grandchild(processes: Processes, tmp_path: Path) -> None:
    processes.start("parent", ["sh", "-c", f"sleep 300 & echo $! > {tmp_path}/grandchild; wait"])
    _until((tmp_path / "grandchild").exists)
    _until(lambda: (tmp_path / "grandchild").read_text() != "")
    grandchild = int((tmp_path / "grandchild").read_text())
    processes.check()

    processes.stop()

    assert processes.running == []
    _until(lambda: not alive(grandchild))


def test_a_demo_that_is_killed_takes_its_processes_along(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from deploy.demo.processes import Processes\n"
        "started = Processes(Path(sys.argv[1])).start('sleeper', ['sleep', '300'])\n"
        "print(started.popen.pid, flush=True); time.sleep(300)"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True, cwd=root) as demo:
        assert demo.stdout is not None
        sleeper = int(demo.stdout.readline())
        _until(lambda: Path(f"/proc/{sleeper}/comm").read_text() == "sleep\n")
        demo.send_signal(signal.SIGKILL)

    _until(lambda: not alive(sleeper))


def test_workers_are_found_among_the_daemons_descendants(processes: Processes, tmp_path: Path) -> None:
    script = tmp_path / "child"
    script.write_text("sleep 300 & exec -a plumbline-canary_worker sleep 300\n")
    parent = processes.start("daemon", ["bash", "-c", f"bash {script} & wait"])

    _until(lambda: len(slowdown.workers(parent.popen.pid, Path("/proc"))) == 1)

    (worker,) = slowdown.workers(parent.popen.pid, Path("/proc"))
    assert Path(f"/proc/{worker}/cmdline").read_bytes().startswith(b"plumbline-canary_worker\0")
    assert slowdown.workers(os.getpid(), Path("/proc/no-such-tree")) == []


def _until(true: Callable[[], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)
