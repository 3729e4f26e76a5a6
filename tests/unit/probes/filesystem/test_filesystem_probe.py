from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.background.mounts import verdict
from plumbline.config.model import parse
from plumbline.config.probes.filesystem import FilesystemConfig
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import Completed
from plumbline.core.roots import Roots
from plumbline.errors import ConfigError, ParseError, ProbeRefused
from plumbline.probes.filesystem.filesystem import FilesystemProbe, MountAnswer
from plumbline.probes.filesystem.mount_place import find_mount, wrong_place
from plumbline.probes.filesystem.place import place_of
from plumbline.probes.filesystem.zfs import zfs_release
from plumbline.probes.run.child_task import Timed, parse_answer
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import Outcome, summarise
from plumbline.sources.kernel.mounts import is_remote, mount_named, parse_mountinfo

CATALOGUE = load_catalogue()
MOUNTINFO = (
    "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
    "36 27 0:40 / /mnt/ceph rw - ceph mon1,mon2:/ rw\n"
    "40 27 0:41 / /tank rw - zfs tank rw\n"
)
BOUND = "60 27 254:0 /mnt/nfs /mnt/nfs rw - ext4 /dev/vda rw\n"
"""What systemd makes of ``ReadWritePaths=/mnt/nfs`` while nothing is mounted there."""


