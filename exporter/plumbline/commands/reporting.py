"""``plumbline baseline report``: which baselines, in which form, and where to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from plumbline import __version__
from plumbline.baseline import describe
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.lookup import Loaded, name_of
from plumbline.baseline.profiles import Hardware, LoadedProfile
from plumbline.baseline.writer import check_target, write_text
from plumbline.commands.comparing import lookup
from plumbline.commands.node import Node
from plumbline.config.workloads import load_catalogue
from plumbline.errors import ConfigError
from plumbline.report.baseline.model import Subject, build
from plumbline.report.baseline.render import render_html, render_markdown

HTML, MARKDOWN = "html", "markdown"
_RENDER = {HTML: render_html, MARKDOWN: render_markdown}


def form_of(output: Path | None, asked: str | None) -> str:
    """The form to write: as asked, else by the file's suffix. Raises :class:`ConfigError` when neither is given."""
    if asked is not None:
        return asked
    if output is None:
        raise ConfigError("report", "say where to: --output FILE.html, or --format markdown for the terminal")
    return MARKDOWN if output.suffix.lower() in (".md", ".markdown") else HTML


def check_output(output: Path | None, *, force: bool) -> None:
    """Raises :class:`BaselineError` where :func:`write_text` would refuse."""
    if output is not None:
        check_target(output, force=force)


def report(names: Sequence[str], *, node: Node, form: str, title: str | None, made: datetime | None = None) -> str:
    """The report's text. Without names: baselines measured here or for this node, and those that may judge here."""
    loaded = [lookup(name, node) for name in dict.fromkeys(names)] or _of_this_node(node)
    found = build(
        [subject(each) for each in loaded],
        load_catalogue(),
        title=title or _hosts(loaded) or node.host,
        made=f"{made or datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        version=__version__,
    )
    return _RENDER[form](found)


def write(output: Path, text: str, *, force: bool) -> Path | None:
    """Write atomically; returns where the file it replaces is kept."""
    return write_text(output, text, force=force)


def subject(loaded: Loaded) -> Subject:
    """One baseline, with what it was measured on."""
    if isinstance(loaded, LoadedProfile):
        name = name_of(loaded)
        hardware = tuple((key, _hardware(key, each)) for key, each in loaded.profile.hardware.items())
        return Subject(describe.show(name, {name: loaded}, []), hardware=hardware)
    fingerprint = loaded.file.fingerprint
    return Subject(
        describe.show(loaded.where, {}, [loaded]), fingerprint=tuple(_fingerprint(fingerprint)) if fingerprint else ()
    )


def _of_this_node(node: Node) -> list[Loaded]:
    judging = set(node.config.baseline.judge.values())
    found: list[Loaded] = [*node.sites, *(node.profiles[name] for name in node.profiles if name in judging)]
    if not found:
        known = ", ".join(node.profiles)
        raise ConfigError("report", f"nothing was measured here yet; name what to report, there are: {known}")
    return found


def _hosts(loaded: Sequence[Loaded]) -> str:
    hosts = [each.file.host for each in loaded if not isinstance(each, LoadedProfile)]
    return ", ".join(dict.fromkeys(filter(None, hosts)))


def _hardware(key: str, each: Hardware) -> str:
    device_class = "" if each.device_class == key else each.device_class
    return ", ".join(filter(None, (device_class, each.model, each.description, each.note)))


def _fingerprint(found: Fingerprint) -> list[tuple[str, str]]:
    said = []
    for part in found.known():
        value = getattr(found, part.value)
        text = "; ".join(f"{name}: {what}" for name, what in value.items()) if isinstance(value, dict) else str(value)
        said.append((f"fingerprint {part.value}", text))
    return said
