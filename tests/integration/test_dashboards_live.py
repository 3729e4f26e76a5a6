"""Every query of every page, and of every variable, has data where the whole of it runs: a real Ceph with a client, the
daemon with all its probes, a real Prometheus with all our rules; beside them recorded hosts for the hardware that test
machines haven't. What has no data even so stands in ``tests/dashboards/empty.yaml`` with the reason.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from preview.answers import Server, Window, instant, values
from support.ceph_cluster import CephCluster, missing
from support.daemon import eventually
from support.dashboards import DASHBOARDS, load
from support.disks import disk_folder
from support.paneldata import Query, has_data, listed, offered, queries
from support.programs import need
from support.whole_stack import Stack, whole_stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(missing("fio", "iperf3")), reason="Ceph, fio or iperf3 is not installed"),
]
EXCEPTIONS = listed(Path(__file__).parents[1] / "dashboards" / "empty.yaml")
WITHIN_S = 300.0
"""For the last probe's first run and the rules that look at five minutes, on a busy machine too."""
MOST_OFFERS = 5000


@pytest.fixture(scope="module")
def stack(shared_ceph: CephCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    need("prometheus")
    with disk_folder(tmp_path_factory) as folder, whole_stack(folder, shared_ceph) as running:
        yield running


@pytest.mark.smoke
def test_a_rados_canary_is_judged(stack: Stack) -> None:
    """Against the site's baseline, on every OSD."""
    expected = {(f"objects/osd.{number}", operation) for number in range(3) for operation in ("read", "write")}

    def judged() -> set[tuple[str, str]]:
        found = stack.prometheus.query('plumbline:degradation:ratio{layer="rados"}')
        return {(labels["probe"], labels["operation"]) for labels, _ in found}

    eventually(lambda: judged() >= expected, within_s=WITHIN_S, every_s=2)


@pytest.mark.smoke
def test_every_rule_is_evaluated_without_a_mistake(stack: Stack) -> None:
    """Two series of a real manager or OSD that a rule takes for one are a mistake that no hand-written series makes."""
    assert stack.prometheus.mistakes() == []


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_variable_has_values(stack: Stack, path: Path) -> None:
    server = Server(stack.prometheus.url)
    page = load(path)

    def all_have_some() -> bool:
        """With the first values, or with others: a recorded host may have no disk at all."""
        offers = offered(page, lambda selector, label: values(server, selector, label))
        return any(all(each.values()) for each in itertools.islice(offers, MOST_OFFERS))

    eventually(all_have_some, within_s=WITHIN_S, every_s=2)


@pytest.fixture(scope="module")
def pending(stack: Stack) -> dict[Path, list[Query]]:
    """Page → its queries that have had no data so far. All pages are looked at in turn: none waits for another, and
    what there is for minutes only (the mark of an upgrade) is seen on each."""
    server, pages = Server(stack.prometheus.url), {path: load(path) for path in DASHBOARDS}
    left = {
        path: [query for query in queries(page) if not any(each.covers(query) for each in EXCEPTIONS)]
        for path, page in pages.items()
    }
    assert all(left.values())

    def all_seen() -> bool:
        for path, page in pages.items():
            left[path] = _without_data(server, page, left[path])
        return not any(left.values())

    with contextlib.suppress(AssertionError):
        eventually(all_seen, within_s=WITHIN_S, every_s=3)
    return left


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_query_has_data(stack: Stack, pending: dict[Path, list[Query]], path: Path) -> None:
    left = _without_data(Server(stack.prometheus.url), load(path), pending[path])
    assert [f"{each.page} / {each.panel} {each.letter}: {each.expr}" for each in left] == []


def test_what_is_surely_empty_is_empty(stack: Stack) -> None:
    """After the other tests: by then everything else has data."""
    server = Server(stack.prometheus.url)
    wrong = []
    for page in map(load, DASHBOARDS):
        offers = list(itertools.islice(offered(page, lambda *asked: values(server, *asked)), MOST_OFFERS))
        ask = cache(lambda expr: bool(instant(server, expr, Window(0, _now(server), 1))))
        wrong += [
            f"{query.page} / {query.panel} {query.letter}"
            for query in queries(page)
            if any(each.sure and each.covers(query) for each in EXCEPTIONS) and has_data(query, offers, ask)
        ]
    assert wrong == []


def test_every_exception_is_argued_and_of_a_query_that_is_there() -> None:
    asked = [query for page in map(load, DASHBOARDS) for query in queries(page)]
    for each in EXCEPTIONS:
        mine = [query for query in asked if each.covers(query)]
        assert mine, each
        assert each.letters <= {query.letter for query in mine}, each
        assert len(each.reason) > 20, each


def _now(server: Server) -> float:
    """The server's own time."""
    return float(server.get("query", {"query": "time()"})["result"][1])


def _without_data(server: Server, page: dict[str, Any], asked: list[Query]) -> list[Query]:
    """Those of ``asked`` that have none now."""
    if not asked:
        return []
    offers = list(itertools.islice(offered(page, lambda *asked: values(server, *asked)), MOST_OFFERS))
    ask = cache(lambda expr: bool(instant(server, expr, Window(0, _now(server), 1))))
    return [query for query in asked if not has_data(query, offers, ask)]
