#!/usr/bin/env python3
"""Render mixin.libsonnet: rules and alerts to ``alerts/out``, dashboards to ``dashboards/out``; those rules and alerts
that read native histograms to ``alerts/out-native``.

The output depends on the jsonnet sources alone: same input, same bytes. Each folder has a manifest with the SHA-256 of
what went in and what came out. ``--check`` renders in memory, prints a diff and exits 1 where a file is stale.

``--site FILE --out DIR`` renders a site's own copy: rules to DIR, dashboards to DIR/dashboards. FILE is jsonnet that is
added to the mixin, for example ``{ _config+:: { dashboardBaseUrl: 'https://grafana.example.org' } }``.

Dashboards need Grafonnet below ``dashboards/vendor`` (``jb install --jsonnetpkg-home=dashboards/vendor``). Without it a
site gets its rules alone, and ``--check`` compares the dashboards with their manifest.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

try:
    import _gojsonnet
    import yaml
except ModuleNotFoundError as error:
    sys.exit(f"render.py: this Python has no module {error.name}: make render and make site use one that has it")

ROOT = Path(__file__).resolve().parent
VENDOR = ROOT / "dashboards" / "vendor"
NO_GRAFONNET = (
    "dashboards/vendor is missing, dashboards are not rendered: run `jb install --jsonnetpkg-home=dashboards/vendor`"
)
MANIFEST = "manifest.json"
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
    """File name → text of one part, its manifest included. Raise :class:`RenderError` for a mistake in the jsonnet."""
    read = {_lock().name: _lock().read_bytes()} if part == "dashboards" else {}

    def load(directory: str, name: str) -> tuple[str, bytes]:
        path = Path(directory) / name
        if not path.exists():
            path = VENDOR / name
        content = path.read_bytes()
        path = path.resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(VENDOR):
            read[path.relative_to(ROOT).as_posix()] = content
        return str(path), content

    addition = f" + (import {json.dumps(str(site.resolve()))})" if site else ADDED.get(part, "")
    snippet = f"local mixin = (import {json.dumps(str(ROOT / 'mixin.libsonnet'))}){addition}; {FIELDS[part]}"
    try:
        content = json.loads(_gojsonnet.evaluate_snippet("render", snippet, import_callback=load))
    except RuntimeError as error:
        raise RenderError(str(error).strip()) from error
    if part != "dashboards":
        files = {f"plumbline-{kind}.yaml": _rules(groups) for kind, groups in sorted(content.items())}
    else:
        files = {name: _json(dashboard) for name, dashboard in sorted(content.items())}
    manifest = {"inputs": _hashes(read), "outputs": _hashes({name: text.encode() for name, text in files.items()})}
    return files | {MANIFEST: json.dumps(manifest, indent=2) + "\n"}


def _lock() -> Path:
    """Which Grafonnet: what is below ``dashboards/vendor`` is its content."""
    return ROOT / "jsonnetfile.lock.json"


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}


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
        return _unlike_manifest(present)
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


def _unlike_manifest(present: dict[str, str]) -> str:
    """A line for each file that is not as it was when the dashboards were rendered last."""
    recorded = json.loads(present.pop(MANIFEST, '{"inputs": {}, "outputs": {}}'))
    inputs = {name: (ROOT / name).read_bytes() for name in recorded["inputs"] if (ROOT / name).exists()}
    now = _hashes(inputs) | _hashes({name: text.encode() for name, text in present.items()})
    before = recorded["inputs"] | recorded["outputs"]
    return "".join(f"{name} changed\n" for name in sorted(before | now) if before.get(name) != now.get(name))


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
            print(f"render.py: {NO_GRAFONNET}", file=sys.stderr)
            return 1
        files = render(part)
        write(files, OUT[part])
        for path in OUT[part].iterdir():
            if path.name not in files:
                path.unlink()
    return 0


def _render_site(parts: Iterable[str], site: Path, out: Path) -> int:
    """Grafana would take a manifest beside dashboards for a dashboard, so a site has none there."""
    for part in parts:
        if part != "dashboards":
            write(render(part, site), out)
        elif not VENDOR.is_dir():
            print(f"render.py: {NO_GRAFONNET}", file=sys.stderr)
        else:
            files = {name: text for name, text in render(part, site).items() if name != MANIFEST}
            if files:
                write(files, out / "dashboards")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
