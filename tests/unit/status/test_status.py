"""The page as a browser and a screen reader take it: parsed, not searched for strings."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import fields, replace

from plumbline.checks.model import Finding
from plumbline.pages.templates import style
from plumbline.status.model import DiskRow, Level, NicRow, StatusModel
from plumbline.status.page import place, render_status
from support.status_models import EVIL, RING, full_model, large_model

VOID = {"meta", "link"}


class Page(HTMLParser):
    """Elements with their attributes and the texts; fails on tags that don't match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.texts_of: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts_of.append(self.open[-1])
            self.texts.append(data.replace("\N{NO-BREAK SPACE}", " "))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_the_page_says_what_the_model_holds() -> None:
    texts = Page(render_status(full_model())).texts
    said = " ".join(" ".join(texts).split())
    for words in (
        "2023-11-14 22:13:20 UTC", "up for 2 h 47 min", "stuck for 12 s", "9 s ago", "1.9 ms 1.9× slower",
        "accepted 1 ms", "2 ms as accepted", "500 MB/s 2.0× less accepted 1 GB/s", "4 TB",
        "p50 3 ms p99 9 ms 5 operations", "mean 4 ms, 10 reads", "0 writes", "up 25 Gb/s", "MTU 9000", "256 of 4,096",
        "5 (+2)", "next in 10 min", "x 3 the newest: x", "Failures", "2 h ago", "12.5 s",
        "not met (1 of 2 findings)", "critical network.ring-below-maximum", "should be: x",
        "To make it permanent, in x x:",
        "1,000", "2 (+1)", "pause collector no driver", "added in the last 5 min", "2 x", "fails x",
        "2 blocked, the oldest 45 s", "1 slow in 10 min", "p50 1 ms p99 2 ms 7 operations", "x: none", "300 µs to x",
        "0 of 2 work",
    ):  # fmt: skip
        assert words in said, words


def test_nothing_known_is_said_too() -> None:
    said = " ".join(Page(render_status(StatusModel("h", "0", 0.0, 0.0))).texts)
    for words in (
        "No probe is configured",
        "No disk is reported",
        "No network device",
        "No collector is enabled",
    ):
        assert words in said


def test_a_finding_shows_its_command_ready_to_be_copied() -> None:
    page = Page(render_status(replace(full_model(), findings=(RING,))))
    commands = [text for tag, text in zip(page.texts_of, page.texts, strict=True) if tag == "code"]
    assert commands == ["ethtool -G ens2f0 rx 4078", 'RUN+="a <b>"']
    said = " ".join(" ".join(page.texts).split())
    assert "● warning network.ring-below-maximum: ens2f0" in said
    assert "A ring. (unnoba-2020)" in said
    assert "453 of 4,078 should be: 4,078" in said
    assert "not met (1 of 1 findings)" in said


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        (None, "This host has not been judged yet."),
        ((), "No advice applies here."),
        ((replace(RING, met=True, fix=None),), "All documented advice that applies here is met (1 of 1 findings)."),
    ],
)
def test_no_open_finding(findings: tuple[Finding, ...] | None, words: str) -> None:
    page = Page(render_status(replace(full_model(), findings=findings)))
    assert words in page.texts
    assert page.all("code") == []


def test_what_is_missing_is_not_shown_as_zero() -> None:
    empty = replace(full_model(), disks=(DiskRow("sda"),), osds=(), nics=(NicRow("eth0"),), softnet=None)
    said = Page(render_status(empty)).texts
    assert "0" not in said
    assert "nothing" in said


def test_every_text_is_escaped() -> None:
    plain, evil = Page(render_status(full_model())), Page(render_status(full_model(EVIL)))
    shapes = [[(tag, sorted(attributes)) for tag, attributes in page.elements] for page in (plain, evil)]
    assert shapes[0] == shapes[1]  # the words added no element and no attribute
    assert plain.all("script") == []
    written = {
        field.name
        for row in (full_model().probes[0], full_model().disks[0], full_model().nics[0])
        for field in fields(row)
    }
    assert len(written) > 20
    assert sum(EVIL in text for text in evil.texts) >= 20


def test_it_needs_nothing_from_elsewhere() -> None:
    page = Page(render_status(full_model()))
    assert {name for name, _ in page.elements}.isdisjoint({"script", "img", "iframe", "object", "form"})
    assert [each["href"] for each in page.all("link")] == ["data:,"]
    targets = [str(each["href"]) for each in page.all("a")]
    paths = [each for each in targets if not each.startswith(("#", "/runbooks/"))]
    assert paths == ["/metrics", "/-/ready", "/-/healthy"]
    style = render_status(full_model()).partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_a_screen_reader_finds_its_way() -> None:
    page = Page(render_status(full_model()))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("title")) == 1
    assert all(each.get("aria-label") for each in page.all("table"))
    sections, headings = page.all("section"), [each.get("id") for each in page.all("h2")]
    assert [each["aria-labelledby"] for each in sections] == headings
    assert all(each["scope"] in ("col", "row") for each in page.all("th"))
    # the narrow layout turns cells into blocks, which takes their meaning unless roles keep it
    assert {each["role"] for each in page.all("td")} == {"cell"}
    assert {each["role"] for each in page.all("tr")} == {"row"}
    assert all(each.get("data-label") for each in page.all("td"))
    assert [(each["role"], bool(each["aria-label"])) for each in page.all("svg")] == [("img", True)]


