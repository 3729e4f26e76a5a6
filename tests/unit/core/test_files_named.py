"""Every kind of file that somebody names, with something in its place that has no end: one line, at once."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline import cli
from plumbline.baseline.site import read_site
from plumbline.commands.ceph.keyring import read_keyring
from plumbline.config.model import CephConfig
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError, Unavailable
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.object.s3_credentials import open_credentials
from plumbline.sources.ceph.ceph_conf import read_ceph_conf
from plumbline.sources.prometheus.access import load_access
from plumbline.web.guard import make_guard

Use = Callable[[Path], object]


def check(path: Path) -> None:
    """As the command does; exit code 1 and one line."""
    assert cli.main(["config", "check", str(path)]) == 1
    raise Unavailable("said")


def web(path: Path, key: str) -> None:
    names = {"cert_file": "/dev/null", "key_file": "/dev/null", "client_ca_file": "/dev/null", key: str(path)}
    file = path.with_name("web.yml")
    file.write_text(json.dumps({"tls_server_config": names | {"client_auth_type": "VerifyClientCertIfGiven"}}))
    for other in names.values():
        if other == "/dev/null":  # a regular file, and empty
            good = path.with_name("empty")
            good.touch()
            file.write_text(file.read_text().replace("/dev/null", str(good)))
    make_guard(file)


def prometheus(path: Path, config: object) -> None:
    file = path.with_name("prometheus.yml")
    file.write_text(json.dumps(config))
    load_access(file)


def ceph_keyring(path: Path) -> None:
    conf = path.with_name("ceph.conf")
    conf.write_text("[global]\n")
    CephAccess.of(CephConfig(conf=str(conf), keyring=str(path))).check()


def host_conf(path: Path) -> None:
    roots = Roots.under(path.parent)
    (roots.etc / "ceph").mkdir(parents=True)
    path.rename(roots.etc / "ceph" / "ceph.conf")
    read_ceph_conf(roots)


KINDS: dict[str, Use] = {
    "configuration": check,
    "web file": make_guard,
    "certificate": lambda path: web(path, "cert_file"),
    "key": lambda path: web(path, "key_file"),
    "client CA": lambda path: web(path, "client_ca_file"),
    "baseline": lambda path: read_site(path, host=None),
    "Prometheus access": load_access,
    "password": lambda path: prometheus(path, {"basic_auth": {"username": "u", "password_file": str(path)}}),
    "token": lambda path: prometheus(path, {"authorization": {"credentials_file": str(path)}}),
    "Prometheus CA": lambda path: prometheus(path, {"tls_config": {"ca_file": str(path)}}),
    "Prometheus certificate": lambda path: prometheus(path, {"tls_config": {"cert_file": str(path)}}),
    "S3 credentials": lambda path: open_credentials(str(path)),
    "ceph.conf": lambda path: CephAccess.of(CephConfig(conf=str(path))).check(),
    "keyring": ceph_keyring,
    "keyring of the setup": lambda path: read_keyring(str(path)),
    "ceph.conf of the host": host_conf,
}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)
    path.chmod(0o600)


@pytest.mark.parametrize("put", [fifo, endless, huge, Path.mkdir])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_at_once(tmp_path: Path, kind: str, put: Callable[[Path], object]) -> None:
    put(tmp_path / "it")
    raised: list[BaseException] = []

    def use() -> None:
        try:
            KINDS[kind](tmp_path / "it")
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    asking = threading.Thread(target=use, daemon=True)
    asking.start()
    asking.join(60)
    assert not asking.is_alive(), "it waits"
    (error,) = raised
    assert isinstance(error, PlumblineError), repr(error)
    assert "\n" not in str(error)
