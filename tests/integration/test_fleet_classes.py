"""A fleet of 200 nodes in a real Prometheus: its classes drift over a release, and the report says so.

The baselines are real files of simulated nodes; the series are what the daemon's own collector makes of them.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.history_store import Labels, Series, Store, labels_of
from plumbline.baseline.model import Target
from plumbline.baseline.selection import select
from plumbline.baseline.site import parse_site
from plumbline.collectors import baseline
from plumbline.metrics.spec import Sample
from support.daemon import COMMAND
from support.fleet_files import node_text
from support.programs import need

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
NODES, DAYS = 200, 8
DAY_S, PIECE_S, STEP_S = 86400, 6 * 3600, 300


def _samples(host: str, text: str) -> Iterator[Sample]:
    """What the daemon of this node exports about its baselines."""
    site = parse_site(text, where=host, host=host)
    targets = [
        Target("probe", one.layer, one.device_class, one.workload, one.operation, one.config_hash)
        for one in site.entries
    ]
    yield from baseline.samples(select(site.entries, targets, {}))
    yield baseline.FLEET_CLASS, (site.file.source, site.name, site.file.fleet_class), 1.0


def _class_of(number: int) -> str:
    return "r740-hdd" if number < 150 else "r760-hdd"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """The disks of class r740-hdd were accepted again four days ago, on another Ceph, 1.3 times as slow. The last node
    has another class since half a day."""
    need("prometheus")
    end = int(time.time()) // DAY_S * DAY_S
    series = {late: [one for number in range(NODES) for one in _of_node(number, late=late)] for late in (0, 1, 2)}
    with Store() as started:
        for piece in range(end - DAYS * DAY_S, end + 1, PIECE_S):  # Prometheus takes the past in its order
            late = (piece >= end - DAYS * DAY_S // 2) + (piece >= end - DAY_S // 2)
            times = np.arange(piece, min(piece + PIECE_S, end + 1), STEP_S, dtype=np.int64) * 1000
            started.write(Series(*_sampled(labels, value, times)) for labels, value in series[late])
        yield started


def _sampled(labels: Labels, value: float, times: NDArray[np.int64]) -> tuple[Labels, Any, Any]:
    """What was scraped is known to five minutes, all else to six hours."""
    seen = times if ("__name__", "plumbline_build_info") in labels else times[:1]
    return labels, seen, np.full(len(seen), value)


def _of_node(number: int, *, late: int) -> Iterator[tuple[Labels, float]]:
    host = f"stor{number:03}"
    own = {"instance": f"{host}:10047", "job": "plumbline", "cluster": "north"}
    slow = 1.3 if late and number < 150 else 1.0
    fleet_class = "r770-hdd" if late > 1 and number == NODES - 1 else _class_of(number)
    text = node_text(host, fleet_class=fleet_class, seed=min(late, 1), slow=slow)
    for spec, labels, value in _samples(host, text):
        yield labels_of(spec.name, {**dict(zip(spec.labels, labels, strict=True)), **own}), float(value)
    yield labels_of("plumbline_build_info", {**own, "version": "0.1.0"}), 1.0
    release = f"ceph version {('18.2.7', '19.2.3')[late > 0]} (x)"
    yield (
        labels_of("ceph_osd_metadata", {"cluster": "north", "ceph_daemon": f"osd.{number}", "ceph_version": release}),
        1.0,
    )


def report(store: Store, *flags: str) -> str:
    argv = [*COMMAND, "report", "--prometheus", store.url, "--timeout", "300s", "--format", "markdown", *flags]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("\N{NO-BREAK SPACE}", " ")


def test_the_drift_of_a_class_is_a_line_with_its_release(store: Store) -> None:
    text = report(store, "--days", "7")
    rows = [line for line in text.splitlines() if line.startswith("| r740-hdd")]
    assert len(rows) == 4  # two kinds of operations: latency and operations per second
    assert all("| 150 |" in row and "Ceph OSDs 19.2.3" in row for row in rows)
    (p50,) = (row for row in rows if "disk hdd randread-4k-qd1-j1 read, p50" in row)
    assert float(p50.split("×")[1].split("|")[0]) == pytest.approx(1.3, rel=0.02)
    assert "| r760-hdd" not in text
    assert "Classes of nodes whose accepted figures changed (4 of 12 accepted figures)" in text


def test_two_periods_side_by_side(store: Store) -> None:
    text = report(store, "--days", "3", "--beside", "previous")
    assert "Then and now" in text
    assert "| Storage hosts | 200 | 200 | the same |" in text
    assert "No class of nodes drifted: 12 accepted figures of 2 classes" in text
