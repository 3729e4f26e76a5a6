"""The RADOS binding where there is no cluster: what is missing is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.errors import Unavailable
from plumbline.probes.ceph.librados import Access, connect
from plumbline.probes.ceph.librados_calls import check, load


def test_no_library_names_the_package() -> None:
    with pytest.raises(Unavailable, match=r"^librados-of-nobody\.so is not installed \(Debian package librados2\)$"):
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


def test_a_negative_return_is_the_os_error_of_that_number() -> None:
    assert check(4096, "pool/x") == 4096
    for code, expected in ((-2, FileNotFoundError), (-1, PermissionError), (-110, TimeoutError), (-122, OSError)):
        with pytest.raises(expected) as raised:
            check(code, "pool/x")
        assert (raised.value.errno, raised.value.filename) == (-code, "pool/x")
