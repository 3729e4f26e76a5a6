"""`plumbline ceph setup` and `remove` on a real cluster: what they make, what they leave alone, what is left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ceph_cluster import CephCluster

pytestmark = [pytest.mark.integration, pytest.mark.ceph]

CONFIG = "ceph: {{conf: {conf}, user: setup-test, pool: st-objects, rbd_pool: st-images}}\n"
USER, OBJECTS, IMAGES = "client.setup-test", "st-objects", "st-images"


class Here:
    """The command line, a directory for keys, and what there is in the cluster."""

    def __init__(self, cluster: CephCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.config = folder / "plumbline.yaml"
        self.config.write_text(CONFIG.format(conf=cluster.conf))
        self.keyring = folder / f"ceph.{USER}.keyring"

    def plumbline(self, *words: str) -> subprocess.CompletedProcess[str]:
        flags = ("--config.file", str(self.config), "--key-dir", str(self.folder))
        return subprocess.run(
            [sys.executable, "-m", "plumbline", "ceph", *words, *flags],
            capture_output=True, text=True, timeout=240, check=False,
            env=self.cluster.environment,
        )  # fmt: skip

    def inventory(self) -> dict[str, set[str]]:
        """Pools with their applications, users with their rights, rules, files: what must be the same afterwards.

        One client asks for all: each start of it takes most of a second.
        """
        said = self.cluster.ceph("-f", "json", stdin="osd pool ls detail\nauth ls\nosd crush rule ls\n")
        texts = [line for line in said.replace("ceph> ", "\n").splitlines() if line[:1] in ("[", "{")]
        pools, users, rules = (json.loads(text) for text in texts)
        return {
            "pools": {f"{each['pool_name']} {each['application_metadata']}" for each in pools},
            "users": {f"{each['entity']} {each['caps']}" for each in users["auth_dump"]},
            "rules": set(rules),
            "files": {path.name for path in self.folder.iterdir()},
        }

    def new(self, what: str, before: dict[str, set[str]]) -> set[str]:
        """Names of what there was not before."""
        return {each.split(" ")[0] for each in self.inventory()[what] - before[what]}

    def as_user(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """A program as the user that was made."""
        program, *words = argv
        return self.cluster.try_run(program, "--name", USER, "--keyring", str(self.keyring), *words, timeout_s=60)


@pytest.fixture
def here(ceph: CephCluster, tmp_path: Path) -> Iterator[Here]:
    found = Here(ceph, tmp_path)
    before = found.inventory()
    yield found
    for pool in found.new("pools", before):
        ceph.remove_pool(pool)
    for user in found.new("users", before):
        ceph.ceph("auth", "rm", user)
    ceph.wait_clean()


def done(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.smoke
def test_it_makes_all_once_and_takes_all_back(here: Here) -> None:
    before = here.inventory()
    shown = done(here.plumbline("setup", "--device-class", "hdd", "--osd-bench"))
    assert here.inventory() == before, "it was only to show the commands"
    assert f"ceph --conf {here.cluster.conf} osd pool create {OBJECTS} 16 16 replicated --autoscale-mode=off" in shown
    assert "AQ" not in shown

    said = done(here.plumbline("setup", "--device-class", "hdd", "--osd-bench", "--apply"))
    made = here.inventory()
    assert here.new("pools", before) == {OBJECTS, f"{OBJECTS}-hdd", IMAGES}
    assert here.new("users", before) == {USER, f"{USER}-bench"}
    assert here.keyring.stat().st_mode & 0o777 == 0o600
    secret = here.cluster.ceph("auth", "get-key", USER)
    assert secret in here.keyring.read_text()
    assert secret not in said
    here.cluster.wait_healthy()  # no warning stays; that of a pool another test removed passes

    for again in (("--device-class", "hdd", "--osd-bench"), ()):  # what was asked for once is not taken back either
        assert "# nothing to do" in done(here.plumbline("setup", "--apply", *again))
        assert here.inventory() == made

    here.keyring.unlink()
    done(here.plumbline("setup", "--apply"))
    assert secret in here.keyring.read_text(), "a second node gets the same key"

    here.keyring.write_text(f"[{USER}]\n\tkey = AQBLxb5mAAAAABAAvG5Lv0mSO0Pca6H0MF8Dkg==\n")
    here.keyring.chmod(0o600)
    assert "its key was changed" in done(here.plumbline("setup", "--apply"))
    assert secret in here.keyring.read_text(), "as after `ceph auth rotate`, which Ceph 16 has not"

    done(here.as_user("rados", "-p", OBJECTS, "-N", "plumbline", "put", "x", str(here.config)))
    done(here.as_user("rbd", "create", "--size", "16M", f"{IMAGES}/plumbline-node-a"))
    with_objects = here.inventory()
    done(here.plumbline("remove"))
    assert here.inventory() == with_objects, "it was only to show the commands"
    done(here.plumbline("remove", "--apply"))
    assert here.inventory() == before
    assert "# nothing to do" in done(here.plumbline("remove", "--apply"))


def test_uninstall_takes_the_cluster_s_part_back_when_it_is_told_to(here: Here, tmp_path: Path) -> None:
    here.config.write_text(here.config.read_text().replace("user:", f"keyring: {here.keyring}, user:"))
    before = here.inventory()
    done(here.plumbline("setup", "--apply"))
    there = here.inventory()
    assert there["files"] != before["files"]
    # this host's own /etc and /var are kept out of it
    flags = ("--storage.path", str(tmp_path / "none"), "--path.etc", str(tmp_path), "--path.var", str(tmp_path))

    def uninstall(*more: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "plumbline", "uninstall", "--config.file", str(here.config), *flags, *more]
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=240, env=here.cluster.environment, check=False
        )

    done(uninstall("--apply"))
    assert here.inventory() == there, "other nodes use it"
    assert "pool" in done(uninstall("--ceph"))
    assert here.inventory() == there
    done(uninstall("--ceph", "--apply"))
    assert here.inventory() == before


def test_the_commands_it_shows_do_the_same_in_a_shell(here: Here) -> None:
    before = here.inventory()
    script = done(here.plumbline("setup"))
    done(
        subprocess.run(
            ["sh", "-euc", script], capture_output=True, text=True, env=here.cluster.environment, check=False
        )
    )
    assert "# nothing to do" in done(here.plumbline("setup", "--apply"))
    script = done(here.plumbline("remove"))
    done(
        subprocess.run(
            ["sh", "-euc", script], capture_output=True, text=True, env=here.cluster.environment, check=False
        )
    )
    assert here.inventory()["pools"] == before["pools"]


def test_the_user_reaches_its_pools_and_nothing_else(here: Here) -> None:
    cluster = here.cluster
    done(here.plumbline("setup", "--apply"))
    cluster.add_pool("st-foreign", application="rbd")
    secret = str(here.config)
    cluster.run("rados", "-p", "st-foreign", "put", "secret", secret)
    cluster.run("rados", "-p", OBJECTS, "put", "secret", secret)
    cluster.run("rados", "-p", OBJECTS, "-N", "other", "put", "secret", secret)
    cluster.run("rbd", "create", "--size", "16M", "st-foreign/image")

    ours = ("rados", "-p", OBJECTS, "-N", "plumbline")
    done(here.as_user(*ours, "put", "x", secret))
    assert done(here.as_user(*ours, "get", "x", "-")) == here.config.read_text()
    done(here.as_user(*ours, "bench", "1", "write", "-b", "4096"))
    image = f"{IMAGES}/plumbline-a"
    done(here.as_user("rbd", "create", "--size", "16M", image))
    done(here.as_user("rbd", "image-meta", "set", image, "owner", "a"))
    done(here.as_user("rbd", "bench", "--io-type", "write", "--io-total", "1M", image))
    done(here.as_user("rbd", "rm", image, "--no-progress"))
    for words in (("status",), ("health", "detail"), ("osd", "dump"), ("osd", "map", OBJECTS, "x")):
        done(here.as_user("ceph", *words))

    refused = [
        ("rados", "-p", "st-foreign", "ls"),
        ("rados", "-p", "st-foreign", "get", "secret", "-"),
        ("rados", "-p", "st-foreign", "put", "mine", secret),
        ("rados", "-p", "st-foreign", "rm", "secret"),
        ("rados", "-p", OBJECTS, "get", "secret", "-"),
        ("rados", "-p", OBJECTS, "put", "mine", secret),
        ("rados", "-p", OBJECTS, "-N", "other", "get", "secret", "-"),
        ("rados", "-p", OBJECTS, "-N", "other", "rm", "secret"),
        ("rbd", "create", "--size", "16M", "st-foreign/mine"),
        ("rbd", "rm", "st-foreign/image"),
        ("rbd", "info", "st-foreign/image"),
        ("ceph", "osd", "pool", "create", "st-mine", "8"),
        ("ceph", "osd", "pool", "delete", OBJECTS, OBJECTS, "--yes-i-really-really-mean-it"),
        ("ceph", "osd", "set", "noout"),
        ("ceph", "osd", "down", "0"),
        ("ceph", "auth", "ls"),
        ("ceph", "auth", "get", "client.admin"),
        ("ceph", "config-key", "ls"),
        ("ceph", "tell", "osd.0", "bench"),
    ]
    for words in refused:
        tried = here.as_user(*words)
        assert tried.returncode != 0, words
        said = tried.stderr.lower()
        assert "denied" in said or "not permitted" in said or "eacces" in said, (words, said)
    assert done(here.cluster.try_run("rados", "-p", "st-foreign", "get", "secret", "-")) == here.config.read_text()


def test_a_foreign_pool_is_neither_used_nor_removed(here: Here) -> None:
    here.cluster.add_pool(OBJECTS, application="rgw")
    here.cluster.run("rados", "-p", OBJECTS, "put", "precious", str(here.config))
    before = here.inventory()
    for action in ("setup", "remove"):
        refused = here.plumbline(action, "--apply")
        assert refused.returncode == 1
        assert f"pool {OBJECTS} is used by rgw" in refused.stderr
        assert here.inventory() == before


def test_a_pool_of_ours_that_somebody_uses_is_not_removed(here: Here) -> None:
    done(here.plumbline("setup", "--apply"))
    here.cluster.run("rados", "-p", OBJECTS, "put", "precious", str(here.config))
    here.cluster.run("rbd", "create", "--size", "16M", f"{IMAGES}/vm-disk")
    refused = here.plumbline("remove", "--apply")
    assert refused.returncode == 1
    assert f"pool {OBJECTS} holds an object that is not ours (precious)" in refused.stderr
    assert f"pool {IMAGES} holds an object that is not ours (rbd_id.vm-disk)" in refused.stderr
    assert here.cluster.run("rados", "-p", OBJECTS, "get", "precious", "-") == here.config.read_text()
    assert here.cluster.run("rbd", "ls", IMAGES).split() == ["vm-disk"]


@pytest.mark.parametrize(
    "caps",
    [
        ("mon", "allow *", "osd", "allow *"),
        ("mon", "allow r", "osd", "allow rwx pool=other"),
        ("mon", "allow service mon r, allow service osd r", "osd", "allow rwx pool=st-objects, allow rwx pool=other"),
    ],
)
def test_a_foreign_user_is_not_changed(here: Here, caps: tuple[str, ...]) -> None:
    here.cluster.ceph("auth", "get-or-create", USER, *caps)
    before = here.inventory()
    for action in ("setup", "remove"):
        refused = here.plumbline(action, "--apply")
        assert refused.returncode == 1
        assert f"user {USER} has rights beyond ours" in refused.stderr
        assert here.inventory() == before


def test_a_pool_that_may_not_be_deleted_says_how(here: Here) -> None:
    done(here.plumbline("setup", "--apply"))
    here.cluster.ceph("tell", "mon.a", "injectargs", "--mon_allow_pool_delete=false")
    try:
        refused = here.plumbline("remove", "--apply")
    finally:
        here.cluster.ceph("tell", "mon.a", "injectargs", "--mon_allow_pool_delete=true")
    assert refused.returncode == 1
    assert "ceph config set mon mon_allow_pool_delete true" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def test_a_class_that_no_osd_has(here: Here) -> None:
    refused = here.plumbline("setup", "--device-class", "nvme")
    assert refused.returncode == 2
    assert "no OSD has this class; there are: hdd" in refused.stderr


def test_without_a_cluster_it_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "ceph.conf").write_text("[global]\nmon_host = 127.0.0.1:1\nclient_mount_timeout = 2\n")
    asked = subprocess.run(
        [sys.executable, "-m", "plumbline", "ceph", "setup", "--conf", str(tmp_path / "ceph.conf")],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert asked.returncode == 1
    assert len(asked.stderr.strip().splitlines()) == 1
    assert json.dumps(asked.stderr).count("Traceback") == 0
