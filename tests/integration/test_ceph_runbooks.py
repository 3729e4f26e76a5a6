"""The runbooks' commands of Ceph on a real cluster: those that look, and those that mend. None is a mistake."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from support.ceph_cluster import CephCluster, ceph_cluster, missing
from support.runbooks import lines

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.skipif(bool(missing()), reason="Ceph is not installed"),
]

MISTAKE = re.compile(
    r"EINVAL: invalid command|no valid command found|unrecognized|unknown option|usage:", re.IGNORECASE
)
ELSEWHERE = re.compile(r"^ceph (orch|time-sync-status)|--data-urlencode|^ceph --name")
"""cephadm is not here; monitors that are alone compare no clocks."""
LATER = re.compile(r"^ceph (auth rotate|mon set auth_)|^ceph config log|osd_mclock_profile|exclude_perf_counters")
"""Commands and values of releases later than Debian 12's."""
DAEMON = """\
ceph_daemon() {
  case "$1" in stop | restart) ceph osd metadata "${2#osd.}" >/dev/null ;; *) return 127 ;; esac
}
"""
"""setup.md has it by systemd, cephadm or Rook. Here is none of them: what it is called with names a daemon."""
LASTS_S = 60
POOL = "vms"


@pytest.fixture
def ceph() -> Iterator[CephCluster]:
    """Of its own: what mends leaves flags, weights and settings behind, which other tests would find."""
    with ceph_cluster() as cluster:
        cluster.add_pool(POOL, application="rbd")
        yield cluster


def here(line: str) -> str:
    """The line with what this cluster has in place of the pages' examples."""
    line = re.sub(r"osd\.(71|5|12|3)\b", "osd.0", line).replace("POOL ", "vms ")
    line = re.sub(r"\bPOOL$", "vms", line).replace("mon.stor01", "mon.a").replace("plumbline-rbd", "vms")
    return line.replace("2.1f", "1.0")


def asked(heading: str) -> list[tuple[str, dict[str, str]]]:
    found = lines(heading).items()
    return [
        (line, known) for line, known in found if re.match(r"(ceph|rados|rbd) ", line) and not ELSEWHERE.search(line)
    ]


@pytest.mark.parametrize("heading", ["Diagnosis", "Mitigation"])
def test_the_cluster_understands_every_command(heading: str, ceph: CephCluster) -> None:
    bash = shutil.which("bash") or "/bin/bash"
    wrong, ran = [], 0
    for line, known in asked(heading):
        values = {
            "POOL": POOL,
            "PG": "1.0",
            "OSD": "osd.0" if "osd." in known.get("OSD", "") else "0",
            "DAEMON": "osd.0",
        }
        values |= {
            "RANK": "cephfs:0",
            "IMAGE": "none",
            "N": "0",
            "NODE": "node",
            "HOST": "default",  # what has a name in CRUSH
            "OPTION": "osd_mclock_max_capacity_iops_ssd",
        }
        values |= {"IOPS": "21500"}
        script = "".join(f"{name}={value}\n" for name, value in values.items()) + DAEMON + here(line)
        argv = ["timeout", str(LASTS_S), bash, "-uc", script]
        done = subprocess.run(argv, capture_output=True, text=True, env=ceph.environment, check=False)
        ran += 1
        if (MISTAKE.search(done.stderr) and not LATER.search(line)) or done.returncode in (126, 127):
            wrong.append(f"{line}: {done.returncode} {done.stderr[-300:]}")
    assert not wrong, "\n".join(wrong)
    assert ran > 30
