"""Two real Prometheus servers over the same pages, one with keep-lists: every rule records the same, from fewer series.

The pages: recorded hosts of ours that go on (``support.played_host``), a real manager's of Ceph 16 with all counters,
and of a real Ceph 20 the manager's and the ceph-exporter's, which divide them.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.prometheus import keeplist

from support import page_server
from support.ceph_pages import LOAD_S, Page, captured, served, text_of
from support.daemon import eventually
from support.metrics import ROOT
from support.played_host import played_hosts
from support.prometheus import Prometheus, prometheus

pytestmark = pytest.mark.integration
HOSTS = {"stor01.example": "storage_node", "stor02.example": "package_node", "stor03.example": "array_node"}
SCRAPE_S = 2
WITHIN_S = 120.0
Series = frozenset[tuple[str, str]]


@contextlib.contextmanager
def page_of_ceph(first: Page, last: Page) -> Iterator[str]:
    """The address of a page whose figures go on as they went between the two captured ones."""
    started = time.monotonic()

    def page(_path: str) -> bytes:
        part = (time.monotonic() - started) / LOAD_S
        now = {key: value + (value - first.get(key, value)) * part for key, value in last.items()}
        return text_of(now, "played").encode()

    with page_server.serving(page) as address:
        yield address


def rules_at_once(folder: Path) -> Path:
    """The committed rules, those of once a minute as often as the others: a test hasn't minutes."""
    folder.mkdir()
    for path in (ROOT / "alerts" / "out").glob("*.yaml"):
        content = yaml.safe_load(path.read_text("utf-8"))
        for group in content["groups"]:
            group.pop("interval", None)
        (folder / path.name).write_text(yaml.safe_dump(content), "utf-8")
    return folder


def scrapes(hosts: dict[str, str], ceph: dict[str, str], *, lists: bool) -> list[dict[str, Any]]:
    """package.yml's jobs over these targets: cluster → address of a manager, host → address of a daemon."""
    text = (ROOT / "deploy" / "prometheus" / "package.yml").read_text("utf-8")
    jobs = yaml.safe_load(keeplist.into(text, keeplist.names(ROOT)) if lists else text)["scrape_configs"]
    targets = {
        "plumbline": [
            {"targets": [at], "labels": {"cluster": "north", "instance": name}} for name, at in hosts.items()
        ],
        "ceph": [
            {"targets": [ceph["16"]], "labels": {"cluster": "north"}},
            {"targets": [ceph["20"]], "labels": {"cluster": "south"}},
        ],
        "ceph-exporter": [{"targets": [ceph["exporter"]], "labels": {"cluster": "south"}}],
    }
    return [
        {key: value for key, value in job.items() if key != "file_sd_configs"}
        | {"static_configs": targets[job["job_name"]]}
        for job in jobs
        if job["job_name"] in targets
    ]


def recorded(server: Prometheus) -> dict[Series, float]:
    """Every recorded series and alert as it stands."""
    asked = '{__name__=~"plumbline:.+|ALERTS"}'
    return {frozenset(labels.items()): value for labels, value in server.query(asked)}


def names_of(series: Iterable[Series]) -> set[str]:
    return {dict(each)["__name__"] for each in series}


def same(one: float, other: float) -> bool:
    """But for the moments at which the two servers look: rates over few scrapes differ by some percent."""
    return math.isclose(one, other, rel_tol=0.3, abs_tol=1e-3) or (not math.isfinite(one) and not math.isfinite(other))


def different(one: dict[Series, float], other: dict[Series, float]) -> list[tuple[Series, float, float]]:
    """What both servers record, and not alike.

    They started seconds apart, and a rate over a window that is not full yet goes with the time there are scrapes of:
    half as much again in the first ten seconds, some percent after a minute.
    """
    both = one.keys() & other.keys()
    return [(key, one[key], other[key]) for key in both if not same(one[key], other[key])]


def test_rules_record_the_same_with_keep_lists_from_fewer_series(tmp_path: Path) -> None:
    rules = rules_at_once(tmp_path / "rules")
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(played_hosts(HOSTS))
        state = served(20, "mgr-metrics")
        ceph = {
            "16": stack.enter_context(page_of_ceph(captured("load-1"), captured("load-2"))),
            "20": stack.enter_context(page_of_ceph(state, state)),
            "exporter": stack.enter_context(
                page_of_ceph(served(20, "exporter-metrics"), served(20, "exporter-metrics-load"))
            ),
        }
        servers = []
        for lists in (False, True):
            folder = tmp_path / ("kept" if lists else "all")
            folder.mkdir()
            jobs = scrapes(hosts, ceph, lists=lists)
            servers.append(stack.enter_context(prometheus(folder, interval_s=SCRAPE_S, rules=rules, scrapes=jobs)))
        everything, kept = servers

        def alike() -> bool:
            one, other = recorded(everything), recorded(kept)
            return (
                len(names_of(one)) > 70 and one.keys() == other.keys() and len(different(one, other)) <= len(one) / 100
            )

        with contextlib.suppress(AssertionError):
            eventually(alike, within_s=WITHIN_S)
        one, other = recorded(everything), recorded(kept)
        names = names_of(one)
        assert len(names) > 70, sorted(names)
        assert sorted(map(sorted, one.keys() - other.keys())) == []
        assert sorted(map(sorted, other.keys() - one.keys())) == []
        apart = different(one, other)
        assert len(apart) <= len(one) / 100, apart[:5]
        for server in servers:
            assert [rule["name"] for rule in server.rules() if rule["health"] == "err"] == []

        asked = "sum by (job) (scrape_samples_post_metric_relabeling)"
        before = {labels["job"]: value for labels, value in everything.query(asked)}
        after = {labels["job"]: value for labels, value in kept.query(asked)}
        print({job: (before[job], after[job]) for job in before}, len(one), "recorded of", len(names), "names")
        assert after["ceph"] < before["ceph"] / 2
        assert after["plumbline"] < before["plumbline"]
