#!/usr/bin/env python3
"""Render mixin.libsonnet: rules and alerts to ``alerts/out``, dashboards to ``dashboards/out``; those rules and alerts
that read native histograms to ``alerts/out-native``.

The output depends on the jsonnet sources alone: same input, same bytes. ``--check`` renders in memory, prints a diff
and exits 1 where a file is stale.

``--site FILE --out DIR`` renders a site's own copy: rules to DIR, dashboards to DIR/dashboards. FILE is jsonnet that is
added to the mixin, for example ``{ _config+:: { dashboardBaseUrl: 'https://grafana.example.org' } }``.

Dashboards need Grafonnet below ``dashboards/vendor`` (``make grafonnet``). Without it they are left out.
``dashboards/out/manifest.json`` has for each page the files and the values of ``_config`` that it was rendered from, so
that ``--check`` still knows which pages are stale.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

# Go reads it when the interpreter is loaded. Collecting garbage at its usual pace is two fifths of the time to render.
os.environ.setdefault("GOGC", "800")
try:
    import _gojsonnet
    import rjsonnet
    import yaml
except ModuleNotFoundError as error:
    sys.exit(f"render.py: this Python has no module {error.name}: make render and make site use one that has it")

ROOT = Path(__file__).resolve().parent
VENDOR = ROOT / "dashboards" / "vendor"
NO_GRAFONNET = "dashboards are not rendered without Grafonnet: run `make grafonnet`"
MANIFEST = "manifest.json"
"""Of the pages only: all else can always be rendered."""
CONFIG = f"(import {json.dumps(str(ROOT / 'alerts' / 'config.libsonnet'))})._config"
OUT = {
    "rules": ROOT / "alerts" / "out",
    "native-rules": ROOT / "alerts" / "out-native",
    "dashboards": ROOT / "dashboards" / "out",
}
_RULES = "{ rules: mixin.prometheusRules, alerts: mixin.prometheusAlerts }"
FIELDS = {"rules": _RULES, "native-rules": _RULES, "dashboards": "mixin.grafanaDashboards"}
ADDED = {"native-rules": " + { _config+:: { histograms: 'native' } }"}
"""What a part adds to the mixin."""
SITE_PARTS = ("rules", "dashboards")
"""A site says in its own file which histograms it has."""
# The order in which a rule reads best.
RULE_FIELDS = ("record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations")
GROUP_FIELDS = ("name", "interval")
HEADER = "# Generated from mixin.libsonnet by render.py; edit the jsonnet, not this file.\n"


class RenderError(Exception):
    """Jsonnet's own message: file, line and what is wrong there."""


