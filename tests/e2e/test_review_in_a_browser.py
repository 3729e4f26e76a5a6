"""The review's page in a real browser: on a phone and on a desk, light and dark; silent, and within its window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plumbline.commands.reporting import written
from plumbline.report.document import as_document
from support import browser as browsers
from support.review_facts import empty_review, full_review

PHONE, DESK = 360, 1280


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reviews")
    for name, review in (("quarter", full_review()), ("nothing", empty_review())):
        (folder / f"{name}.html").write_text(written(as_document(review), "html"))
    return {file.stem: file for file in folder.iterdir()}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.browser() as started:
        yield started


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.page()
    yield opened
    opened.close()


@pytest.mark.parametrize("name", ["quarter", "nothing"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_silent_alone_and_within_its_window(
    page: Any, pages: dict[str, Path], name: str, width: int, dark: bool, tmp_path: Path
) -> None:
    page.open(pages[name].as_uri(), width=width, dark=dark)
    assert page.complaints == []
    assert {url for url in page.requests if not url.startswith("data:")} == {pages[name].as_uri()}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.removeprefix("rgb(").rstrip(")").split(","))) < 384) is dark
    page.screenshot(tmp_path / "page.png")


def test_a_screen_reader_hears_tables_and_plots(page: Any, pages: dict[str, Path]) -> None:
    page.open(pages["quarter"].as_uri(), width=PHONE)
    said = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in page.accessibility()]
    assert ("heading", "Did it perform as accepted?") in said
    assert ("table", "By layer") in said
    assert ("columnheader", "Within tolerance") in said
    plots = [name for role, name in said if role == "image" and name.startswith("Share of measured time beyond")]
    assert plots
    assert "highest 16.67 %" in plots[0]


def test_on_paper_plots_can_be_read_and_there_is_room_to_sign(page: Any, pages: dict[str, Path]) -> None:
    """A4 between the margins of a browser is some 700 pixels wide."""
    page.open(pages["quarter"].as_uri(), width=700)
    page.send("Emulation.setEmulatedMedia", media="print")
    widths = page.evaluate("[...document.querySelectorAll('figure svg[role=img]')].map(one => one.clientWidth)")
    assert len(widths) > 3
    assert min(widths) > 280
    tops = page.evaluate("[...document.querySelectorAll('.point')].map(one => one.offsetTop)")
    assert len(tops) == 3
    assert len(set(tops)) == 1
    signed = page.evaluate("[...document.querySelectorAll('.signed')].map(one => one.clientHeight > 0)")
    assert signed == [True, True]
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
