#!/usr/bin/env python3
"""Render the dashboards, or prove that the committed ones are fresh.

Usage: python dashboards/render.py [--check]

Rendering needs Grafonnet below ``dashboards/vendor/`` (``jb install --jsonnetpkg-home=dashboards/vendor``) and
writes ``dashboards/out/<name>.json`` plus ``dashboards/out/manifest.json``: the SHA-256 of every input and output.
``--check`` compares the manifest with the files as they are, which needs no Grafonnet: an input changed without
rendering, or an output changed by hand, is named and the exit code is 1. Where vendor is present everything is
rendered again and compared byte by byte as well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE / "out"
VENDOR = HERE / "vendor"


def dashboards() -> list[Path]:
    """The sources, one dashboard each."""
    return sorted(HERE.glob("*.jsonnet"))


def inputs() -> list[Path]:
    """Every file a rendered dashboard depends on, Grafonnet's pinned version included."""
    found = [*HERE.glob("*.jsonnet"), *HERE.glob("*.libsonnet")]
    found += [*(HERE / "lib").glob("*.libsonnet"), *(HERE / "queries").glob("*.libsonnet")]
    alerts = HERE.parent / "alerts"
    found += [alerts / "config.libsonnet", *(alerts / "config").glob("*.libsonnet")]
    found += (HERE / "panels").glob("*.libsonnet")
    found += [HERE.parent / "jsonnetfile.lock.json"]
    return sorted(found)


def render(source: Path) -> str:
    """One dashboard as canonical JSON text."""
    import _gojsonnet  # noqa: PLC0415  (only rendering needs it; --check works without)

    text = _gojsonnet.evaluate_file(str(source), jpathdir=[str(VENDOR)])
    return json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def manifest() -> dict[str, dict[str, str]]:
    """SHA-256 of inputs and outputs, by path relative to the repository."""
    root = HERE.parent
    outputs = sorted(path for path in OUT.glob("*.json") if path.name != "manifest.json")
    return {
        "inputs": {str(path.relative_to(root)): _sha256(path) for path in inputs()},
        "outputs": {str(path.relative_to(root)): _sha256(path) for path in outputs},
    }


def write() -> int:
    """Render everything; files of dashboards that no longer exist go away."""
    if not VENDOR.is_dir():
        print("dashboards/vendor is missing: run `jb install --jsonnetpkg-home=dashboards/vendor`", file=sys.stderr)
        return 1
    OUT.mkdir(exist_ok=True)
    wanted = {}
    for source in dashboards():
        text = render(source)
        wanted[f"{json.loads(text)['uid']}.json"] = text
    for old in OUT.glob("*.json"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (OUT / name).write_text(text, "utf-8")
        print(f"wrote {(OUT / name).relative_to(HERE.parent)}")
    (OUT / "manifest.json").write_text(json.dumps(manifest(), indent=2, sort_keys=True) + "\n", "utf-8")
    return 0


def check() -> int:
    """0 when everything is fresh; else 1, and a line for every file that is not."""
    try:
        recorded = json.loads((OUT / "manifest.json").read_text("utf-8"))
    except FileNotFoundError:
        print("dashboards/out/manifest.json is missing: run `make render`", file=sys.stderr)
        return 1
    stale = _differences(recorded, manifest())
    if not stale and VENDOR.is_dir():
        for source in dashboards():
            text = render(source)
            path = OUT / f"{json.loads(text)['uid']}.json"
            if not path.exists() or path.read_text("utf-8") != text:
                stale.append(f"{path.relative_to(HERE.parent)} differs from what {source.name} renders to")
    for line in stale:
        print(f"stale: {line}; run `make render`", file=sys.stderr)
    return 1 if stale else 0


def _differences(recorded: dict[str, dict[str, str]], actual: dict[str, dict[str, str]]) -> list[str]:
    lines = []
    for part in ("inputs", "outputs"):
        before, now = recorded.get(part, {}), actual[part]
        lines += [f"{path} changed" for path in sorted(before.keys() & now.keys()) if before[path] != now[path]]
        lines += [f"{path} is new" for path in sorted(now.keys() - before.keys())]
        lines += [f"{path} is gone" for path in sorted(before.keys() - now.keys())]
    return lines


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    sys.exit(check() if parser.parse_args().check else write())
