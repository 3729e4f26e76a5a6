"""Who asks zpool, and when it is left alone."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from plumbline.background.storage import ZpoolStatus
from plumbline.core.process import MAX_OUTPUT_BYTES, Completed, ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable

NODE = Path(__file__).parents[2] / "fixtures" / "arrays-storage-node"
TEXT = (NODE / "zpool_status.txt").read_bytes()
USAGE = Completed(("zpool",), 2, stderr=b"invalid option 'j'\nusage: ...\n")


class Tool:
    """Answers one after the other."""

    def __init__(self, *answers: Completed) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, ...]]()
        self.hanging: tuple[int, ...] = ()

    def stuck(self) -> tuple[int, ...]:
        return self.hanging

    def stop(self) -> None:
        raise AssertionError("nobody ends it here")

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> Completed:
        assert 0 < timeout_s < 60
        assert (keep_fds, max_output_bytes) == ((), MAX_OUTPUT_BYTES)
        self.asked.append(tuple(argv))
        return self.answers.pop(0)


def test_a_suspended_pool_is_not_asked_for() -> None:
    tool = Tool(Completed((), 0, stdout=b"no pools available\n"))
    assert ZpoolStatus(Roots.under(NODE), tool).read() == ()
    assert tool.asked == [("zpool", "status", "-p", "scratch", "tank")]


def test_the_form_that_works_is_remembered() -> None:
    tool = Tool(USAGE, Completed((), 0, stdout=TEXT), Completed((), 0, stdout=TEXT))
    status = ZpoolStatus(Roots.under(NODE), tool)
    assert [pool.name for pool in status.read()] == ["tank", "scratch"]
    assert [pool.name for pool in status.read()] == ["tank", "scratch"]
    assert [argv[2] for argv in tool.asked] == ["-p", "scratch", "scratch"]


def test_the_oldest_form_takes_no_options() -> None:
    tool = Tool(USAGE, Completed((), 0, stdout=TEXT))
    assert len(ZpoolStatus(Roots.under(NODE), tool).read()) == 2
    assert tool.asked[-1] == ("zpool", "status", "scratch", "tank")


def test_without_zfs_nothing_is_run() -> None:
    tool = Tool()
    assert ZpoolStatus(Roots.under(Path("/nowhere")), tool).read() == ()
    assert tool.asked == []


def test_one_that_hangs_is_not_joined_by_another() -> None:
    tool = Tool(Completed((), None, timed_out=True), Completed((), 0, stdout=b"no pools available\n"))
    status = ZpoolStatus(Roots.under(NODE), tool)
    with pytest.raises(PlumblineError, match="no answer within 10 s; see dmesg and zpool events"):
        status.read()
    tool.hanging = (17,)
    with pytest.raises(PlumblineError, match="the last command still hangs in the kernel"):
        status.read()
    assert len(tool.asked) == 1
    tool.hanging = ()
    assert status.read() == ()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Completed(("zpool",), 127), "zpool is not installed"),
        (Completed((), 1, stderr=b"Permission denied the ZFS utilities must be run as root.\n"), "exit 1: Permission"),
        (Completed((), None, cancelled=True), "the daemon is stopping"),
    ],
)
def test_what_is_no_fault(answer: Completed, reason: str) -> None:
    with pytest.raises(Unavailable, match=reason):
        ZpoolStatus(Roots.under(NODE), Tool(answer)).read()


def test_what_is_no_answer_of_zpool_is_no_empty_one() -> None:
    with pytest.raises(ParseError, match="names no pool"):
        ZpoolStatus(Roots.under(NODE), Tool(Completed((), 0, stdout=b"\x00\xff{]\n"))).read()


def test_a_tool_of_that_name_is_run_and_ended(tmp_path: Path) -> None:
    """The real runner, and a zpool that knows no option."""
    (tmp_path / "text").write_bytes(TEXT)
    zpool = tmp_path / "zpool"
    zpool.write_text(f'#!/bin/sh\n[ "$2" = -p ] && exit 2\nwhile read -r line; do :; done; exec cat {tmp_path}/text\n')
    zpool.chmod(0o755)
    runner = ProcessRunner({"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert [pool.state for pool in ZpoolStatus(Roots.under(NODE), runner).read()] == ["DEGRADED", "ONLINE"]
    assert not runner.stuck()


def test_without_the_tool(tmp_path: Path) -> None:
    runner = ProcessRunner({"PATH": str(tmp_path)})
    with pytest.raises(Unavailable, match="zpool is not installed"):
        ZpoolStatus(Roots.under(NODE), runner).read()


@pytest.mark.needs_root
def test_a_tool_stuck_in_the_kernel_stays_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A freezer cgroup (v1) holds it so that SIGKILL waits, as a pool does whose devices are gone."""
    freezer = Path("/sys/fs/cgroup/freezer")
    if os.geteuid() != 0 or not (freezer / "cgroup.procs").exists():
        pytest.skip("needs root and a version 1 freezer cgroup")
    monkeypatch.setattr("plumbline.background.storage.ZPOOL_WITHIN_S", 0.5)
    group = freezer / f"plumbline-zpool-{os.getpid()}"
    group.mkdir()
    (tmp_path / "zpool").write_text(
        f"#!/bin/sh\necho begun >> {tmp_path}/begun\n"
        f"echo $$ > {group}/cgroup.procs; echo FROZEN > {group}/freezer.state; exec sleep 60\n"
    )
    (tmp_path / "zpool").chmod(0o755)
    runner = ProcessRunner({"PATH": f"{tmp_path}:/usr/bin:/bin"})
    status = ZpoolStatus(Roots.under(NODE), runner)
    try:
        with pytest.raises(PlumblineError, match="zpool events"):
            status.read()
        for _ in range(3):
            with pytest.raises(PlumblineError, match="the last command still hangs in the kernel"):
                status.read()
        assert (tmp_path / "begun").read_text() == "begun\n"
    finally:
        (group / "freezer.state").write_text("THAWED")
        deadline = time.monotonic() + 30
        while (runner.stuck() or (group / "cgroup.procs").read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        group.rmdir()
    (tmp_path / "zpool").write_text("#!/bin/sh\necho no pools available\n")
    # starting a shell may take more than 0.5 s on a busy machine
    monkeypatch.setattr("plumbline.background.storage.ZPOOL_WITHIN_S", 10.0)
    assert status.read() == ()  # asked again once the pool let go
