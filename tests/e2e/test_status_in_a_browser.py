"""The status page in a real browser: the real daemon's, and that of a host as large and as troubled as they get.

axe-core (https://github.com/dequelabs/axe-core) judges what it can of the WCAG; the keyboard, the widths and what the
page asks for are tried here.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from plumbline.metrics.exposition import Exposition
from plumbline.status.page import render_status
from plumbline.web.routes import Request, Response, Site
from plumbline.web.server import Server
from support.browser import Browser, Page, browser
from support.daemon import eventually, running
from support.osd_fleet import osd_fleet
from support.status_models import EVIL, full_model, large_model

WIDTHS = (360, 1280)
TAB, ENTER = ("Tab", 9), ("Enter", 13, "\r")
FOCUSED = """(() => { const at = document.activeElement;
  if (at === document.body) return null;
  const box = at.getBoundingClientRect();
  return { number: [...document.querySelectorAll('a, summary')].indexOf(at), tag: at.tagName,
    outline: getComputedStyle(at).outlineStyle, width: box.width, left: box.left, right: box.right }; })()"""


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as running_browser:
        yield running_browser


@pytest.fixture(scope="module")
def daemons(module_folder: Path) -> Iterator[str]:
    """The page of a real daemon, with OSDs beside it."""
    sockets = module_folder / "sockets"
    sockets.mkdir()
    config = {"ceph": {"admin_sockets": [f"{sockets}/*-osd.*.asok"]}}
    with osd_fleet(sockets, 3, peers=2), running(module_folder, config=config) as daemon:
        eventually(lambda: "OSDs (3)" in daemon.page())
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1)
        yield daemon.url


@pytest.fixture(scope="module")
def made() -> Iterator[str]:
    """Served as the daemon serves its own: a large host's page, and one of names that would be scripts."""
    pages = {"/large/": large_model(), "/hostile/": full_model(EVIL)}
    nothing = Exposition((), None, clock=lambda: 0.0, logger=logging.getLogger("test.page"))

    def respond(request: Request) -> Response:
        site = Site(nothing, status=lambda: render_status(pages[request.target]), ready=lambda: None)
        return site.respond(replace(request, target="/"))

    server = Server("127.0.0.1", 0, respond, logger=logging.getLogger("test.page"))
    server.start()
    yield f"http://{server.address}"
    server.stop()


@pytest.fixture(params=["daemon", "large", "hostile"])
def url(request: pytest.FixtureRequest, daemons: str, made: str) -> str:
    """A page to look at."""
    return daemons if request.param == "daemon" else f"{made}/{request.param}"


@pytest.fixture(params=["daemon", "hostile"])
def rich(request: pytest.FixtureRequest, daemons: str, made: str) -> str:
    """Those with every kind of element; the large one has more of the same, and takes minutes."""
    return daemons if request.param == "daemon" else f"{made}/{request.param}"


@pytest.fixture
def page(started: Browser) -> Iterator[Page]:
    """A fresh tab."""
    made = started.page()
    yield made
    made.close()


UNFOLD = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_asks_for_nothing_complains_of_nothing_and_fits(page: Page, url: str, width: int, dark: bool) -> None:
    page.open(f"{url}/", width=width, dark=dark)

    assert page.requests == [f"{url}/"]
    assert page.complaints == []
    for unfolded in (False, True):
        if unfolded:
            page.evaluate(UNFOLD)
        wide = page.evaluate(
            "[document.documentElement.scrollWidth, ...[...document.querySelectorAll('body *:not(.skip)')]"
            ".map(each => each.getBoundingClientRect()).filter(box => box.width > 1).map(box => box.right)]"
        )
        assert max(wide) <= width, f"unfolded: {unfolded}"
    assert page.evaluate("document.scripts.length") == 0
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if dark else "rgb(247, 247, 244)")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_keyboard_reaches_every_link_and_fold_in_their_order_and_shows_where_it_is(
    page: Page, rich: str, width: int
) -> None:
    page.open(f"{rich}/", width=width)
    page.evaluate(UNFOLD)
    count = page.evaluate("document.querySelectorAll('a, summary').length")
    assert count > 10
    reached: list[int] = []
    page.press(*TAB)
    while (at := page.evaluate(FOCUSED)) is not None and at["number"] not in reached:
        assert at["outline"] == "solid", at
        assert at["width"] > 0, at
        assert (at["left"], at["right"] <= width) >= (0, True), at
        reached.append(at["number"])
        page.press(*TAB)
    assert reached == list(range(count))


