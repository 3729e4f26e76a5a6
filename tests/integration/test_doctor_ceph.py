"""``plumbline doctor`` and ``plumbline baseline advise`` on a real cluster, as the confined user."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.ceph_cluster import CephCluster
from support.ceph_probes import set_up
from support.daemon import COMMAND

pytestmark = [pytest.mark.integration, pytest.mark.ceph]


@pytest.fixture(scope="module")
def settings(shared_ceph: CephCluster) -> Iterator[dict[str, Any]]:
    with set_up(shared_ceph, timeout_s=20.0) as config:
        yield {
            "conf": config.conf, "keyring": config.keyring, "timeout": "20s", "pool": config.pool,
            "rbd_pool": config.rbd_pool,
        }  # fmt: skip


def run(folder: Path, ceph: dict[str, Any], *words: str) -> dict[str, Any]:
    (folder / "plumbline.yaml").write_text(json.dumps({"probes": [], "ceph": ceph}))
    argv = [*COMMAND, *words, "--json", "--config.file", folder / "plumbline.yaml", "--storage.path", folder / "state"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False, env=dict(os.environ))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_our_pools_are_comparable_with_the_document_of_their_class(
    ceph: CephCluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    found = run(tmp_path, settings, "baseline", "advise")
    advice = {(each["subject"]["via"], each["profile"]): each for each in found["advice"]}
    pool, image = advice["pool", "unnoba-2020"], advice["image", "unnoba-2020"]
    assert (pool["comparable"], pool["subject"]["device_class"]) == (True, "hdd")
    assert pool["workload"] in ("rados-seq-4m-t16", "rados-rand-4m-t16")
    assert image["comparable"]
    assert "which no probe does" in advice["pool", "infn-2025"]["why"]
    # they load the cluster: shown, and added only when asked for
    assert {each["type"] for each in found["heavy"]} >= {"rados-bench", "rbd-bench"}
    assert not {each["type"] for each in found["add_probes"]} & {"rados-bench", "rbd-bench"}
    assert ceph.run("rados", "-p", settings["pool"], "--all", "ls").strip() == ""


def test_the_doctor_says_whether_the_cluster_answers_with_the_rights_given(
    ceph: CephCluster,
    settings: dict[str, Any],
    tmp_path: Path,
) -> None:
    def answer(changed: dict[str, Any]) -> dict[str, str]:
        found = run(tmp_path, {**settings, **changed}, "doctor", "--daemon", "http://127.0.0.1:9")
        (said,) = [each for each in found["answers"] if each["question"] == "does Ceph answer"]
        return dict(said)

    well = answer({})
    assert (well["state"], well["says"].partition(";")[0]) == ("ok", "as client.plumbline")
    without = answer({"keyring": str(tmp_path / "nothing")})
    assert (without["state"], without["says"].partition(":")[0]) == ("missing", "no key of client.plumbline")
    assert "plumbline ceph setup" in without["mend"]
    wrong = tmp_path / "wrong.keyring"
    wrong.write_text("[client.plumbline]\n\tkey = AQBQTHVpAAAAABAAnbFMpvWkKZQCsaTWIHXkzQ==\n")
    wrong.chmod(0o600)
    assert answer({"keyring": str(wrong)})["state"] == "missing"
