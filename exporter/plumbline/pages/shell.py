"""The page around a report: no script, nothing from outside; and the table behind a plot."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.htmltext import Html, tag

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(title: str, style: str, *body: Html) -> str:
    """A whole document, which a browser lets load nothing."""
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Html('<link rel="icon" href="data:,">'),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', *body), lang='en')}\n"


def folded_table(name: str, summary: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    """The figures behind a plot, for who wants or can only have them; ``name`` is what a screen reader says."""
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in heads)))
    lines = (tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in others)) for first, *others in rows)
    table = tag("table", head, tag("tbody", *lines), class_="data")
    return tag(
        "details",
        tag("summary", summary),
        tag("div", table, class_="wide", tabindex="0", role="region", aria_label=name),
        class_="plot-data",
    )


def stacked_table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    """A table that on a phone is a list: each cell under its head. The roles are lost there otherwise."""
    head = tag("thead", tag("tr", *(tag("th", each, scope="col", role="columnheader") for each in heads), role="row"))
    lines = (
        tag(
            "tr",
            tag("th", row[0], scope="row", role="rowheader"),
            *(tag("td", cell, data_label=label, role="cell") for label, cell in zip(heads[1:], row[1:], strict=True)),
            role="row",
        )
        for row in rows
    )
    caption = tag("caption", name, class_="unseen")
    return tag("table", caption, head, tag("tbody", *lines, role="rowgroup"), class_="main", role="table")
