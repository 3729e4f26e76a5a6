"""`credential:NAME` is the file that systemd hands the service, wherever a secret may stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.commands.ceph import admin as ceph_admin
from plumbline.config.model import CephConfig, Config, parse
from plumbline.config.options import read_config, with_credentials

TEXT = """\
schema_version: 1
ceph: {keyring: "credential:ceph-keyring", osd_bench_user: bench, osd_bench_keyring: "credential:ceph-bench"}
probes:
- {type: s3, name: a, endpoint: "https://h", bucket: abc, credentials_file: "credential:s3-keys", ca_file: /etc/ca.pem}
- {type: canary, name: canary}
"""


@pytest.mark.parametrize(
    ("environment", "directory"),
    [
        ({"CREDENTIALS_DIRECTORY": "/run/somewhere"}, "/run/somewhere"),
        ({}, "/run/credentials/plumbline.service"),  # a command of root's beside the service
    ],
)
def test_each_stands_where_systemd_put_it(tmp_path: Path, environment: dict[str, str], directory: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(TEXT)
    config = read_config(file, environment=environment)
    assert config.ceph.keyring == f"{directory}/ceph-keyring"
    assert config.ceph.osd_bench_keyring == f"{directory}/ceph-bench"
    s3, canary = config.probes
    assert (s3.credentials_file, s3.ca_file) == (f"{directory}/s3-keys", "/etc/ca.pem")
    assert canary == parse(TEXT, where="c").probes[1]


def test_without_one_nothing_changes() -> None:
    assert with_credentials(Config(), {"CREDENTIALS_DIRECTORY": "/c"}) == Config()


@pytest.mark.parametrize(
    "keyring", ["credential:ceph-keyring", "/run/credentials/plumbline.service/ceph-keyring", None]
)
def test_the_administrator_writes_the_key_where_root_keeps_it(keyring: str | None) -> None:
    """systemd's copy can't be written; the drop-in loads it from there."""
    wanted = ceph_admin.requirements(CephConfig(keyring=keyring), groups=1)
    assert wanted.keyring == "/etc/ceph/ceph.client.plumbline.keyring"
    assert ceph_admin.requirements(CephConfig(keyring="/etc/mine"), groups=1).keyring == "/etc/mine"
