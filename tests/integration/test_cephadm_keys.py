"""What deploy/cephadm stores in Ceph's key store fits there, after the one setting that README.md names."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy.cephadm import render

from support.ceph_cluster import CephCluster
from support.daemon import eventually

pytestmark = [pytest.mark.integration, pytest.mark.ceph]
KEY = "mgr/cephadm/services/prometheus/alerting/custom_alerts.yml"


def test_the_rules_fit_into_a_config_key(ceph: CephCluster, tmp_path: Path) -> None:
    assert render.main(["--out", str(tmp_path)]) == 0
    file, size = tmp_path / "custom_alerts.yml", (tmp_path / "size").read_text().strip()

    def stored() -> bool:
        done = ceph.try_run("ceph", "config-key", "set", KEY, "-i", file)
        assert done.returncode == 0 or "entry size limited" in done.stderr, done.stderr
        return done.returncode == 0

    assert not stored()
    ceph.ceph("config", "set", "mon", "mon_config_key_max_entry_size", size)
    try:
        eventually(stored)
        assert ceph.ceph("config-key", "get", KEY).rstrip("\n") == file.read_text("utf-8").rstrip("\n")
    finally:
        ceph.ceph("config-key", "rm", KEY)
        ceph.ceph("config", "rm", "mon", "mon_config_key_max_entry_size")