class Answers:
    """Commands that end at once, each with the next answer."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[Sequence[str]] = []
        self._answers = list(answers)

    def run(self, argv: Sequence[str], **_more: object) -> Completed:
        self.asked.append(argv)
        answer = self._answers.pop(0)
        return answer if isinstance(answer, Completed) else Completed((), 0, json.dumps(answer).encode())


def roots(tmp_path: Path) -> Roots:
    (tmp_path / "proc" / "self").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc" / "self" / "mountinfo").write_text(MOUNTINFO)
    return Roots.under(tmp_path)


def run(tmp_path: Path, directory: str, answers: Answers, workload: str = "fs-metadata-1k", **more: object):
    config = FilesystemConfig(name="fs", directory=directory, workload=workload, **more)
    probe = FilesystemProbe(
        config, CATALOGUE.by_id[workload], device_class="ceph", filesystem="ceph", device="", roots=roots(tmp_path)
    )
    return probe.run(Run(runner=answers, clock=lambda: 0.0, stopping=threading.Event()))


def test_figures_of_every_operation(tmp_path: Path):
    spent = [1_000_000] * 990 + [50_000_000] * 10
    answers = Answers({"mount_id": 36}, {"kind": "done", "spent": {"create": spent, "stat": spent, "unlink": spent}})
    result = run(tmp_path, "/mnt/ceph/probe", answers, filesystem="ceph")
    assert result.outcome is Outcome.SUCCESS
    assert [each.operation for each in result.operations] == ["create", "stat", "unlink"]
    assert result.operations[0].iops == pytest.approx(1000 / 1.49)
    assert result.operations[0].latency["p99"] == 0.001
    assert result.operations[0].latency["p999"] == 0.05
    assert result.operations[0].bins == ((0.001, 990), (0.05, 10))


@pytest.mark.parametrize(
    ("answer", "reason", "says"),
    [
        (Completed((), None, timed_out=True), "mount-dead", "does not answer within 5 s"),
        ({"errno": 116, "error": "Stale file handle"}, "mount-dead", "Stale file handle"),
        ({"errno": 107, "error": "Transport endpoint is not connected"}, "mount-dead", "umount -l"),
        ({"errno": 2, "error": "No such file or directory"}, "missing", "create the parent"),
        ({"mount_id": 27}, "not-mounted", "is on ext4 (mounted on /), not on ceph"),
        ({"mount_id": 40}, "not-mounted", "is on zfs"),
        ({"mount_id": 99}, "not-mounted", "its mount is not visible"),
        (Completed((), 1, b"", b"Traceback\nMemoryError: no\n"), "mount-dead", "MemoryError"),
        (Completed((), None, cancelled=True), "stopped", "ended"),
    ],
)
def test_refusals_before_anything_is_touched(tmp_path: Path, answer: object, reason: str, says: str):
    answers = Answers(answer)
    with pytest.raises(ProbeRefused) as refusal:
        run(tmp_path, "/mnt/ceph/probe", answers, filesystem="ceph")
    assert refusal.value.reason == reason
    assert says in str(refusal.value)
    assert len(answers.asked) == 1


def test_any_file_system_but_the_root_without_a_type(tmp_path: Path):
    with pytest.raises(ProbeRefused, match="filesystem: ext4") as refusal:
        run(tmp_path, "/srv/probe", Answers({"mount_id": 27}))
    assert refusal.value.reason == "not-mounted"


def test_the_root_file_system_has_several_names(tmp_path: Path):
    here = roots(tmp_path)
    (here.proc / "self" / "mountinfo").write_text(MOUNTINFO + BOUND)
    config = FilesystemConfig(name="fs", directory="/mnt/nfs/probe", workload="fs-metadata-1k")
    probe = FilesystemProbe(
        config, CATALOGUE.by_id["fs-metadata-1k"], device_class="x", filesystem="", device="", roots=here
    )
    with pytest.raises(ProbeRefused, match="is on the root file system") as refusal:
        probe.run(Run(runner=Answers({"mount_id": 60}), clock=lambda: 0.0, stopping=threading.Event()))
    assert refusal.value.reason == "not-mounted"
    host = SimpleNamespace(roots=here, disk_below=lambda _: SimpleNamespace(name="vda"))
    assert place_of(Path("/mnt/nfs/probe"), None, host) == ("", "", False)
    assert place_of(Path("/mnt/nfs/probe"), "ext4", host) == ("ext4", "vda", True)


@pytest.mark.parametrize(
    ("answer", "outcome", "says"),
    [
        ({"kind": "failed", "message": "No space left on device"}, Outcome.FAILURE, "No space"),
        ({"kind": "failed", "message": "raise the timeout", "timeout": True}, Outcome.TIMEOUT, "raise"),
        ({"kind": "done"}, Outcome.FAILURE, "create: 0 of 1000 operations"),
        ({"kind": "done", "spent": {"create": [1] * 1000}}, Outcome.FAILURE, "stat: 0 of 1000 operations"),
        (Completed((), None, timed_out=True), Outcome.TIMEOUT, "SIGKILL"),
        (Completed((), 1, b"nonsense", b"OSError: odd"), Outcome.FAILURE, "OSError: odd"),
    ],
)
def test_what_goes_wrong_under_way(tmp_path: Path, answer: object, outcome: Outcome, says: str):
    result = run(tmp_path, "/mnt/ceph/probe", Answers({"mount_id": 36}, answer))
    assert (result.outcome, result.operations) == (outcome, ())
    assert says in result.message


@pytest.mark.parametrize(
    ("version", "refused"), [("2.1.11-1", True), ("2.2.99", True), ("2.3.0-1", False), ("3.0", False), (None, True)]
)
def test_old_zfs_does_not_heed_o_direct(tmp_path: Path, version: str | None, refused: bool):
    if version:
        (tmp_path / "sys" / "module" / "zfs").mkdir(parents=True)
        (tmp_path / "sys" / "module" / "zfs" / "version").write_text(f"{version}\n")
    answers = Answers({"mount_id": 40}, {"kind": "failed", "message": "ran"})
    if refused:
        with pytest.raises(ProbeRefused, match="-buffered") as refusal:
            run(tmp_path, "/tank/probe", answers, "fs-randwrite-4k-qd1-j1")
        assert refusal.value.reason == "no-direct-io"
    else:
        assert run(tmp_path, "/tank/probe", answers, "fs-randwrite-4k-qd1-j1").message == "ran"


def test_no_direct_io_names_the_buffered_workload(tmp_path: Path):
    answer = {"kind": "refused", "reason": "no-direct-io", "message": "/x: the file system refuses O_DIRECT; name …"}
    with pytest.raises(ProbeRefused, match="refuses O_DIRECT; name a workload whose id ends in -buffered"):
        run(tmp_path, "/mnt/ceph/probe", Answers({"mount_id": 36}, answer), "fs-randwrite-4k-qd1-j1")


def test_the_mount_by_name_alone():
    mounts = parse_mountinfo(MOUNTINFO + "50 36 0:50 / /mnt/ceph rw - nfs4 s:/ rw\n")
    assert mount_named("/mnt/ceph/a", mounts).filesystem == "nfs4"  # on top
    assert mount_named("/mnt/cephalopod", mounts).mount_point == "/"
    assert mount_named("/tank", mounts).mount_point == "/tank"
    assert mount_named("relative", ()) is None


@pytest.mark.parametrize(
    ("filesystem", "remote"),
    [
        *((each, True) for each in ("ceph", "nfs4", "fuse.glusterfs", "fuse", "lustre")),
        *((each, False) for each in ("xfs", "zfs", "fuse.lxcfs", "fuseblk")),
    ],
)
def test_which_depend_on_a_server(filesystem: str, remote: bool):
    assert is_remote(filesystem) is remote


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("directory: relative", "absolute path"),
        ("directory: /a/../b", "absolute path"),
        ("directory: /mnt/a\n    filesystem: 'no such'", "a type as in"),
        ("directory: /mnt/a\n    workload: randwrite-4k-qd1-j1", "not for this type of probe"),
    ],
)
def test_configuration_mistakes(change: str, says: str):
    text = f"probes:\n  - type: filesystem\n    name: fs\n    {change}\n"
    with pytest.raises(ConfigError, match=says):
        parse(text, where="test")


@pytest.mark.parametrize(
    ("said", "up"),
    [
        (b'{"mount_id": 36}', True),
        (b'{"errno": 116, "error": "Stale"}', False),
        (b'{"errno": 13, "error": "Permission denied"}', None),
        (b"", None),
        (b"[]", None),
    ],
)
def test_verdicts(said: bytes, up: bool | None):
    assert verdict(said) is up


@given(st.binary(max_size=200))
def test_answers_are_understood_or_refused(said: bytes):
    for kind in (MountAnswer, Timed):
        try:
            found = parse_answer(said, kind, source="x")
        except ParseError:
            continue
        assert isinstance(found, kind)
    assert verdict(said) in (True, False, None)


@given(st.text(max_size=30))
def test_zfs_release_is_total(version: str):
    found = zfs_release(version)
    assert found is None or all(part >= 0 for part in found)


@given(st.lists(st.integers(0, 10**12), max_size=200), st.integers(0, 2**22))
def test_summaries_keep_every_operation(spent: list[int], size: int):
    figures = summarise("x", spent, bytes_each=size)
    assert sum(count for _, count in figures.bins) == len(spent)
    assert [at for at, _ in figures.bins] == sorted({at for at, _ in figures.bins})
    if spent:
        assert figures.latency["p50"] <= figures.latency["p95"] <= figures.latency["max"] == max(spent) / 1e9


def test_a_mount_by_its_id():
    more = b"51 27 0:51 / /mnt/a\\040b rw shared:1 - fuse.bindfs /x rw\n7\n"
    lines = (MOUNTINFO.encode() + BOUND.encode() + more).split(b"\n")
    assert find_mount(lines, 27) == ("ext4", "/", True)
    assert find_mount(lines, 36) == ("ceph", "/mnt/ceph", False)
    assert find_mount(lines, 51) == ("fuse.bindfs", "/mnt/a\\040b", False)
    assert find_mount(lines, 60) == ("ext4", "/mnt/nfs", True)
    assert find_mount(lines, 3) is None


@pytest.mark.parametrize(
    ("filesystem", "point", "expected", "says"),
    [
        ("ceph", "/mnt/ceph", None, ""),
        ("ceph", "/mnt/ceph", "ceph", ""),
        ("ext4", "/", "ext4", ""),
        ("ext4", "/", None, "filesystem: ext4"),
        ("ext4", "/", "ceph", "not on ceph"),
        ("ext4", "/mnt/nfs", None, "filesystem: ext4"),
    ],
)
def test_the_right_place(filesystem: str, point: str, expected: str | None, says: str):
    said = wrong_place(filesystem, point, expected, root=filesystem == "ext4")
    assert bool(said) is bool(says)
    assert says in said


@given(st.binary(max_size=200), st.integers(0, 99))
def test_finding_a_mount_is_total(text: bytes, mount_id: int):
    for each in (text, b"%d " % mount_id + text):
        found = find_mount(each.split(b"\n"), mount_id)
        assert found is None or (isinstance(found[0], str) and isinstance(found[1], str))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("directory: relative", "absolute path"),
        ("directory: /mnt/a\n    workload: fs-metadata-1k", "not for this type of probe; possible: fs-ops-4k"),
        ("directory: /mnt/a\n    file_size: 1KiB", "at least 1MiB"),
        ("directory: /mnt/a\n    rate: 101", "rate"),
        ("directory: /mnt/a\n    filesystem: 'no such'", "a type as in"),
    ],
)
def test_configuration_mistakes_of_the_canary(change: str, says: str):
    text = f"probes:\n  - type: filesystem-canary\n    name: fs\n    {change}\n"
    with pytest.raises(ConfigError, match=says):
        parse(text, where="test")
