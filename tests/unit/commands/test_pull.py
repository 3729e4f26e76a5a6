"""Whether a disk may be pulled: who uses it, what the cluster answers, and that nobody guesses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from plumbline.commands.ceph.admin import Admin, Cluster
from plumbline.commands.pull import judge
from plumbline.errors import PlumblineError, Unavailable

MAPPED = "OSD(s) 3 have 87 pgs currently mapped to them."


class Answers:
    """A cluster that answers each question so; a missing answer is an error."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers

    def refuses(self, *words: str) -> str:
        return self.answers[" ".join(words)]


NOT_ASKED = Answers({})


@pytest.mark.parametrize(
    ("uses", "reason", "first"),
    [
        ([("filesystem", "/")], "filesystem / uses it", "unmount it"),
        ([("swap", "/dev/sda2"), ("md", "md0")], "swap /dev/sda2 uses it", "swapoff it"),
        ([("lvm", "vg0/root"), ("filesystem", "/")], "filesystem / uses it", "unmount it"),
        ([("lvm", "vg0/data")], "lvm vg0/data uses it", "remove it if nobody needs vg0/data"),
        ([("md", "md0")], "md md0 uses it", "mark the disk as failed and remove it"),
        ([("zfs", "tank")], "zfs tank uses it", "zpool offline"),
        ([("osd", "osd.3"), ("filesystem", "/srv")], "filesystem /srv uses it", "unmount it"),
    ],
)
def test_what_is_used_by_others_stays(uses: list[tuple[str, str]], reason: str, first: str) -> None:
    answer = judge("sda", uses, unreadable=False, cluster=NOT_ASKED)
    assert (answer.safe, answer.reason) == (False, reason)
    assert answer.first.startswith(first)


def test_what_nobody_uses() -> None:
    answer = judge("sda", [], unreadable=False, cluster=NOT_ASKED)
    assert (answer.safe, answer.osds) == (True, ())
    assert "lsof /dev/sda" in answer.first


@pytest.mark.parametrize(
    ("answers", "safe", "reason", "first"),
    [
        ({"osd safe-to-destroy 3 12": ""}, True, "no data depends on osd.3, osd.12", "stop what still runs"),
        (
            {"osd safe-to-destroy 3 12": MAPPED, "osd ok-to-stop 3 12": ""}, False, MAPPED,
            "ceph osd out 3 12, and ask again when its data has moved",
        ),
        (
            {"osd safe-to-destroy 3 12": MAPPED, "osd ok-to-stop 3 12": "1 PGs would become inactive"}, False,
            "placement groups would become inactive (1 PGs would become inactive)", "ceph osd out 3 12, let it run",
        ),
    ],
)  # fmt: skip
def test_osds_are_the_clusters_to_say(answers: dict[str, str], safe: bool, reason: str, first: str) -> None:
    """The DB of one and the data of another; the volumes and mounts in between are theirs."""
    uses = [
        ("lvm", "ceph-0/block"), ("osd-db", "osd.12"), ("osd", "osd.3"), ("filesystem", "/var/lib/ceph/osd/ceph-3"),
    ]  # fmt: skip
    answer = judge("sdg", uses, unreadable=False, cluster=Answers(answers))
    assert (answer.safe, answer.reason, answer.osds) == (safe, reason, ("osd.3", "osd.12"))
    assert answer.first.startswith(first)


def test_who_cannot_look_is_told_so() -> None:
    for uses, unreadable in (([("osd-db", "")], False), ([], True)):
        with pytest.raises(
            Unavailable, match=r"^sda: which OSDs use it is not readable for this user; run this as root"
        ):
            judge("sda", uses, unreadable=unreadable, cluster=NOT_ASKED)


def ceph(folder: Path, script: str) -> Cluster:
    """A cluster whose ``ceph`` is this shell script."""
    (folder / "ceph").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "ceph").chmod(0o755)
    return Cluster(Admin(), {"PATH": f"{folder}:/usr/bin:/bin"})


def test_a_no_is_told_from_a_failure(tmp_path: Path) -> None:
    """Ceph 16.2 on a cluster of three; EBUSY is 16, EAGAIN 11."""
    assert ceph(tmp_path, 'echo "$@"').refuses("osd", "safe-to-destroy", "3") == ""
    for code, name in ((16, "EBUSY"), (11, "EAGAIN")):
        assert ceph(tmp_path, f"echo 'Error {name}: {MAPPED}' >&2; exit {code}").refuses("osd", "x") == MAPPED
    with pytest.raises(PlumblineError, match="no permission"):
        ceph(tmp_path, "echo 'Error EACCES: no permission' >&2; exit 13").refuses("osd", "x")


def test_without_ceph_the_question_is_named(tmp_path: Path) -> None:
    nowhere = Cluster(Admin(), {"PATH": str(tmp_path)})
    with pytest.raises(
        Unavailable, match=r"^sda: osd\.3 on it; ceph is not installed: .*: ceph osd safe-to-destroy 3$"
    ):
        judge("sda", [("osd", "osd.3")], unreadable=False, cluster=nowhere)
