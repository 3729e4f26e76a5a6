"""The one file of ``plumbline ceph`` on a node, a keyring: replaced and removed only where it holds the same key."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.commands.ceph.admin import Admin, Cluster
from plumbline.commands.ceph.setup import Plan, Step
from plumbline.errors import PlumblineError
from support.manifest import manifest

USER = "client.plumbline"
KEY = f"[{USER}]\n\tkey = AQDNEWAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\n"
OLD = f"[{USER}]\n\tkey = old\n"


@pytest.fixture
def keyring(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / "bin").mkdir()
    ceph = tmp_path / "bin" / "ceph"
    ceph.write_text(f"#!/bin/sh\nprintf '{KEY}'\n")
    ceph.chmod(0o755)
    return tmp_path / "etc" / "ceph.keyring"


def apply(keyring: Path, step: Step) -> None:
    path = f"{keyring.parent.parent}/bin:{os.environ['PATH']}"
    Cluster(Admin(), {"PATH": path}).apply(Plan((step,), ()), before=lambda _: None)


def write(keyring: Path) -> None:
    apply(keyring, Step(("ceph", "auth", "get-or-create", USER), "the user", str(keyring), USER))


def remove(keyring: Path) -> None:
    apply(keyring, Step(("rm", str(keyring)), "its key", user=USER))


def test_a_key_is_written_replaced_and_removed(keyring: Path) -> None:
    write(keyring)
    assert (keyring.read_text(), keyring.stat().st_mode & 0o777) == (KEY, 0o600)
    keyring.write_text(OLD)
    if os.geteuid() == 0:
        os.chown(keyring, 12345, -1)  # cephadm hands it to the service's user
    write(keyring)
    assert keyring.read_text() == KEY
    remove(keyring)
    remove(keyring)
    assert list(keyring.parent.iterdir()) == []


def _other_keys(path: Path) -> None:
    path.write_text(f"{OLD}[client.admin]\n\tkey = precious\n")


def _another_key(path: Path) -> None:
    path.write_text("[client.admin]\n\tkey = precious\n")


def _link(path: Path) -> None:
    (path.parent / "real").write_text(OLD)
    path.symlink_to("real")


def _hard_link(path: Path) -> None:
    (path.parent / "real").write_text(OLD)
    path.hardlink_to(path.parent / "real")


@pytest.mark.parametrize("act", [write, remove])
@pytest.mark.parametrize("make", [_other_keys, _another_key, _link, _hard_link, os.mkfifo, Path.mkdir])
def test_nothing_else_is_touched(keyring: Path, make: Callable[[Path], object], act: Callable[[Path], None]) -> None:
    """It may have come since the cluster was looked at."""
    make(keyring)
    before = manifest(keyring.parent)
    with pytest.raises(PlumblineError, match=r"ceph\.keyring"):
        act(keyring)
    assert manifest(keyring.parent) == before


def test_a_ceph_that_can_not_read_the_key_says_so_without_the_key(keyring: Path) -> None:
    """Standard error as Ceph 16.2.15 writes it for a keyring with a key of type aes256k."""
    ceph = keyring.parent.parent / "bin" / "ceph"
    ceph.write_text(
        "#!/bin/sh\n"
        "echo 'auth: error setting modifier for [client.admin] type=key val=Ag: Malformed input' >&2\n"
        "echo '[errno 5] RADOS I/O error (error connecting to the cluster)' >&2\n"
        "exit 1\n"
    )
    with pytest.raises(PlumblineError, match=r"RADOS I/O error .* of type aes256k, Ceph 19\.2\.6, ") as said:
        write(keyring)
    assert "val=" not in str(said.value)
