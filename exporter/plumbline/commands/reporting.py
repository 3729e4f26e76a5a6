"""``plumbline report``: the review of a period from Prometheus; ``plumbline baseline report``: baselines. Both are one
page of HTML or Markdown."""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from plumbline import __version__
from plumbline.baseline.describe import Loaded, show
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.profiles import Hardware, LoadedProfile
from plumbline.baseline.writer import check_target, kept, write_text
from plumbline.commands.compare import lookup
from plumbline.commands.node import Node, this_node
from plumbline.commands.shared import asking_prometheus, say
from plumbline.core.escape import visible
from plumbline.core.proofs import Proof
from plumbline.errors import ConfigError
from plumbline.pages.document import Document
from plumbline.pages.markdown import markdown
from plumbline.pages.templates import render
from plumbline.report.baseline.report import Subject, build, render_html, render_markdown
from plumbline.report.document import as_document
from plumbline.report.gather import gather
from plumbline.report.period import parse_compared, parse_period

HTML, MARKDOWN = "html", "markdown"
_RENDER = {HTML: render_html, MARKDOWN: render_markdown}


def report_period(options: argparse.Namespace) -> int:
    form = _form(options)
    now_s = time.time()
    period = parse_period(first=options.first, last=options.last, days=options.days, now_s=now_s)
    beside = parse_compared(options.beside, period, now_s=now_s) if options.beside else None
    with asking_prometheus(options) as server:
        review = gather(server, period, cluster=options.cluster, made_s=now_s, version=__version__)
        if beside is not None:
            earlier = gather(server, beside, cluster=options.cluster, made_s=now_s, version=__version__)
            review = replace(review, earlier=earlier)
        page = written(as_document(review), form)
    return _write(options, page)


def written(document: Document, form: str) -> str:
    return render("review.html", document=document) if form == HTML else markdown(document)


def report_baselines(options: argparse.Namespace) -> int:
    form = _form(options)
    return _write(options, report(options.names, node=this_node(options), form=form, title=options.title))


def form_of(output: Path | None, asked: str | None) -> str:
    """The form to write: as asked, else by the file's suffix. Raises :class:`ConfigError` when neither is given."""
    if asked is not None:
        return asked
    if output is None:
        raise ConfigError("report", "name an output: --output FILE.html, or --format markdown for the terminal")
    return MARKDOWN if output.suffix.lower() in (".md", ".markdown") else HTML


def _form(options: argparse.Namespace) -> str:
    """The form that the flags ask for; raises, before any work, when the page could not be written."""
    if options.output is not None:
        check_target(options.output, over=_over(options))
    return form_of(options.output, options.format)


def _over(options: argparse.Namespace) -> Proof | None:
    return kept(options.output) if options.force else None


def _write(options: argparse.Namespace, text: str) -> int:
    if options.output is None:
        # a page is a file's content; a terminal must not obey what stands in it
        sys.stdout.write("\n".join(map(visible, text.split("\n"))) if sys.stdout.isatty() else text)
    else:
        backup = write_text(options.output, text, over=_over(options))
        say(f"written to {options.output}" + (f"; the old one is {backup}" if backup else ""))
    return 0


def report(names: Sequence[str], *, node: Node, form: str, title: str | None, made: datetime | None = None) -> str:
    """The report's text. Without names: baselines measured here or for this node, and those that may judge here."""
    loaded = [lookup(name, node) for name in dict.fromkeys(names)] or _of_this_node(node)
    document = build(
        [subject(item) for item in loaded],
        title=title or _hosts(loaded) or node.host,
        made=f"{made or datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        version=__version__,
    )
    return _RENDER[form](document)


def subject(loaded: Loaded) -> Subject:
    if isinstance(loaded, LoadedProfile):
        name = loaded.name
        hardware = tuple((key, _hardware(key, item)) for key, item in loaded.profile.hardware.items())
        return Subject(show(name, {name: loaded}, []), hardware=hardware)
    fingerprint = loaded.file.fingerprint
    return Subject(
        show(loaded.where, {}, [loaded]), fingerprint=tuple(_fingerprint(fingerprint)) if fingerprint else ()
    )


def _of_this_node(node: Node) -> list[Loaded]:
    judging = set(node.config.baseline.judge.values())
    loaded: list[Loaded] = [*node.sites, *(node.profiles[name] for name in node.profiles if name in judging)]
    if not loaded:
        raise ConfigError(
            "report", f"nothing was measured here yet; name a baseline, there are: {', '.join(node.profiles)}"
        )
    return loaded


def _hosts(loaded: Sequence[Loaded]) -> str:
    hosts = [item.file.host for item in loaded if not isinstance(item, LoadedProfile)]
    return ", ".join(dict.fromkeys(filter(None, hosts)))


def _hardware(key: str, item: Hardware) -> str:
    device_class = "" if item.device_class == key else item.device_class
    return ", ".join(filter(None, (device_class, item.model, item.description, item.note)))


def _fingerprint(fingerprint: Fingerprint) -> list[tuple[str, str]]:
    rows = []
    for part in fingerprint.known():
        value = getattr(fingerprint, part.value)
        text = "; ".join(f"{name}: {what}" for name, what in value.items()) if isinstance(value, dict) else str(value)
        rows.append((f"fingerprint {part.value}", text))
    return rows
