"""``plumbline ceph top --clients``: what is printed, and names as far as the cluster tells them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from plumbline import cli
from plumbline.ceph_top.clients import Clients, Load, summary
from plumbline.commands.ceph.admin import Admin, Cluster
from plumbline.commands.ceph.clients import Names, names_of, print_clients
from plumbline.core.console import make_console
from plumbline.sources.ceph.osd_clients import InFlight, Owner

IMAGE, OTHER = Owner(2, "image", "10a4"), Owner(9, "objects", "")
NAMES = Names({2: "vms"}, {IMAGE: "vol-7"})
CEPH = """
case "$*" in
*lspools*) echo '[{"poolnum": 2, "poolname": "vms"}]';;
*) echo 'Error EPERM: no' >&2; exit 1;;
esac"""
RBD = """
case "$*" in
*'info --pool vms --image-id 10a4'*) echo '{"name": "vol-7", "id": "10a4"}';;
*) echo 'rbd: error opening image' >&2; exit 2;;
esac"""


def seen(owner: Owner, count: int, host: str = "10.0.0.9") -> list[InFlight]:
    return [InFlight(f"client.{number % 7}", number, f"{host}{number % 7}", owner, True) for number in range(count)]


def clients(*operations: InFlight, notes: tuple[str, ...] = ()) -> Clients:
    return summary(operations, osds=("osd.0", "osd.3"), interval_s=5.0, notes=notes)


def printed(found: Clients, names: Names = NAMES) -> list[str]:
    stream = io.StringIO()
    print_clients(make_console(stream), found, names)
    return stream.getvalue().splitlines()


def test_who_stands_out_is_named_with_the_clients() -> None:
    lines = printed(clients(*seen(IMAGE, 90), *seen(OTHER, 10)))
    assert lines[0] == "osd.0, osd.3: 100 operations in flight within 5.0 s"
    assert lines[2].split() == [
        "90%", "90", "100%", "image", "vol-7", "of", "pool", "vms", "10.0.0.90,", "10.0.0.91,", "10.0.0.92", "and", "4",
        "more",
    ]  # fmt: skip
    assert lines[-1].startswith("image vol-7 of pool vms loads them: 90% of the OSDs' working time, 80% at least; by ")


def test_nobody_too_few_and_what_is_not_known() -> None:
    even = clients(*seen(IMAGE, 50), *seen(OTHER, 50), notes=("osd.4: no answer",))
    assert printed(even)[-2:] == ["nobody stands out", "osd.4: no answer"]
    few = printed(clients(*seen(IMAGE, 3)), Names(why="names are unknown: no cluster"))
    assert few[-2:] == [
        "too few operations to tell: 10 are needed; look for longer: --interval 60s", "names are unknown: no cluster",
    ]  # fmt: skip
    assert "image with the id 10a4 of pool 2" in few[2]


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        (Owner(2, "objects", "mine"), "namespace mine of pool vms"),
        (Owner(2, "file", "10000000abc"), "file with the inode 10000000abc of pool vms"),
        (Owner(3, "bucket", "4b1c.1.2"), "bucket with the marker 4b1c.1.2 of pool 3"),
    ],
)
def test_what_an_owner_is_called(owner: Owner, text: str) -> None:
    assert NAMES.of(owner) == text


def cluster(folder: Path, **scripts: str) -> Cluster:
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return Cluster(Admin(), {"PATH": f"{folder}:/usr/bin:/bin"})


def loads(*owners: Owner) -> list[Load]:
    return [Load(owner=owner, share=0.5, operations=40, writes=1.0, hosts=()) for owner in owners]


def test_names_come_from_the_cluster_as_far_as_it_tells(tmp_path: Path) -> None:
    named = names_of(loads(IMAGE, OTHER), cluster(tmp_path, ceph=CEPH, rbd=RBD))
    assert (named.pools, named.images, named.why) == ({2: "vms"}, {IMAGE: "vol-7"}, "")
    stranger = names_of(
        loads(Owner(2, "image", "bad"), Owner(7, "image", "10a4")), cluster(tmp_path, ceph=CEPH, rbd=RBD)
    )
    assert stranger.images == {}
    assert stranger.why.startswith("the name of an image is unknown: rbd info --pool vms")
    mute = names_of(loads(IMAGE), cluster(tmp_path, ceph="exit 1", rbd=RBD))
    assert (mute.pools, mute.images) == ({}, {})
    assert mute.why.startswith("names of pools and images are unknown: ceph ")


def test_an_osd_that_is_not_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ceph-osd.3.asok").touch()
    config = tmp_path / "plumbline.yaml"
    config.write_text(f"{{ceph: {{admin_sockets: ['{tmp_path}/*.asok']}}, probes: []}}")
    where = ("--config.file", str(config), "--storage.path", str(tmp_path / "state"))
    assert cli.main(["ceph", "top", "--clients", "osd.9", *where]) == 2
    assert capsys.readouterr().err == "plumbline: no OSD osd.9 here; there are: osd.3\n"
