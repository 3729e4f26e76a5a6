"""From the configuration to arguments; and what is said where there is no cluster or no key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plumbline.config.model import CephConfig
from plumbline.config.types import Duration
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.ceph_access import CephAccess

pytestmark = pytest.mark.usefixtures("private_files")

KEY = "[client.plumbline]\n\tkey = AQBLxb5mAAAAABAAvG5Lv0mSO0Pca6H0MF8Dkg==\n"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "ceph.conf"
    path.write_text(
        f"[global]\nmon_host = 192.0.2.1\nkeyring = {tmp_path}/none/$name,{tmp_path}/$cluster.$name.keyring\n"
    )
    return path


def refusal(access: CephAccess) -> ProbeRefused:
    with pytest.raises(ProbeRefused) as caught:
        access.check()
    assert not access.usable
    assert "\n" not in str(caught.value)
    return caught.value


def test_without_a_configuration_there_is_no_cluster(tmp_path: Path) -> None:
    refused = refusal(CephAccess.of(CephConfig(conf=str(tmp_path / "ceph.conf"))))
    assert refused.reason == "no-cluster"
    assert str(refused).endswith("so this node has no Ceph cluster; set ceph.conf if it has one")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_configuration_that_may_not_be_read(conf: Path) -> None:
    conf.chmod(0)
    assert refusal(CephAccess.of(CephConfig(conf=str(conf)))).reason == "no-cluster"


def test_the_key_is_where_cephs_configuration_says(conf: Path) -> None:
    access = CephAccess.of(CephConfig(conf=str(conf)))
    refused = refusal(access)
    assert refused.reason == "no-key"
    for part in (
        "none/client.plumbline: not there",
        "ceph.client.plumbline.keyring: not there",
        "plumbline ceph setup",
    ):
        assert part in str(refused)
    keyring = conf.parent / "ceph.client.plumbline.keyring"
    keyring.write_text(KEY)
    assert access.key_file() == str(keyring)
    assert access.usable


@pytest.mark.parametrize(
    ("section", "expected"),
    [("client.plumbline", "mine"), ("client", "mine"), ("client.other", "default"), ("osd", "default")],
)
def test_the_nearest_section_says_where_the_key_is(tmp_path: Path, section: str, expected: str) -> None:
    for name in ("mine", "default"):
        (tmp_path / name).write_text(KEY)
    conf = tmp_path / "ceph.conf"
    conf.write_text(f"[global]\nkeyring = {tmp_path}/default\n[{section}]\nkeyring = {tmp_path}/mine\n")
    assert CephAccess.of(CephConfig(conf=str(conf))).key_file() == f"{tmp_path}/{expected}"


def test_a_keyring_that_holds_others_keys_only(conf: Path, tmp_path: Path) -> None:
    keyring = tmp_path / "keyring"
    keyring.write_text(KEY.replace("plumbline", "plumbline-bench"))
    refused = refusal(CephAccess.of(CephConfig(conf=str(conf), keyring=str(keyring))))
    assert refused.reason == "no-key"
    assert "holds only keys of other users" in str(refused)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe[client.plumbline", b"[client.plumbline\n", b"[" * 5000])
def test_a_keyring_that_is_none(conf: Path, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "keyring").write_bytes(data)
    assert refusal(CephAccess.of(CephConfig(conf=str(conf), keyring=str(tmp_path / "keyring")))).reason == "no-key"
    assert refusal(CephAccess.of(CephConfig(conf=str(conf), keyring=str(tmp_path)))).reason == "no-key"


def test_arguments_name_files_and_never_a_key(conf: Path) -> None:
    access = CephAccess.of(CephConfig(conf="/c", keyring="/k", timeout=Duration(2.5)))
    whom = ("--conf", "/c", "--name", "client.plumbline", "--keyring", "/k")
    assert access.ceph("osd", "map") == ("ceph", *whom, "--connect-timeout", "3", "osd", "map")
    assert access.rados("ls")[:7] == ("rados", *whom)
    assert {"--rados-osd-op-timeout=3", "--client-mount-timeout=3", "--log-file="} <= set(access.rbd("ls"))
    assert access.in_environment("fio", "-v") == ("env", "CEPH_CONF=/c", "CEPH_KEYRING=/k", "fio", "-v")
    assert access.id == "plumbline"
    librados = access.librados()
    assert (librados.user, librados.conf, librados.keyring) == ("client.plumbline", "/c", "/k")
    assert (librados.connect_timeout_s, librados.operation_timeout_s) == (3, 3)
    assert "--keyring" not in CephAccess.of(CephConfig(conf="/c")).rados("ls")


def test_osds_are_benched_by_a_user_of_their_own() -> None:
    with pytest.raises(ProbeRefused, match="plumbline ceph setup --osd-bench") as caught:
        CephAccess.of(CephConfig(keyring="/k")).for_osd_bench()
    assert caught.value.reason == "no-bench-user"
    bench = CephAccess.of(CephConfig(keyring="/k", osd_bench_user="plumbline-bench")).for_osd_bench()
    assert (bench.user, bench.keyring) == ("client.plumbline-bench", None)
