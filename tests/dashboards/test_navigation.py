"""One gets from the overview to every page and back, and a click carries what the other page can take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support.dashboards import DASHBOARDS, Link, links, load, variables
from support.offenders import for_every

PAGES: dict[str, dict[str, Any]] = {page["uid"]: page for page in map(load, DASHBOARDS)}
LINKS: list[Link] = [link for page in PAGES.values() for link in links(page)]
UIDS = Path(__file__).with_name("uids.txt").read_text("utf-8").split()
"""Bookmarks, alerts and other sites' pages link these: a uid is never changed; a new page gets a line."""
OVERVIEW = "plumbline-overview"
STEPS = 3
SUBJECT = {
    "plumbline-disk": {"instance", "device"},
    "plumbline-nic": {"instance", "device"},
    "plumbline-osd": {"ceph_daemon"},
    "plumbline-node": {"instance"},
}
"""Pages about one thing: a link that doesn't say which is of no use."""


def _source(link: Link) -> str:
    return link.where.split(" / ")[0]


def test_uids_stay() -> None:
    assert sorted(PAGES) == UIDS
    assert {path.stem for path in DASHBOARDS} == set(PAGES)
    assert all(re.fullmatch(r"plumbline-[a-z]+", uid) for uid in UIDS)
    assert len({page["title"] for page in PAGES.values()}) == len(PAGES)


@for_every("link", LINKS, ids=lambda link: f"{link.where} to {link.uid}")
def test_a_link_leads_to_a_page_that_takes_what_it_carries(link: Link) -> None:
    assert link.uid in PAGES
    takes = variables(PAGES[link.uid])
    assert link.variables.keys() <= takes.keys()
    own = variables(PAGES[_source(link)])
    for name, value in link.variables.items():
        assert "${" in value or not value.startswith("$"), f"{name}={value}"
        if re.fullmatch(r"\$\{\w+\}", value):
            assert value[2:-1] in own, f"{name}={value}: this page has no such variable"
    if link.panel is not None:
        assert "datasource" in link.variables
        needed = SUBJECT.get(link.uid, set())
        assert needed <= link.variables.keys(), "it doesn't say which one"


def test_links_keep_time_and_variables() -> None:
    for page in PAGES.values():
        assert page["links"]
        assert all(each["keepTime"] and each["includeVars"] for each in page["links"])
        assert any(each["type"] == "dashboards" and each["tags"] == ["plumbline"] for each in page["links"])
        assert "plumbline" in page["tags"]
    for page in PAGES.values():
        for panel in page["panels"]:
            for link in panel.get("fieldConfig", {}).get("defaults", {}).get("links", []):
                assert "${__url_time_range}" in link["url"], panel["title"]


def test_every_page_is_reached_from_the_overview_by_clicks_on_what_one_sees() -> None:
    inside = {(_source(link), link.uid) for link in LINKS if link.panel is not None}
    far = _distances(OVERVIEW, inside)
    assert {uid: far.get(uid) for uid in PAGES if far.get(uid, STEPS + 1) > STEPS} == {}


def test_every_page_leads_back_to_the_overview() -> None:
    back = {(_source(link), link.uid) for link in LINKS if link.panel is None}
    turned = {(there, here) for here, there in back}
    far = _distances(OVERVIEW, turned)
    assert {uid: far.get(uid) for uid in PAGES if far.get(uid, STEPS + 1) > STEPS} == {}


def _distances(start: str, edges: Iterable[tuple[str, str]]) -> Mapping[str, int]:
    """Page → clicks."""
    edges = list(edges)
    found, now = {start: 0}, [start]
    while now:
        now = [there for here, there in edges if here in now and there not in found]
        found |= dict.fromkeys(now, max(found.values()) + 1)
    return found
