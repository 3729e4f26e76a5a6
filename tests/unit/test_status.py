"""The page as a browser and a screen reader take it: parsed, not searched for strings."""

from __future__ import annotations

from dataclasses import fields, replace
from html.parser import HTMLParser
from typing import Any

import pytest

from plumbline.checks.model import Finding, Fix, Keep, Severity
from plumbline.snapshot import CollectorHealth
from plumbline.status import render_status
from plumbline.status_model import Comparison, DiskRow, FailureRow, Loss, NicRow, ProbeRow, SoftnetRow, StatusModel

VOID = {"meta", "link"}
EVIL = '"><script>alert(1)</script>&amp;'


RING = Finding(
    "network.ring-below-maximum", "ens2f0", Severity.WARNING, False, "453 of 4,078", "4,078", "A ring.", "unnoba-2020",
    Fix("ethtool -G ens2f0 rx 4078", Keep("/etc/udev/rules.d/x.rules", 'RUN+="a <b>"'), "Resets the link."),
)  # fmt: skip


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


def fix(word: str) -> Fix:
    return Fix(word, Keep(word, word, word), word)


def model(word: str = "x") -> StatusModel:
    """A page with something in every field; every text is ``word``."""
    return StatusModel(
        host=word,
        version=word,
        now_ts=1_700_000_000.0,
        started_ts=1_699_990_000.0,
        config_error=word,
        last_look_s=42.0,
        probes=(
            ProbeRow(
                word, word, word, word, word, False, 9.0,
                Comparison(0.0019, 0.001, 1.3), Comparison(0.002, 0.002, 1.3), word, True, word, 12.0, True,
                600.0, {word: 3},
            ),
        ),
        failures=(FailureRow(word, word, 7200.0, 12.5, word),),
        disks=(DiskRow(word, word, word, 4_000_787_030_016, 10, 0, 0.004, None, 1, word),),
        nics=(NicRow(word, word, True, 25e9, 9000, (256, 4096), (Loss(word, word, word, 5, 2),)),),
        softnet=SoftnetRow(4, 1000, 2, 3, 1, 1),
        findings=(
            replace(RING, subject=word, severity=Severity.CRITICAL, is_=word, should=word, why=word, fix=fix(word)),
            Finding("network.tcp-sack", "net.ipv4.tcp_sack", Severity.INFO, True, "1", "1", "w", "s"),
        ),
        collectors=(
            CollectorHealth(word, False, True, 0.001, word, {word: 2}),
            CollectorHealth("pause", True, False, 0.0, "no driver", {"vanished": 0}),
        ),
    )  # fmt: skip


def test_the_page_says_what_the_model_holds() -> None:
    texts = Page(render_status(model())).texts
    said = " ".join(" ".join(texts).split())
    for words in (
        "2023-11-14 22:13:20 UTC", "up for 3 h", "stuck for 12 s", "9 s ago", "1.9 ms 1.9× slower", "accepted 1 ms",
        "2 ms as accepted", "3.64 TiB", "4 ms 10 reads", "0 writes", "up 25 Gb/s", "MTU 9000", "256 of 4,096",
        "5 (+2)", "next in 10 min", "skipped: x 3", "Failed runs", "2 h ago", "12.5 s",
        "not met (1 of 2 findings)", "critical network.ring-below-maximum", "should be: x", "To stay, in x x:",
        "1,000", "2 (+1)", "not available no driver", "the last 42 s added", "OSD x", "2 x", "fails",
    ):  # fmt: skip
        assert words in said, words


def test_nothing_known_is_said_too() -> None:
    said = " ".join(Page(render_status(StatusModel("h", "0", 0.0, 0.0))).texts)
    for words in (
        "No probe is configured",
        "No disk is reported",
        "No network device",
        "No collector is switched on",
    ):
        assert words in said


def test_a_finding_shows_its_command_ready_to_be_copied() -> None:
    page = Page(render_status(replace(model(), findings=(RING,))))
    commands = [text for tag, text in zip(page.texts_of, page.texts, strict=True) if tag == "code"]
    assert commands == ["ethtool -G ens2f0 rx 4078", 'RUN+="a <b>"']
    said = " ".join(" ".join(page.texts).split())
    assert "ens2f0 warning network.ring-below-maximum" in said
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
    page = Page(render_status(replace(model(), findings=findings)))
    assert words in page.texts
    assert page.all("code") == []


def test_what_is_missing_is_not_shown_as_zero() -> None:
    empty = replace(model(), disks=(DiskRow("sda"),), nics=(NicRow("eth0"),), softnet=None)
    said = Page(render_status(empty)).texts
    assert "0" not in said
    assert "nothing" in said


def test_every_text_is_escaped() -> None:
    plain, evil = Page(render_status(model())), Page(render_status(model(EVIL)))
    shapes = [[(tag, sorted(attributes)) for tag, attributes in page.elements] for page in (plain, evil)]
    assert shapes[0] == shapes[1]  # the words added no element and no attribute
    assert plain.all("script") == []
    written = {field.name for row in (model().probes[0], model().disks[0], model().nics[0]) for field in fields(row)}
    assert len(written) > 20
    assert sum(EVIL in text for text in evil.texts) >= 20


def test_it_needs_nothing_from_elsewhere() -> None:
    page = Page(render_status(model()))
    assert {name for name, _ in page.elements}.isdisjoint({"script", "img", "iframe", "object", "form"})
    assert [each["href"] for each in page.all("link")] == ["data:,"]
    assert [each["href"] for each in page.all("a")] == ["/metrics", "/-/ready", "/-/healthy"]
    style = render_status(model()).partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_a_screen_reader_finds_its_way() -> None:
    page = Page(render_status(model()))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("title")) == 1
    assert len(page.all("table")) == len(page.all("caption")) == 7
    assert all(each["scope"] in ("col", "row") for each in page.all("th"))
    # the narrow layout turns cells into blocks, which takes their meaning unless roles keep it
    assert {each["role"] for each in page.all("td")} == {"cell"}
    assert {each["role"] for each in page.all("tr")} == {"row"}
    assert all(each.get("data-label") for each in page.all("td"))


def test_a_phone_gets_its_width_and_the_night_its_colours() -> None:
    text = render_status(model())
    assert Page(text).all("meta")[1] == {"name": "viewport", "content": "width=device-width, initial-scale=1"}
    assert "@media (prefers-color-scheme: dark)" in text


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "✖ x – Plumbline"),
        (
            {"probes": (), "collectors": (), "findings": (), "config_error": "", "nics": (), "softnet": None},
            "● x – Plumbline",
        ),
    ],
)
def test_the_tab_shows_the_verdict(changes: dict[str, Any], title: str) -> None:
    assert title in Page(render_status(replace(model(), **changes))).texts
