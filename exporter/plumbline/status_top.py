"""The top of the status page: the verdict, a verdict for each layer, and where the rest stands."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.htmltext import Html, joined, tag
from plumbline.status_layers import Basis, LayerVerdict
from plumbline.status_parts import Row, bullets, folded, link, mark, section, small, table, word
from plumbline.status_verdict import Verdict
from plumbline.workloads import LAYERS

IN_VIEW = 6
"""Problems, or notes, before the rest is folded."""


def verdict(judged: Verdict) -> Html:
    """One sentence, then what it rests on."""
    parts: list[str] = [tag("h2", mark(judged.level), " ", judged.headline, id="verdict-title", class_=judged.level)]
    if len(judged.problems) > 1:
        parts += _list(judged.problems, "problems")
    if judged.notes:
        parts += [tag("h3", "Worth knowing"), *_list(judged.notes, "notes")]
    return tag("section", *parts, class_=f"verdict {judged.level}", id="verdict", aria_labelledby="verdict-title")


def layers(verdicts: Sequence[LayerVerdict]) -> Html:
    """One line a layer, from the lowest up."""
    if not verdicts:
        return section("layers", "Layers", "Nothing is measured here yet.")
    there = {each.layer for each in verdicts}
    absent = [layer for layer in LAYERS if layer not in there]
    about = "From the lowest up. What a layer does shows in all above it: the lowest that is out of line is suspected"
    rest = tag("p", f"Neither measured nor known on this node: {', '.join(absent)}.") if absent else ""
    rows = [Row([each.layer, _state(each), bullets(map(_basis, each.basis))]) for each in verdicts]
    return section(
        "layers", "Layers", about,
        table(("Layer", "Verdict", "Rests on"), rows, label="Verdict for each layer", class_="layers"), rest,
    )  # fmt: skip


def contents(shown: Sequence[tuple[str, str]]) -> Html:
    """Links to the sections that are there: (place, name with its count)."""
    return tag(
        "nav", tag("ul", *(tag("li", link(f"#{place}", name)) for place, name in shown), role="list"),
        aria_label="On this page",
    )  # fmt: skip


def _state(each: LayerVerdict) -> Html:
    level = each.state.level
    said = joined(mark(level), " ", word(level, each.state + (f": {each.why}" if each.why else "")))
    if each.suspected:
        below = small(f"not judged below it: {', '.join(each.unjudged_below)}") if each.unjudged_below else ""
        return joined(said, " ", tag("span", "suspected", class_="tag"), below)
    return joined(said, small(f"may only show what the {each.above} layer does")) if each.above else said


def _basis(basis: Basis) -> Html:
    """The link's text is the fact itself; what is no more than a fact is not coloured."""
    return link(f"#{basis.section}", basis.text)


def _list(lines: Sequence[str], what: str) -> list[Html]:
    if len(lines) <= IN_VIEW + 2:
        return [bullets(lines)]
    return [bullets(lines[:IN_VIEW]), folded(f"{len(lines) - IN_VIEW:,} more {what}", bullets(lines[IN_VIEW:]))]