@pytest.mark.parametrize("given", [full_model(), full_model(EVIL), large_model(), StatusModel("h", "0", 0.0, 0.0)])
def test_every_link_leads_somewhere_and_no_place_is_there_twice(given: StatusModel) -> None:
    page = Page(render_status(given))
    places = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(places) == len(set(places))
    assert not [place for place in places if place is None or re.search(r"\s", place)]
    targets = {str(each["href"])[1:] for each in page.all("a") if str(each["href"]).startswith("#")}
    assert targets
    assert targets <= set(places)


def test_a_place_is_named_after_its_device() -> None:
    assert place("disk", "nvme0n1") == "disk-nvme0n1"
    assert place("disk", "cciss/c0d0") != place("disk", "cciss!c0d0")


def test_sixty_disks_and_two_hundred_findings_stay_in_view() -> None:
    """In view without a click is a screenful or two of each part, the worst first; the rest is there, folded."""
    page = render_status(large_model())
    for words in ("48 more disks", "48 more OSDs", "44 more measurements", "48 more findings of this check"):
        assert words in page, words
    assert page.index("osd.7<") < page.index("osd.9<") < page.index("osd.0<"), "one that does not answer comes first"
    assert page.index(">raw/osd.17<") < page.index(">raw/osd.0<")
    groups = re.findall(
        r'<details( open="open")?><summary>(?:<span[^>]*>.</span> )?<?[^>]*>?(\w+)(?:</span>)? (\S+):', page
    )
    assert [(bool(opened), word, check) for opened, word, check in groups] == [
        (True, "critical", "health.smart-failed"),
        (False, "warning", "health.worn-out"),
        (False, "warning", "network.ring-below-maximum"),
        (False, "info", "disk.read-ahead"),
        (False, "info", "disk.rq-affinity"),
    ]
    assert page.count("read_ahead_kb</code>") == 180, "no command is left out"


def test_the_lowest_layer_out_of_line_is_named() -> None:
    said = " ".join(" ".join(Page(render_status(large_model())).texts).split())
    assert "network ✖ out of line suspected" in said
    assert "disk ✖ out of line may only reflect the network layer" in said
    assert "rbd ○ not judged here: no baseline" in said


def _colours(scheme: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6})", scheme))


def _luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance of an sRGB colour."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


PAIRS = tuple(
    (text, ground)
    for ground, texts in {
        "ground": ("ink", "dim", "link", "good", "note", "bad"),
        "card": ("ink", "dim", "link", "good", "note", "bad"),
        "good-ground": ("ink", "dim", "good"),
        "note-ground": ("ink", "dim", "note"),
        "bad-ground": ("ink", "dim", "bad", "link"),
        "link": ("ground",),
    }.items()
    for text in texts
)
"""(colour of text, colour below it), by their custom properties."""

MARKS = (("spark", "card"), ("note", "card"), ("link", "ground"), ("link", "card"))
"""Lines that say something: 3:1 is enough for them."""

SCHEMES = [_colours(part) for part in style().split(":root {")[1:]]


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark", "paper"])
def test_every_colour_can_be_read_on_its_ground(scheme: dict[str, str]) -> None:
    assert len(scheme) == 14
    poor = {
        (text, ground): round(contrast(scheme[text], scheme[ground]), 2)
        for pairs, least in ((PAIRS, 4.5), (MARKS, 3.0))
        for text, ground in pairs
        if contrast(scheme[text], scheme[ground]) < least
    }
    assert poor == {}
    assert contrast("#fff", "#000000") == pytest.approx(21)


def test_words_have_the_classes_that_colour_them() -> None:
    assert {level.value for level in Level} - {"neutral"} <= set(re.findall(r"\.(good|note|bad) {", style("status")))


def test_a_phone_gets_its_width_and_the_night_its_colours() -> None:
    text = render_status(full_model())
    assert Page(text).all("meta")[1] == {"name": "viewport", "content": "width=device-width, initial-scale=1"}
    assert "@media (prefers-color-scheme: dark)" in text


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "✖ x – Plumbline"),
        (
            {
                "probes": (),
                "collectors": (),
                "findings": (),
                "config_error": "",
                "nics": (),
                "softnet": None,
                "osds": (),
            },
            "● x – Plumbline",
        ),
    ],
)
def test_the_tab_shows_the_verdict(changes: dict[str, Any], title: str) -> None:
    assert title in Page(render_status(replace(full_model(), **changes))).texts


def test_an_open_door_is_said_and_judges_nothing() -> None:
    warnings = "", "anyone may read"
    shut, opened = (render_status(StatusModel("h", "0", 0.0, 0.0, exposure_warning=each)) for each in warnings)
    assert "Unprotected" not in shut
    assert "Unprotected listener: anyone may read" in opened
    assert opened.replace("<p>Unprotected listener: anyone may read</p>", "") == shut
