"""The RADOS binding where there is no cluster: what is missing is named."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.errors import KeyTypeUnknown, Unavailable
from plumbline.probes.ceph.ceph_worker import Worker
from plumbline.probes.ceph.librados import Access, Cluster, connect
from plumbline.probes.ceph.librados_calls import check, load, release

OTHER = "[client.other]\n\tkey = AQBLxb5mAAAAABAAvG5Lv0mSO0Pca6H0MF8Dkg==\n"
AES256K = "[client.plumbline]\n\tkey = AgAXPQRrCpeGDyAAxAODIFk9cPjv4pVNuDp99kiqd+Hddqi6rHUGnu5qFX0=\n"
"""Made by ceph-authtool 20.2.4; nobody's."""


def test_no_library_names_the_package() -> None:
    with pytest.raises(Unavailable, match=r"^librados-of-nobody\.so is not installed \(package librados2\)$"):
        connect(Access("client.plumbline"), library="librados-of-nobody.so")


def test_a_library_without_the_calls_is_too_old() -> None:
    with pytest.raises(Unavailable, match=r"^libc\.so\.6 has no rados_\w+: Ceph 16 or newer is needed$"):
        load("libc.so.6")


def test_what_can_not_be_read_is_named(tmp_path: Path) -> None:
    try:
        load()
    except Unavailable as without:
        pytest.skip(str(without))
    conf = tmp_path / "ceph.conf"
    with pytest.raises(Unavailable, match=f"^{conf}: not there; name the cluster's configuration"):
        connect(Access("client.plumbline", str(conf)))
    conf.write_text("[global]\n")
    keyring = tmp_path / "keyring"
    with pytest.raises(Unavailable, match=f"^{keyring}: not there; .* client.plumbline's keyring$"):
        connect(Access("client.plumbline", str(conf), str(keyring)))
    with pytest.raises(Unavailable, match="as plumbline: not a user's name"):
        connect(Access("plumbline", str(conf)))


def test_a_key_of_a_newer_type_is_named_as_such(tmp_path: Path) -> None:
    """librados before 19.2.6 and 20.2.4 answers EIO; a newer one reads the key and then finds no monitor."""
    try:
        installed = release(load())
    except Unavailable as without:
        pytest.skip(str(without))
    conf, keyring = tmp_path / "ceph.conf", tmp_path / "keyring"
    keyring.write_text(f"{OTHER}{AES256K}")
    for text, access in (
        (
            f"[global]\nmon_host = 127.0.0.1:1\nkeyring = {tmp_path}/none,{tmp_path}/$id\n",
            Access("client.keyring", str(conf)),
        ),
        ("[global]\nmon_host = 127.0.0.1:1\n", Access("client.other", str(conf), str(keyring))),
    ):
        conf.write_text(text)
        with pytest.raises(Unavailable) as raised:
            connect(replace(access, connect_timeout_s=1))
        if reads_aes256k(installed):
            assert not isinstance(raised.value, KeyTypeUnknown)
        else:
            assert isinstance(raised.value, KeyTypeUnknown)
            assert str(raised.value) == (
                f"{keyring}: the key of client.plumbline is of type aes256k, "
                f"which librados {installed} here can't read; "
                "Ceph 19.2.6, 20.2.4 and later can: update Ceph's programs and librados to the cluster's release"
            )


def test_the_worker_tells_a_key_from_a_pool_and_from_a_connection(tmp_path: Path) -> None:
    def never(_: Access) -> Cluster:
        raise missing

    for missing, number in ((KeyTypeUnknown("k"), errno.EKEYREJECTED), (Unavailable("u"), errno.ENOTCONN)):
        assert Worker(Access("client.x"), never).answer({"do": "status"}) == {"error": str(missing), "errno": number}


def reads_aes256k(version: str) -> bool:
    numbers = tuple(map(int, version.split(".")))
    return numbers >= ((19, 2, 6) if numbers[0] == 19 else (20, 2, 4))


def test_a_negative_return_is_the_os_error_of_that_number() -> None:
    assert check(4096, "pool/x") == 4096
    for code, expected in ((-2, FileNotFoundError), (-1, PermissionError), (-110, TimeoutError), (-122, OSError)):
        with pytest.raises(expected) as raised:
            check(code, "pool/x")
        assert (raised.value.errno, raised.value.filename) == (-code, "pool/x")
