"""What every page gets from its templates: escaping, the style's parts, and no cost before the first page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import plumbline.pages
from plumbline.pages.templates import environment, style

TEMPLATES = Path(plumbline.pages.__file__).with_name("templates")
EVIL = "<b a=\"x\" c='y'>&"


def made(source: str, **values: object) -> str:
    return environment().from_string(source).render(**values)


def test_text_is_escaped_in_elements_and_attributes() -> None:
    said = made('<a title="{{ x }}">{{ x }}</a>', x=EVIL)
    escaped = "&lt;b a=&#34;x&#34; c=&#39;y&#39;&gt;&amp;"
    assert said == f'<a title="{escaped}">{escaped}</a>'


@pytest.mark.parametrize("source", ["{{ nobody }}", "{% if nobody %}x{% endif %}", "{{ given.nobody }}"])
def test_a_name_that_nobody_gave_is_an_error(source: str) -> None:
    with pytest.raises(UndefinedError):
        made(source, given="x")


def test_no_template_switches_escaping_off() -> None:
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"\|\s*safe\b|Markup", text), path
        assert "autoescape" not in text, path
    assert len(list(TEMPLATES.rglob("*.html"))) > 1


def test_every_template_compiles() -> None:
    for path in TEMPLATES.rglob("*.html"):
        environment().get_template(path.relative_to(TEMPLATES).as_posix())


def test_line_breaks_of_a_template_are_not_of_the_page() -> None:
    tables = environment().get_template("tables.html").module
    said = tables.folded_table("n", "s", ["a", "b"], [("1", "2\n3")])  # type: ignore[attr-defined]
    assert said == (
        '<details class="plot-data"><summary>s</summary><div class="wide" tabindex="0" role="region" aria-label="n">'
        '<table class="data"><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
        '<tbody><tr><th scope="row">1</th><td>2\n3</td></tr></tbody></table></div></details>'
    )


def test_a_page_takes_the_parts_of_the_style_that_it_names() -> None:
    base, status, report = style(), style("status"), style("report")
    assert status.startswith(base)
    assert report.startswith(base)
    assert ".verdict" in status
    assert ".verdict" not in report
    assert style("report", "review").startswith(report)
    with pytest.raises(KeyError):
        style("nobody")


def test_no_colour_stands_outside_the_palettes() -> None:
    palettes, _, rules = style("status", "report", "review").partition("* { box-sizing")
    assert palettes.count(":root {") == 3, "light, dark and paper, each once"
    for word in ("#", "rgb(", "hsl(", "url(", "@import", "</"):
        assert word not in rules


def test_only_a_page_loads_jinja() -> None:
    """Not the daemon's start, nor the command line's: who only scrapes pays nothing for pages."""
    code = (
        "import sys; import plumbline.cli, plumbline.daemon.daemon; from plumbline.status.page import render_status;"
        "from plumbline.status.model import StatusModel; print('jinja2' in sys.modules);"
        "render_status(StatusModel('h', '0', 0.0, 0.0)); print('jinja2' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\nTrue\n"
