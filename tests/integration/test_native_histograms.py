"""Both flavours of the rules on the same scrapes: a real Prometheus 3 keeps a page's histograms in both forms, and each
expression that differs between them is asked at one moment, in both. And what the native form saves.

The page: the storage host that docs/scale.md counts, with ten OSDs, twelve disks and a canary, whose counters go on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.daemon import eventually
from support.native_histograms import HISTOGRAMS
from support.page_server import serving
from support.played_host import played
from support.prometheus import Prometheus, prometheus
from support.promtool import need_prometheus_3
from support.rules import ALERTS, NATIVE, RULES, rules_of
from support.storage_host import storage_host

pytestmark = pytest.mark.integration
HOST = "stor01.example"
SCRAPE_S = 1
SECONDS = 30
"""Of scrapes before anything is asked; the windows of the rules hold them all."""
JOBS: dict[str, dict[str, bool]] = {
    "classic": {},
    "native": {"convert_classic_histograms_to_nhcb": True},
    "plumbline": {"convert_classic_histograms_to_nhcb": True, "always_scrape_classic_histograms": True},
}
"""The last keeps both."""
Vector = dict[frozenset[tuple[str, str]], float]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    need_prometheus_3()
    folder = tmp_path_factory.mktemp("native")
    page, began = storage_host(tmp_path_factory.mktemp("h")), time.time()
    with serving(lambda _path: played(page, time.time() - began, time.time()).encode()) as address:
        scrapes: list[dict[str, Any]] = [
            {
                "job_name": job,
                "static_configs": [{"targets": [address], "labels": {"cluster": job, "instance": HOST}}],
                **flags,
            }
            for job, flags in JOBS.items()
        ]
        rules = folder / "rules"
        rules.mkdir()
        (rules / RULES.name).write_bytes(RULES.read_bytes())
        features = ("native-histograms",)
        with prometheus(folder, interval_s=SCRAPE_S, rules=rules, scrapes=scrapes, features=features) as started:
            scraped = f'count_over_time(up{{job="plumbline"}}[10m]) >= {SECONDS / SCRAPE_S}'
            eventually(lambda: started.query(scraped), within_s=4 * SECONDS)
            yield started


def answers(server: Prometheus, expr: str, at: float) -> Vector:
    return {frozenset(labels.items()): value for labels, value in server.moment(expr, at)}


def differing() -> list[tuple[str, str, str]]:
    """What records or alerts, in both forms, wherever they differ."""
    pairs = [
        (one.get("record") or one["alert"], one["expr"], other["expr"])
        for classic, native in zip((RULES, ALERTS), NATIVE, strict=True)
        for one, other in zip(rules_of(classic), rules_of(native), strict=True)
    ]
    return [pair for pair in pairs if pair[1] != pair[2] and "_bucket:" not in pair[0]]


def same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))


def test_both_forms_give_the_same_figures(server: Prometheus) -> None:
    now = time.time()
    answered = 0
    for name, classic, native in differing():
        one, other = answers(server, classic, now), answers(server, native, now)
        both = {key for key in one | other if ("cluster", "plumbline") in key}
        for key in both:
            assert key in one, (name, sorted(key), "native alone")
            assert key in other, (name, sorted(key), "classic alone")
            assert same(one[key], other[key]), (name, sorted(key), one[key], other[key])
        answered += bool(both)
    assert answered >= 10


@pytest.mark.parametrize("name", sorted(HISTOGRAMS - {"plumbline_disk_queue_seconds"}))  # which has no buckets here
@pytest.mark.parametrize("rank", [0.5, 0.9, 0.99])
def test_quantiles_are_equal(server: Prometheus, name: str, rank: float) -> None:
    now = time.time()
    place = 'cluster="plumbline"'
    classic = answers(server, f"histogram_quantile({rank}, rate({name}_bucket{{{place}}}[1m]))", now)
    native = answers(server, f"histogram_quantile({rank}, rate({name}{{{place}}}[1m]))", now)
    assert native.keys() == classic.keys()
    if name != "plumbline_probe_operation_latency_seconds":  # of a probe that runs once in a while
        assert any(math.isfinite(value) for value in classic.values())
    assert [key for key in classic if not same(classic[key], native[key])] == []


def test_the_distribution_of_a_class_has_the_same_quantiles(server: Prometheus) -> None:
    """What the page of all disks asks of the one recorded histogram."""
    now = time.time()
    record = "plumbline:disk_class_latency_bucket:ops_per_second"
    (classic,) = [rule["expr"] for rule in rules_of(RULES) if rule.get("record") == record]
    (native,) = [rule["expr"] for rule in rules_of(NATIVE[0]) if rule.get("record") == record]
    asked = "histogram_quantile(0.99, sum by (cluster, device_class, operation, le) (%s))"
    one, other = answers(server, asked % classic, now), answers(server, asked % native, now)
    both = [key for key in one if ("cluster", "plumbline") in key]
    assert both
    assert [key for key in both if not same(one[key], other[key])] == []


def test_a_histogram_is_one_series(server: Prometheus) -> None:
    def series(cluster: str, names: str = "plumbline_.+") -> int:
        found = server.query(f'count({{cluster="{cluster}", __name__=~"{names}"}})')
        return int(found[0][1]) if found else 0

    names = "|".join(HISTOGRAMS)
    classic, native, histograms = series("classic"), series("native"), series("native", names)
    print(f"{classic} series, {native} with {histograms} native histograms")
    assert histograms == series("classic", f"({names})_count") > 0
    assert classic - native == series("classic", f"({names})_(bucket|sum|count)") - histograms
    assert series("native", f"({names})_(bucket|sum|count)") == 0
    assert series("plumbline") == classic + histograms, "keeps both"
    assert native < 0.6 * classic
