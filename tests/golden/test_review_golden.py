"""The review's page and Markdown, character for character, from fixed facts: a full quarter, and one of nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.commands.reporting import written
from plumbline.report.document import as_document
from plumbline.report.model import Review
from support.golden import check_golden
from support.review_facts import empty_review, full_review, two_quarters

HERE = Path(__file__).parent / "reviews"
REVIEWS = {"quarter": full_review(), "nothing": empty_review(), "two-quarters": two_quarters()}


@pytest.mark.parametrize("name", REVIEWS)
def test_markdown(name: str) -> None:
    check_golden(HERE / f"{name}.md", written(as_document(REVIEWS[name]), "markdown").encode())


@pytest.mark.parametrize("name", REVIEWS)
def test_html(name: str) -> None:
    # a line for each part, so that a difference is read as one; the style sheet has tests of its own
    page = re.sub(r"(?s)<style>.*?</style>", "<style></style>", written(as_document(REVIEWS[name]), "html"))
    page = page.replace("&#34;", "&quot;").replace("&#39;", "&#x27;").replace("><", ">\n<")
    check_golden(HERE / f"{name}.html", page.encode())


def test_the_facts_are_told() -> None:
    assert isinstance(REVIEWS["quarter"], Review)
    text = written(as_document(REVIEWS["quarter"]), "markdown")
    assert "from 800 µs to 1.68 ms (2.10 times) on 14 August 2026, about 13:00 UTC" in text
