"""The runbooks that the wheel carries, as pages: ``alerts/runbooks/*.md``, one an alert.

They use a small part of Markdown, and so does this: headings, paragraphs, lists, tables, fenced code, and in a line
`` `code` ``, ``**bold**`` and links. A test renders every runbook and finds no markup left over. All text is escaped.

What several runbooks say stands in a file of its own, whose name begins with a small letter. A paragraph that is only a
link to such a file shows it in place: folded up, with the link's text to open it, if the file has a heading. The
diagnosis of the alert's own layer is open.

Where the page is asked for with the labels of an alert, they are filled in (:mod:`plumbline.pages.runbook_values`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from plumbline.pages.htmltext import Html, joined, tag
from plumbline.pages.runbook_values import filled, usable
from plumbline.pages.templates import render

_FOLDER = resources.files("plumbline.pages").joinpath("runbooks")
_NAME = re.compile(r"Plumbline\w+", re.ASCII)
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)|<(https?://[^>\s]+)>")
_ITEM = re.compile(r"(- |\d+\. )")
_CELL = re.compile(r"(?<!\\)\|")
_LAYER_PAGES = {"osd": "rados"}
"""Layers whose diagnosis stands on the page of another one."""
_SHARED = re.compile(r"\[([^\]]+)\]\(([a-z-]+)\.md\)")


@cache  # part of the package: it does not change
def names() -> tuple[str, ...]:
    """Every alert that has a runbook, in order; none where Plumbline runs from a source tree."""
    if not _FOLDER.is_dir():
        return ()
    files = sorted(path.name.removesuffix(".md") for path in _FOLDER.iterdir() if path.name.endswith(".md"))
    return tuple(name for name in files if _NAME.fullmatch(name))


def page(name: str, labels: Mapping[str, str] | None = None) -> str | None:
    """The page of one alert, the list of all for an empty name, ``None`` where there is none.

    ``X.md`` is the same as ``X``: so runbooks link each other here as they do in the project's folder. ``labels``: of
    the alert, as its link has them; what cannot be used is ignored.
    """
    if not name:
        return render("runbooks.html", title="Runbooks", names=names(), body=None, labels={})
    name = name.removesuffix(".md")
    if name not in names():  # what a client sends never becomes a path
        return None
    known = usable(labels or {})
    body = to_html(_FOLDER.joinpath(f"{name}.md").read_text("utf-8"), known)
    return render("runbooks.html", title=name, names=None, body=body, labels=known)


def to_html(markdown: str, labels: Mapping[str, str] | None = None) -> Html:
    """The text as HTML, with these labels filled in."""
    lines = _Lines(filled(markdown, labels or {}).splitlines(), labels or {})
    blocks: list[Html] = []
    while lines.left:
        blocks.append(_block(lines))
    return joined(*blocks)


@dataclass(slots=True)
class _Lines:
    left: list[str]
    labels: Mapping[str, str]

    def pop(self, wanted: Callable[[str], bool]) -> list[str]:
        """The next lines, as long as they are wanted."""
        end = next((at for at, line in enumerate(self.left) if not wanted(line)), len(self.left))
        taken, self.left = self.left[:end], self.left[end:]
        return taken


def _block(lines: _Lines) -> Html:
    first = lines.left[0]
    if not first.strip():
        lines.left = lines.left[1:]
        return Html()
    if first.startswith("```"):
        lines.left = lines.left[1:]
        code = lines.pop(lambda line: not line.startswith("```"))
        lines.left = lines.left[1:]
        return tag("pre", tag("code", "\n".join(code)), tabindex="0")
    if first.startswith("#"):
        lines.left = lines.left[1:]
        marks, _, text = first.partition(" ")
        return tag(f"h{len(marks)}", _inline(text), id=text.lower() if marks == "##" else "")
    if first.startswith("|"):
        return _table(lines.pop(lambda line: line.startswith("|")))
    if _ITEM.match(first):
        return _listing(lines.pop(lambda line: bool(_ITEM.match(line) or line.startswith("  "))))
    text = " ".join(lines.pop(lambda line: bool(line.strip()) and not _begins(line)))
    shared = _SHARED.fullmatch(text)
    return _in_place(shared[1], shared[2], lines.labels) if shared else tag("p", _inline(text))


def _in_place(label: str, name: str, labels: Mapping[str, str]) -> Html:
    """A file that several runbooks share. Its heading is for who reads it alone."""
    file = _FOLDER.joinpath(f"{name}.md")
    text = file.read_text("utf-8")
    if not text.startswith("# "):
        return to_html(text, labels)
    layer = labels.get("layer", "")
    own = bool(layer) and name == f"layer-{_LAYER_PAGES.get(layer, layer)}"
    body = to_html(text.partition("\n")[2], labels)
    return tag("details", tag("summary", _inline(label)), body, open="open" if own else "")


def _begins(line: str) -> bool:
    """Whether a block of its own begins here, even without an empty line before."""
    return line.startswith(("```", "|")) or bool(_ITEM.match(line))


def _listing(lines: list[str]) -> Html:
    items: list[str] = []
    for line in lines:
        if match := _ITEM.match(line):
            items.append(line[match.end() :])
        else:
            items[-1] += " " + line.strip()
    return tag("ol" if lines[0][0].isdigit() else "ul", *(tag("li", _inline(item)) for item in items))


def _table(lines: list[str]) -> Html:
    head, _, *rows = [[cell.strip() for cell in _CELL.split(line.strip())[1:-1]] for line in lines]
    body = (tag("tr", *(tag("td", _inline(cell.replace("\\|", "|"))) for cell in row)) for row in rows)
    heads = tag("thead", tag("tr", *(tag("th", _inline(cell), scope="col") for cell in head)))
    return tag("div", tag("table", heads, tag("tbody", *body)), class_="wide", tabindex="0")


def _inline(text: str) -> Html:
    parts: list[str] = []
    end = 0
    for match in _INLINE.finditer(text):
        code, bold, label, target, address = match.groups()
        parts.append(text[end : match.start()])
        if code:
            parts.append(tag("code", code))
        elif bold:
            parts.append(tag("b", _inline(bold)))
        else:
            parts.append(_link(label or address, target or address))
        end = match.end()
    return joined(*parts, text[end:])


def _link(label: str, target: str) -> Html:
    """A link to another runbook or to the web. The daemon has no other file of the project, so that is named."""
    if target.startswith("../"):
        return joined(_inline(label), " (", tag("code", target.removeprefix("../../")), ")")
    return tag("a", _inline(label), href=target)