class _Dumper(yaml.SafeDumper):
    """Expressions of several lines as literal blocks, and no anchors: a person reads this."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  (the signature is PyYAML's)
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def render(part: str, site: Path | None = None) -> dict[str, str]:
    """File name → text of one part; the committed pages with their manifest. Raise :class:`RenderError`."""
    if part == "dashboards" and site is None:
        return _pages()
    addition = f" + (import {json.dumps(str(site.resolve()))})" if site else ADDED.get(part, "")
    snippet = f"local mixin = (import {json.dumps(str(ROOT / 'mixin.libsonnet'))}){addition}; {FIELDS[part]}"
    if part == "dashboards":
        return {name: _json(dashboard) for name, dashboard in sorted(_evaluate(snippet).items())}
    content = evaluate_rules(snippet)
    if site is None:
        _require_runbooks(content["alerts"])
    return {f"plumbline-{kind}.yaml": _rules(groups) for kind, groups in sorted(content.items())}


def evaluate_rules(snippet: str) -> Any:
    """The value of a snippet without Grafonnet, by Jsonnet in Rust: the rules take it a fortieth of the time that Go's
    takes, a page did not end in two minutes."""
    try:
        return json.loads(rjsonnet.evaluate_snippet("render", snippet))
    except RuntimeError as error:
        raise RenderError(_message(str(error).strip())) from error


def _evaluate(snippet: str, files: dict[str, bytes] | None = None, **natives: tuple[tuple[str, ...], Any]) -> Any:
    """The value of a snippet, by Jsonnet in Go. ``files`` receives our own files that it imports: path below the root →
    content."""

    def load(directory: str, name: str) -> tuple[str, bytes]:
        path = Path(directory) / name
        if not path.exists():
            path = VENDOR / name
        content = path.read_bytes()
        path = path.resolve()
        if files is not None and path.is_relative_to(ROOT) and not path.is_relative_to(VENDOR.resolve()):
            files[path.relative_to(ROOT).as_posix()] = content
        return str(path), content

    try:
        text = _gojsonnet.evaluate_snippet("render", snippet, import_callback=load, native_callbacks=natives)
    except RuntimeError as error:
        raise RenderError(_message(str(error).strip())) from error
    return json.loads(text)


def _message(text: str) -> str:
    """Our own errors name an alert or a key, and need no jsonnet stack."""
    first = re.sub("^(RUNTIME ERROR|runtime error|assert failed): ", "", text.partition("\n")[0])
    return first if first.startswith(("Plumbline", "_config")) else text


def _require_runbooks(groups: Mapping[str, Any]) -> None:
    for rule in (rule for group in groups["groups"] for rule in group["rules"]):
        path = Path("alerts", "runbooks", f"{rule['alert']}.md")
        if not (ROOT / path).exists():
            raise RenderError(f"{rule['alert']} has no runbook: write {path}")


def _pages() -> dict[str, str]:
    """The pages and their manifest. Each is evaluated by itself, to know which files and which values it reads."""
    config = _evaluate(CONFIG)
    known = dict(_leaves(config))
    mixin = (
        f"({{ _config:: {_recording(config)} }} + (import {json.dumps(str(ROOT / 'dashboards/dashboards.libsonnet'))}))"
    )
    pages: dict[str, str] = {}
    manifest: dict[str, Any] = {"files": {}, "pages": {}}
    for name in _evaluate(f"std.objectFields({mixin}.grafanaDashboards)"):
        files = {_lock().name: _lock().read_bytes()}
        values: dict[str, Any] = {}
        read = (("path",), lambda path, values=values: values.setdefault(path, known[path]))
        page = _evaluate(f"{mixin}.grafanaDashboards[{json.dumps(name)}]", files, read=read)
        pages[name] = _json(page)
        manifest["files"] |= _hashes(files)
        manifest["pages"][name] = {"sha256": _digest(pages[name]), "files": sorted(files), "values": values}
    return pages | {MANIFEST: json.dumps(manifest, indent=1, sort_keys=True) + "\n"}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of everything in the configuration that is no object; a list is one value."""
    if not isinstance(value, dict):
        yield path, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{path}.{key}" if path else key)


def _recording(value: Any, path: str = "") -> str:
    """The configuration as jsonnet that calls ``read`` for each value that is used."""
    if not isinstance(value, dict):
        return f"std.native('read')({json.dumps(path)})"
    fields = (
        f"{json.dumps(key)}: {_recording(inner, f'{path}.{key}' if path else key)}" for key, inner in value.items()
    )
    return "{ " + ", ".join(fields) + " }"


def _lock() -> Path:
    """Which Grafonnet: what is below ``dashboards/vendor`` is its content."""
    return ROOT / "jsonnetfile.lock.json"


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: _digest(content) for name, content in files.items()}


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _json(dashboard: Mapping[str, Any]) -> str:
    return json.dumps(dashboard, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _rules(groups: Mapping[str, Any]) -> str:
    ordered = {
        "groups": [
            {**_ordered(group, GROUP_FIELDS), "rules": [_ordered(rule, RULE_FIELDS) for rule in group["rules"]]}
            for group in groups["groups"]
        ]
    }
    body = yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**16)
    return HEADER + body


