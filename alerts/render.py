#!/usr/bin/env python3
"""Render the mixin's rules to YAML: ``alerts/out/plumbline-{rules,alerts}.yaml`` and a manifest of what went in.

The output depends on the jsonnet sources alone: same input, same bytes. ``--check`` renders in memory, prints a
diff and exits 1 where the committed files are stale. ``--site FILE --out DIR`` renders a site's own copy: FILE is
jsonnet that is added to the mixin, for example ``{ _config+:: { dashboardBaseUrl: 'https://grafana.example.org' } }``.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    import _gojsonnet
    import yaml
except ModuleNotFoundError as error:
    sys.exit(f"alerts/render.py: this Python has no module {error.name}: make render and make site use one that has it")

ROOT = Path(__file__).resolve().parent.parent
MIXIN = "mixin.libsonnet"
FIELDS = ("record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations")
"""The order in which a rule reads best."""
GROUP_FIELDS = ("name", "interval")
HEADER = "# Generated from mixin.libsonnet by alerts/render.py; edit the jsonnet, not this file.\n"


class RenderError(Exception):
    """Jsonnet's own message: file, line and what is wrong there."""


class _Dumper(yaml.SafeDumper):
    """Expressions of several lines as literal blocks, and no anchors: a person reads this."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  (the signature is PyYAML's)
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def render(root: Path, site: Path | None = None) -> dict[str, str]:
    """File name → text. Raise :class:`RenderError` for a mistake in the jsonnet."""
    read: dict[str, bytes] = {}

    def load(directory: str, name: str) -> tuple[str, bytes]:
        path = (Path(directory) / name).resolve()
        content = path.read_bytes()
        if path.is_relative_to(root):
            read[path.relative_to(root).as_posix()] = content
        return str(path), content

    addition = f" + (import {json.dumps(str(site.resolve()))})" if site else ""
    snippet = (
        f"local mixin = (import {json.dumps(str(root / MIXIN))}){addition};"
        "{ rules: mixin.prometheusRules, alerts: mixin.prometheusAlerts }"
    )
    try:
        text = _gojsonnet.evaluate_snippet("render", snippet, import_callback=load)
    except RuntimeError as error:
        raise RenderError(str(error).strip()) from error
    rendered = {f"plumbline-{kind}.yaml": _to_yaml(groups) for kind, groups in json.loads(text).items()}
    rendered = dict(sorted(rendered.items()))
    manifest = {"inputs": _hashes(read), "outputs": _hashes({k: v.encode() for k, v in rendered.items()})}
    return rendered | {"manifest.json": json.dumps(manifest, indent=2) + "\n"}


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}


def _to_yaml(groups: Mapping[str, Any]) -> str:
    ordered = {
        "groups": [
            {
                **{key: group[key] for key in GROUP_FIELDS if key in group},
                "rules": [_ordered(rule) for rule in group["rules"]],
            }
            for group in groups["groups"]
        ]
    }
    body = yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**16)
    return HEADER + body


def _ordered(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {field: rule[field] for field in FIELDS if field in rule}


def stale(rendered: Mapping[str, str], directory: Path) -> str:
    """A unified diff from what stands in ``directory`` to what should; empty when it is fresh."""
    diffs: list[str] = []
    present = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    for name in sorted(present | rendered.keys()):
        old = (directory / name).read_text("utf-8") if name in present else ""
        diffs += difflib.unified_diff(
            old.splitlines(keepends=True),
            rendered.get(name, "").splitlines(keepends=True),
            f"{directory.name}/{name} (on disk)",
            f"{directory.name}/{name} (rendered)",
        )
    return "".join(diffs)


def main(argv: list[str]) -> int:
    """Exit status: 0 written or fresh, 1 stale, 2 the jsonnet doesn't evaluate."""
    parser = argparse.ArgumentParser(prog="alerts/render.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; diff and exit 1 when files are stale")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "alerts" / "out", help="where to write (default: alerts/out)"
    )
    parser.add_argument("--site", type=Path, help="jsonnet added to the mixin; needs its own --out")
    arguments = parser.parse_args(argv)
    if arguments.site and arguments.out == ROOT / "alerts" / "out":
        parser.error("--site needs --out DIR: alerts/out holds the defaults")
    try:
        rendered = render(ROOT, arguments.site)
    except RenderError as error:
        print(f"alerts/render.py: {error}", file=sys.stderr)
        return 2
    if arguments.check:
        diff = stale(rendered, arguments.out)
        if diff:
            print(diff, end="")
            print("alerts/render.py: stale; run alerts/render.py and commit the result", file=sys.stderr)
        return 1 if diff else 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, text in rendered.items():
        (arguments.out / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
