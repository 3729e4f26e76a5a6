"""A fleet of 200 nodes in a real Prometheus: its classes drift over a release, and the report says so.

The baselines are real files of simulated nodes; the series are what the daemon's own collector makes of them.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.history_store import Series, Store, labels_of
from plumbline.baseline.book import load_book
from plumbline.baseline.model import Target
from plumbline.baseline.site import parse_site
from plumbline.collectors import baseline
from plumbline.config.model import BaselineConfig
from plumbline.metrics.spec import Sample
from support.daemon import COMMAND
from support.fleet_files import CATALOGUE, node_text
from support.programs import need

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
NODES, DAYS = 200, 20
DAY_S, STEP_S = 86400, 3600


def _samples(host: str, text: str, folder: Path) -> Iterator[Sample]:
    """What the daemon of this node exports about its baselines."""
    (folder / "baseline.yaml").write_text(text)
    entries = parse_site(text, where="x", host=host, catalogue=CATALOGUE).entries
    targets = [
        Target("probe", one.layer, one.device_class, one.workload, one.operation, one.config_hash) for one in entries
    ]
    book = load_book(
        BaselineConfig(), where="test", storage=folder, host=host, catalogue=CATALOGUE, targets=tuple(targets)
    )
    yield from baseline.samples(book.selection)
    for labels in book.fleet_classes:
        yield baseline.FLEET_CLASS, labels, 1.0


def _class_of(number: int) -> str:
    return "r740-hdd" if number < 150 else "r760-hdd"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The disks of class r740-hdd were accepted again ten days ago, on another Ceph, 1.3 times as slow."""
    need("prometheus")
    folder = tmp_path_factory.mktemp("node")
    midnight = int(time.time()) // DAY_S * DAY_S
    early = np.arange(midnight - DAYS * DAY_S, midnight - 10 * DAY_S, STEP_S, dtype=np.int64)
    late = np.arange(midnight - 10 * DAY_S, midnight + 1, STEP_S, dtype=np.int64)
    with Store() as started:
        for number in range(NODES):
            host, slow = f"stor{number:03}", 1.3 if number < 150 else 1.0
            own = {"instance": f"{host}:10047", "job": "plumbline", "cluster": "north"}
            written: list[Series] = []
            for times, seed, factor in ((early, 0, 1.0), (late, 1, slow)):
                text = node_text(host, fleet_class=_class_of(number), seed=seed, slow=factor)
                for spec, labels, value in _samples(host, text, folder):
                    name = labels_of(spec.name, {**dict(zip(spec.labels, labels, strict=True)), **own})
                    written.append(Series(name, times * 1000, np.full(len(times), float(value))))
            every = np.arange(midnight - DAYS * DAY_S, midnight + 1, 300, dtype=np.int64)
            build = labels_of("plumbline_build_info", {**own, "version": "0.1.0"})
            written.append(Series(build, every * 1000, np.ones(len(every))))
            for times, version in ((early, "18.2.7"), (late, "19.2.3")):
                osd = {
                    "cluster": "north",
                    "ceph_daemon": f"osd.{number}",
                    "ceph_version": f"ceph version {version} (x)",
                }
                written.append(Series(labels_of("ceph_osd_metadata", osd), times * 1000, np.ones(len(times))))
            started.write(written)
        yield started


def report(store: Store, *flags: str) -> str:
    argv = [*COMMAND, "report", "--prometheus", store.url, "--timeout", "300s", "--format", "markdown", *flags]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("\N{NO-BREAK SPACE}", " ")


def test_the_drift_of_a_class_is_a_line_with_its_release(store: Store) -> None:
    text = report(store, "--days", "19")
    rows = [line for line in text.splitlines() if line.startswith("| r740-hdd")]
    assert len(rows) == 4  # two kinds of operations: latency and operations per second
    assert all("| 150 |" in row and "Ceph OSDs 19.2.3" in row for row in rows)
    assert any("disk hdd randread-4k-qd1-j1 read, p50" in row and "× 1.30" in row for row in rows)
    assert "| r760-hdd" not in text
    assert "Classes of nodes whose accepted figures changed (4 of 12 accepted figures)" in text


def test_two_periods_side_by_side(store: Store) -> None:
    text = report(store, "--days", "9", "--beside", "previous")
    assert "Then and now" in text
    assert "| Storage hosts | 200 | 200 | the same |" in text
    assert "No class of nodes drifted: 12 accepted figures of 2 classes" in text