def _ordered(node: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {field: node[field] for field in fields if field in node}


def stale(part: str, folder: Path) -> str:
    """What differs between ``folder`` and what should be in it; empty when it is fresh."""
    present = {path.name: path.read_text("utf-8") for path in folder.iterdir()} if folder.is_dir() else {}
    if part == "dashboards" and not VENDOR.is_dir():
        return stale_pages(present)
    wanted = render(part)
    diffs: list[str] = []
    for name in sorted(present | wanted):
        diffs += difflib.unified_diff(
            present.get(name, "").splitlines(keepends=True),
            wanted.get(name, "").splitlines(keepends=True),
            f"{folder.parent.name}/{folder.name}/{name} (on disk)",
            f"{folder.parent.name}/{folder.name}/{name} (rendered)",
        )
    return "".join(diffs)


def stale_pages(present: Mapping[str, str]) -> str:
    """Of pages that cannot be rendered here: one line that names those that read what has changed; empty: none."""
    manifest = json.loads(present.get(MANIFEST, '{"files": {}, "pages": {}}'))
    now = dict(_leaves(_evaluate(CONFIG)))
    hashes = _hashes({name: (ROOT / name).read_bytes() for name in manifest["files"] if (ROOT / name).exists()})
    changed: dict[str, None] = {}
    pages = sorted((present.keys() | manifest["pages"].keys()) - {MANIFEST})
    names = []
    for name in pages:
        page = manifest["pages"].get(name, {"sha256": "", "files": [], "values": {}})
        reasons = [file for file in page["files"] if hashes.get(file) != manifest["files"][file]]
        reasons += [
            f"{path}: {json.dumps(before)} is now {json.dumps(now.get(path))}"
            for path, before in page["values"].items()
            if now.get(path) != before
        ]
        if _digest(present.get(name, "")) != page["sha256"]:
            reasons.append(f"dashboards/out/{name} itself")
        if reasons:
            names.append(name)
            changed |= dict.fromkeys(reasons)
    if not names:
        return ""
    return f"stale pages: {', '.join(names)} (changed: {', '.join(changed)}): {NO_GRAFONNET}\n"


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write the files that are not there yet as they should be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def main(argv: list[str]) -> int:
    """Exit status: 0 written or fresh, 1 stale or not rendered, 2 the jsonnet doesn't evaluate."""
    parser = argparse.ArgumentParser(prog="render.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; diff and exit 1 when files are stale")
    parser.add_argument("--only", choices=list(OUT), help="one of the parts alone")
    parser.add_argument("--site", type=Path, help="jsonnet added to the mixin; needs --out")
    parser.add_argument("--out", type=Path, help="where a site's files go: rules there, dashboards in its dashboards/")
    arguments = parser.parse_args(argv)
    if (arguments.site is None) != (arguments.out is None) or (arguments.site and arguments.check):
        parser.error("--site and --out go together, without --check: the committed folders hold the defaults")
    parts = [arguments.only] if arguments.only else list(SITE_PARTS if arguments.site else OUT)
    try:
        if arguments.check:
            return _check(parts)
        if arguments.site:
            return _render_site(parts, arguments.site, arguments.out)
        return _render_defaults(parts)
    except RenderError as error:
        print(f"render.py: {error}", file=sys.stderr)
        return 2


def _check(parts: Iterable[str]) -> int:
    diff = "".join(stale(part, OUT[part]) for part in parts)
    if diff:
        print(diff, end="")
        print("render.py: stale; run `make render` and commit the result", file=sys.stderr)
    return 1 if diff else 0


def _render_defaults(parts: Iterable[str]) -> int:
    """The committed folders hold what is rendered and nothing else."""
    for part in parts:
        if part == "dashboards" and not VENDOR.is_dir():
            present = {path.name: path.read_text("utf-8") for path in OUT[part].iterdir()}
            print(f"render.py: {stale_pages(present).strip() or 'no page reads what has changed'}", file=sys.stderr)
            continue
        files = render(part)
        write(files, OUT[part])
        for path in OUT[part].iterdir():
            if path.name not in files:
                path.unlink()
    return 0


def _render_site(parts: Iterable[str], site: Path, out: Path) -> int:
    """Without Grafonnet a site gets its rules alone."""
    for part in parts:
        if part != "dashboards":
            write(render(part, site), out)
        elif not VENDOR.is_dir():
            print(f"render.py: {NO_GRAFONNET}", file=sys.stderr)
        else:
            write(render(part, site), out / "dashboards")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
