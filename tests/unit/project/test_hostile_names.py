"""Names that somebody else gives, of devices, images, pools, files, in everything that shows them; drawn for real."""

from __future__ import annotations

import hashlib
import io
import json
import logging

import pytest
from rich.console import Console

from plumbline.checks.model import Finding, Fix, Keep, Severity
from plumbline.collectors import nic
from plumbline.commands.check import print_findings
from plumbline.commands.disk import Disk, Layer, Use, print_disk, print_disks
from plumbline.commands.shared import print_json
from plumbline.core.console import line, make_console, table
from plumbline.core.escape import visible
from plumbline.core.log_limit import VisibleFormatter
from plumbline.metrics.exposition import Exposition, SkipHook
from plumbline.metrics.rendering import Format, Renderer
from plumbline.metrics.spec import Samples
from plumbline.status.page import render_status
from support import promtool
from support.fake_collectors import fake
from support.scraped import Scrape
from support.status_models import full_model

NAMES = (
    '"><script>alert(1)</script>',
    "back\\slash",
    "new\nline",
    'x"} 1\nplumbline_nic_up{device="forged',
    "carriage\rreturn",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe",  # right to left from here
    "\x00nul",
    "{{ .Values }}",
    "' onmouseover='alert(1)",
    "</textarea><img src=x onerror=alert(1)>",
    "a" * 5000,
    "\udcff",  # a byte that is no UTF-8, as os.fsdecode has it
)

LABELS = {
    "new\nline": r"new\nline",
    'x"} 1\nplumbline_nic_up{device="forged': r'x"} 1\nplumbline_nic_up{device="forged',
    "carriage\rreturn": r"carriage\rreturn",
    "\x1b[2J\x1b]0;title\x07": r"\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe": r"\u202egnp.exe",
    "\x00nul": r"\x00nul",
    "a" * 5000: "a" * 242 + "…~" + hashlib.sha256(b"a" * 5000).hexdigest()[:12],
    "\udcff": r"\xff",
}
"""The label values of those that are not taken as they are."""


def page(name: str, form: Format) -> bytes:
    def collect(_skip: SkipHook) -> Samples:
        yield nic.UP, (name,), 1

    exposition = Exposition(
        [fake("nic", (nic.UP,), collect)], None, clock=lambda: 0.0, logger=logging.getLogger("test")
    )
    return Renderer().render(exposition.scrape(), form)


@pytest.mark.parametrize("name", NAMES)
def test_a_label_is_the_name_in_printable_characters_in_both_formats(name: str) -> None:
    text, openmetrics = page(name, Format.TEXT).decode(), page(name, Format.OPENMETRICS).decode()
    expected = LABELS.get(name, name)
    for scrape in (Scrape.of_text(text), Scrape.of_openmetrics(openmetrics)):
        assert scrape.labels("plumbline_nic_up", "device") == {expected}
        assert scrape.total("plumbline_nic_up") == 1


def test_promtool_takes_them_all() -> None:
    for name in NAMES:
        assert not [each for each in promtool.complaints(page(name, Format.TEXT)) if "parse" in each or "error" in each]


@pytest.mark.parametrize("name", NAMES)
def test_the_status_page_shows_them_as_text(name: str) -> None:
    shown = render_status(full_model(name)).encode("utf-8", "backslashreplace").decode()
    assert "<script" not in shown
    assert "<img" not in shown
    assert "onerror=alert(1)>" not in shown
    assert "' onmouseover='" not in shown


def drawn(act, *, terminal_wide: int | None) -> str:
    stream = io.StringIO()
    if terminal_wide is None:
        act(make_console(stream))
    else:
        act(Console(file=stream, force_terminal=True, width=terminal_wide, color_system=None, highlight=False,
                    markup=False, emoji=False, _environ={"TERM": "xterm"}))  # fmt: skip
    return stream.getvalue()


def finding(name: str) -> Finding:
    fix = Fix(f"ethtool -G {name}", Keep(f"/etc/{name}", name), name)
    return Finding("check", name, Severity.WARNING, False, name, name, name, name, fix)


@pytest.mark.parametrize("wide", [None, 100])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_steers_the_terminal(name: str, wide: int | None) -> None:
    disk = Disk(
        device=name, model=name, serial=name, firmware=name, device_class=name, transport=name, size_bytes=1,
        rotational=None, zoned=None, logical_block_bytes=None, physical_block_bytes=None, scheduler=name,
        queue_requests=None, queue_depth=None, osd=name, lower=(name,), slot=name, slot_lit=None,
            uses=(Use(kind=name, name=name),),
        stack=Layer(device=name, what=name, uses=(Use(kind=name, name=name),), upper=()),
    )  # fmt: skip
    for act in (
        lambda console: line(console, name),
        lambda console: table(console, ("A", "B"), [(name, name)]),
        lambda console: print_findings(console, [finding(name)], every=True),
        lambda console: print_disks(console, [disk]),
        lambda console: print_disk(console, disk),
    ):
        shown = drawn(act, terminal_wide=wide)
        assert not [each for each in shown if each != "\n" and not each.isprintable()], name


@pytest.mark.parametrize("name", NAMES)
def test_a_log_record_stays_one_line(name: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(VisibleFormatter("%(levelname)s %(message)s"))
    logger = logging.Logger("test")
    logger.addHandler(handler)
    logger.warning("disk %s fails", name)
    assert len(stream.getvalue().splitlines()) == 1
    assert stream.getvalue()[:-1].isprintable()


def test_a_traceback_keeps_its_lines_and_nothing_else() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(VisibleFormatter())
    logger = logging.Logger("test")
    logger.addHandler(handler)
    try:
        raise KeyError("\x1b[2J")
    except KeyError:
        logger.exception("it fails")
    lines = stream.getvalue().split("\n")
    assert lines[:2] == ["it fails", "Traceback (most recent call last):"]
    assert "\x1b" not in stream.getvalue()


def test_what_is_visible_stays_as_it_is() -> None:
    assert visible("osd.7 auf „sdé“ – 3 µs") == "osd.7 auf „sdé“ – 3 µs"
    assert visible("a\x1bb\nc\u202e") == "a\\x1bb\\nc\\u202e"


def test_machine_readable_output_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        print_json({"device": name.encode("utf-8", "backslashreplace").decode()})
        said = capsys.readouterr().out
        assert not [each for each in said if each != "\n" and (each < " " or each == "\x7f")]
        assert json.loads(said)["device"] == name.encode("utf-8", "backslashreplace").decode()