def test_a_fold_opens_by_the_keyboard_and_a_link_into_it_opens_it(page: Page, url: str) -> None:
    page.open(f"{url}/", width=1280)
    opened = "[...document.querySelectorAll('details')].at(-1).open"
    page.evaluate("[...document.querySelectorAll('summary')].at(-1).focus()")
    assert page.evaluate(opened) is False
    page.press(*ENTER)
    assert page.evaluate(opened) is True
    folded = page.evaluate("document.querySelector('details:not([open]) tr[id]')?.id ?? null")
    if folded is not None:
        page.evaluate(f"location.hash = {folded!r}")
        eventually(lambda: page.evaluate(f"document.getElementById({folded!r}).closest('details').open"))


@pytest.mark.parametrize("width", WIDTHS)
def test_assistive_software_is_told_what_each_thing_is(page: Page, rich: str, width: int) -> None:
    page.open(f"{rich}/", width=width)
    page.evaluate(UNFOLD)
    nodes = page.accessibility()

    def named(role: str) -> list[str]:
        return [node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == role]

    for role in ("link", "table", "image", "heading", "region", "navigation", "columnheader", "rowheader"):
        names = named(role)
        assert all(names), f"{role} without a name: {names}"
        assert names or role == "image"
    assert len(named("RootWebArea")) == len(named("main")) == 1
    # the narrow layout must not take a table's meaning
    assert len(named("row")) == page.evaluate("document.querySelectorAll('tr').length")
    assert len(named("cell")) == page.evaluate("[...document.querySelectorAll('td')].filter(each =>"
                                               " getComputedStyle(each).display !== 'none').length")  # fmt: skip
    assert page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(each => each.tagName)[0]") == "H1"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(page: Page, rich: str, width: int, dark: bool) -> None:
    page.open(f"{rich}/", width=width, dark=dark)
    page.evaluate(UNFOLD)
    page.evaluate(_axe())
    found: dict[str, Any] = page.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(found => ({passes: found.passes.length,"
        " violations: found.violations.map(each => [each.id, each.help, each.nodes.slice(0, 3)"
        ".map(node => [node.html.slice(0, 200), node.failureSummary])])}))"
    )
    assert found["violations"] == []
    assert found["passes"] > 20, "it has looked"


def test_axe_would_find_something(page: Page, daemons: str) -> None:
    """The check above can fail."""
    page.open(f"{daemons}/", width=1280)
    page.evaluate("document.querySelector('h1').style.color = '#ddd'; document.documentElement.lang = ''")
    page.evaluate(_axe())
    rules = ["color-contrast", "html-has-lang"]
    found = page.evaluate(f"axe.run({{runOnly: {rules}}}).then(found => found.violations.map(each => each.id))")
    assert sorted(found) == rules


def test_a_finger_hits_what_it_aims_at(page: Page, rich: str) -> None:
    """WCAG 2.2, 2.5.8: links of a navigation and folds are at least 24 pixels high; those in a text are exempt."""
    page.open(f"{rich}/", width=360)
    heights = page.evaluate(
        "[...document.querySelectorAll('nav a, summary')].map(each => each.getBoundingClientRect().height)"
        ".filter(height => height)"
    )
    assert heights
    assert min(heights) >= 24


def test_what_is_drawn_is_said(page: Page, rich: str) -> None:
    page.open(f"{rich}/", width=1280)
    shown = page.evaluate(
        "[...document.querySelectorAll('svg.spark')].map(each => [each.getAttribute('aria-label'),"
        " each.querySelectorAll('polyline').length, each.querySelectorAll('.accepted').length,"
        " each.getBoundingClientRect().width])"
    )
    for label, lines, accepted, width in shown:
        assert lines >= 1
        assert width == 120
        assert ("; baseline " in label) == (accepted == 1)
        assert all(word in label for word in ("last ", "lowest ", "highest "))


def _axe() -> str:
    """The script, from the Python package that carries it."""
    found = importlib.util.find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core-python is not installed (requirements/dev.in)")
    return (Path(found.origin).parent / "axe.min.js").read_text()
