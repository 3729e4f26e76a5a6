"""Every link of every page leads somewhere: the file exists, and the heading in it; every picture is shown by a page
and its origin is known; and words have one spelling."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OTHERS = {ROOT / "tests" / "fixtures", ROOT / "tests" / "golden"}
SKIPPED = {"vendor", "node_modules", "__pycache__", "dist", "build"}

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\((?P<target>[^()\s]+)(?:\s+\"[^\"]*\")?\)")
_PICTURE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)

WRONG = {
    r"base[ -]lines?": "baseline",
    r"run[ -]books?": "runbook",
    r"work[ -]loads?": "workload",
    r"(?i:alert manager)": "Alertmanager",
    r"(?:N|n)ode[ -][eE]xporter": "node_exporter",
    r"dash-boards?": "dashboard",
    r"filesystems (?:is|are|of|in)": "file systems, in prose",
    r"(?i:kubernets|k8s)": "Kubernetes",
}
"""Spellings that are not ours, in prose (code, links and file names left out), and what is."""


@cache
def pages() -> tuple[Path, ...]:
    """Every Markdown file of the tree that is ours; fixtures and golden pages are as others or programs wrote them."""
    found: list[Path] = []
    for folder, below, names in os.walk(ROOT):
        here = Path(folder)
        below[:] = [
            name for name in below if not name.startswith(".") and name not in SKIPPED and here / name not in OTHERS
        ]
        found += [here / name for name in names if name.endswith(".md") and not (here / name).is_symlink()]
    return tuple(sorted(found))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def prose(path: Path) -> str:
    """The page without blocks of code and comments."""
    return _COMMENT.sub("", _FENCE.sub("", path.read_text("utf-8")))


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading: its text in lower case without punctuation, spaces as hyphens."""
    text = _LINK.sub(lambda match: match[0][1 : match[0].index("](")], heading)
    return re.sub(r"[^\w\- ]", "", text.replace("`", "").replace("*", "").lower()).replace(" ", "-")


@cache
def anchors(path: Path) -> frozenset[str]:
    """All anchors of a page; a heading that stands twice gets -1, -2 …"""
    found: dict[str, int] = {}
    for heading in _HEADING.findall(prose(path)):
        name = slug(heading)
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    explicit = re.findall(r"<a (?:id|name)=\"([^\"]+)\"", path.read_text("utf-8"))
    return frozenset(found) | frozenset(explicit)


def targets(path: Path) -> list[str]:
    """Every link's target; code is no link."""
    return [match["target"] for match in _LINK.finditer(_CODE.sub(lambda code: "x" * len(code[0]), prose(path)))]


def wrong_links(path: Path) -> list[str]:
    """Links of a page that lead nowhere, but those to awaited pages."""
    wrong = []
    for target in targets(path):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue  # another site's
        name, _, anchor = target.partition("#")
        to = (path.parent / name).resolve() if name else path
        if not to.is_relative_to(ROOT):
            wrong.append(f"{target}: outside the tree")
        elif not to.exists():
            wrong.append(f"{target}: no such file")
        elif anchor and (to.suffix != ".md" or anchor not in anchors(to)):
            wrong.append(f"{target}: no such heading")
    return wrong


def test_pages_are_found() -> None:
    names = {named(path) for path in pages()}
    assert {"README.md", "docs/README.md", "alerts/runbooks/PlumblineDown.md", "requirements/README.md"} <= names
    assert len(names) > 120


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("From nothing to an alert", "from-nothing-to-an-alert"),
        ("`plumbline ceph top`", "plumbline-ceph-top"),
        ("network.tcp-rmem", "networktcp-rmem"),
        ("A layer's verdict", "a-layers-verdict"),
        ("CPU, memory & more", "cpu-memory--more"),
        ("[A page](page.md): what", "a-page-what"),
    ],
)
def test_anchors_are_githubs(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# One\n## One\n[a](no.md) [b](#one-1) [c](#two) [d](../x.md) `[e](no.md)`\n```\n[f](no.md)\n```\n")
    assert wrong_links(page) == ["no.md: no such file", "#two: no such heading", "../x.md: outside the tree"]


def test_every_link_leads_somewhere() -> None:
    assert {named(path): found for path in pages() if (found := wrong_links(path))} == {}


def shown(path: Path) -> dict[Path, str]:
    """Picture → what the page says of it for those who don't see it."""
    found = _PICTURE.finditer(_CODE.sub(lambda code: "x" * len(code[0]), prose(path)))
    return {(path.parent / match["target"]).resolve(): match["text"] for match in found if ":" not in match["target"]}


def pictures() -> set[Path]:
    return {
        each
        for folder in ("docs", "dashboards")
        for each in (ROOT / folder).rglob("*.png")
        if "vendor" not in each.parts
    }


def test_every_picture_is_shown_in_words_too_and_there_is_no_other() -> None:
    on_pages = [(path, picture, text) for path in pages() for picture, text in shown(path).items()]
    assert [(named(path), named(picture)) for path, picture, text in on_pages if len(text.split()) < 4] == []
    assert {picture for _, picture, _ in on_pages} == pictures()
    assert len(pictures()) >= 5


def test_every_picture_is_one_and_its_origin_is_known() -> None:
    origin = (ROOT / "docs" / "pictures" / "ORIGIN.md").read_text("utf-8")
    assert {each.parent for each in pictures()} == {ROOT / "docs" / "pictures"}
    assert sorted(re.findall(r"`(\w[\w-]*\.png)`", origin)) == sorted(each.name for each in pictures())
    assert [named(each) for each in pictures() if not each.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")] == []


def test_every_page_of_docs_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / target.partition("#")[0]).resolve() for target in targets(index)}
    assert [named(path) for path in index.parent.glob("*.md") if path not in listed and path != index] == []


def test_words_have_one_spelling() -> None:
    found = []
    for path in pages():
        text = _CODE.sub("", re.sub(r"\]\([^)]*\)", "]", prose(path)))
        for pattern, right in WRONG.items():
            for match in re.finditer(rf"(?<![\w/.@-])(?:{pattern})(?![\w/.-]*[\w/])", text):
                line = text[: match.start()].count("\n") + 1
                found.append(f"{named(path)} (line {line} without code): {match[0]!r}: write {right}")
    assert found == []


def test_no_page_names_a_machine_path() -> None:
    done = subprocess.run(
        ["grep", "-rnE", "(^|[^.a-z])/work/|/tmp/bash", *[str(path) for path in pages()]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
