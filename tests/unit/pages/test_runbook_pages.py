"""Every runbook as a page: nothing of its Markdown is left over, every link leads to one, nothing in it is markup."""

import html
import re
from pathlib import Path

import pytest

from plumbline.pages import runbooks
from support.offenders import for_every

FOLDER = Path(__file__).parents[3] / "alerts" / "runbooks"
ALERTS = sorted(path.stem for path in FOLDER.glob("Plumbline*.md"))
SHARED = sorted(path.name for path in FOLDER.glob("*.md") if path.stem not in ALERTS)


def written(name: str) -> str:
    """A runbook's text with what it shares with others in place."""
    text = (FOLDER / name).read_text("utf-8")
    return re.sub(r"^\[[^\]]+\]\(([a-z-]+\.md)\)$", lambda found: written(found[1]), text, flags=re.MULTILINE)


def text_of(page: str) -> str:
    """What one reads, code left out: there every character may stand."""
    prose = re.sub(r"<style>.*?</style>|<code>.*?</code>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", prose))


def test_the_wheel_holds_every_runbook() -> None:
    assert list(runbooks.names()) == ALERTS


@for_every("name", ALERTS)
def test_a_runbook_is_rendered_as_a_whole(name: str) -> None:
    page = runbooks.page(name)
    assert page is not None
    assert f"<title>{name}</title>" in page
    assert f"<h1>{name}</h1>" in page
    assert not re.search(r"`|\*\*|\]\(|^#|^\|", text_of(page), re.MULTILINE)
    source = written(f"{name}.md")
    assert page.count("<pre") == source.count("```") / 2
    # the shell's text exactly, to be copied
    blocks = re.findall(r"<pre tabindex=\"0\"><code>(.*?)</code>", page, re.DOTALL)
    expected = re.findall(r"^```\w*\n(.*?)\n```$", source, re.MULTILINE | re.DOTALL)
    assert [html.unescape(each) for each in blocks] == expected


def test_what_runbooks_share_is_folded_up_once_in_each() -> None:
    page = runbooks.page("PlumblineProbeStuck")
    assert page is not None
    assert page.index("<details><summary>Commands for your installation</summary>") < page.index(
        '<h2 id="meaning">Meaning</h2>'
    )
    assert len(re.findall("<summary>Layer", page)) == len(list(FOLDER.glob("layer-*.md")))
    assert page.count("<h1>") == 1
    assert page.count("<details") == page.count("</details>")


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_part_is_used_and_is_no_page_of_its_own(name: str) -> None:
    assert any(f"]({name})\n" in path.read_text("utf-8") for path in FOLDER.glob("*.md"))
    assert runbooks.page(name) is None


@for_every("name", ["", *ALERTS])
def test_links_lead_to_a_runbook_or_the_web(name: str) -> None:
    page = runbooks.page(name)
    assert page is not None
    for target in re.findall(r'<a href="([^"]+)"', page):
        if target.startswith("#"):
            assert f'<h2 id="{target[1:]}">' in page
        elif not target.startswith(("https://", "../", "./")):
            assert runbooks.page(target) is not None, target


def test_the_list_links_every_runbook() -> None:
    page = runbooks.page("")
    assert page is not None
    assert re.findall(r'<li><a href="(\w+)">', page) == ALERTS


@pytest.mark.parametrize(
    "name", ["Nothing", "PlumblineNothing", "../style.css", "..%2Fstyle", "PlumblineDown.md.md", "PlumblineDown/", "Ä"]
)
def test_what_is_no_runbook_is_no_page(name: str) -> None:
    assert runbooks.page(name) is None


def test_markup_in_a_runbook_is_text() -> None:
    given = "a <script>x</script> & `<b>` [<i>](PlumblineDown.md) **<u>**\n\n```sh\necho '<p>'\n```\n"
    assert runbooks.to_html(given) == (
        "<p>a &lt;script&gt;x&lt;/script&gt; &amp; <code>&lt;b&gt;</code> "
        '<a href="PlumblineDown.md">&lt;i&gt;</a> <b>&lt;u&gt;</b></p>'
        '<pre tabindex="0"><code>echo &#x27;&lt;p&gt;&#x27;</code></pre>'
    )


def test_blocks() -> None:
    given = (
        "# One\n\nA line\nand the next:\n- first\n  goes on\n- second\n\n1. one\n2. two\n\n"
        "| a | b |\n| --- | --- |\n| `c` | d \\| e |\n"
    )
    assert runbooks.to_html(given) == (
        "<h1>One</h1><p>A line and the next:</p><ul><li>first goes on</li><li>second</li></ul>"
        "<ol><li>one</li><li>two</li></ol>"
        '<div class="wide" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
        "<tbody><tr><td><code>c</code></td><td>d | e</td></tr></tbody></table></div>"
    )


def test_a_page_of_documentation_is_named_not_linked() -> None:
    assert runbooks.to_html("See [workloads](../../docs/workloads.md).") == (
        "<p>See workloads (<code>docs/workloads.md</code>).</p>"
    )


@pytest.mark.parametrize(
    ("layer", "opened"),
    [("object", "Layer <code>object</code>"), ("osd", "Layers <code>osd</code> and <code>rados</code>")],
)
def test_the_diagnosis_of_the_alerts_own_layer_is_open(layer: str, opened: str) -> None:
    page = runbooks.page("PlumblineCanaryLatencyExtreme", {"layer": layer})
    assert page is not None
    assert page.count('<details open="open">') == 1
    assert f'<details open="open"><summary>{opened}</summary>' in page


def test_without_a_layer_or_with_an_unknown_one_nothing_is_open() -> None:
    for labels in ({}, {"layer": "self"}, {"layer": "../x"}):
        page = runbooks.page("PlumblineCanaryLatencyExtreme", labels)
        assert page is not None
        assert "<details open" not in page
