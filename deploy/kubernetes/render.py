#!/usr/bin/env python3
"""Wrap the rendered rules and dashboards for Kubernetes: PrometheusRule objects and ConfigMaps.

kustomize reads nothing outside its own folder and can't make a PrometheusRule of a rule file, so this writes
``components/*/generated/`` from ``alerts/out`` and ``dashboards/out`` (or a site's own rendering, ``--rules DIR``).
Nothing of it is committed. It needs Python 3.9 and nothing else.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = Path(__file__).resolve().parent / "components"
APPLIED_MAX = 256 * 1024
"""What ``kubectl apply`` may remember of an object in its annotation (TotalAnnotationSizeLimitB of Kubernetes)."""
LABEL = "app.kubernetes.io/name: plumbline"


class RenderError(Exception):
    """One line: what is wrong, and where."""


def parts(name: str, text: str) -> dict[str, str]:
    """Name → rule file: as few as kubectl takes as objects, each group whole, in their order."""
    head, *groups = re.split(r"(?m)^(?=- name: )", text)
    files: list[str] = []
    for group in groups:
        if files and applied_size(rule(name, files[-1] + group)) <= APPLIED_MAX:
            files[-1] += group
        else:
            files.append(head + group)
    return {name if number == 1 else f"{name}-{number}": file for number, file in enumerate(files, 1)}


def rule(name: str, groups: str) -> str:
    """A PrometheusRule around a rule file's own text, which begins with comments and ``groups:``."""
    head = (
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n"
        f"metadata:\n  name: {name}\n  labels: {{{LABEL}}}\n"
    )
    return head + "spec:\n" + indented(groups, 2)


def dashboard(name: str, page: str, *, folder: str) -> str:
    """A ConfigMap that Grafana's sidecar takes; the page without its white space."""
    text = json.dumps(json.loads(page), separators=(",", ":"), ensure_ascii=False)
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"
        f'  labels: {{{LABEL}, grafana_dashboard: "1"}}\n'
        f"  annotations: {{grafana_folder: {folder}}}\n"
        f"data:\n  {name}.json: |\n    {text}\n"
    )


def indented(text: str, columns: int) -> str:
    """Every line that isn't empty, further to the right."""
    return "".join((" " * columns + line if line.strip() else line) for line in text.splitlines(keepends=True))


def applied_size(text: str) -> int:
    """Bytes of the object as JSON, as ``kubectl apply`` remembers it: quotes and ends of lines take two bytes, and Go
    writes ``<``, ``>`` and ``&`` in six. What YAML indents is no part of it, up to where the text of a rule begins."""
    lines = (line[min(8, len(line) - len(line.lstrip())) :] for line in text.splitlines())
    return len(json.dumps("\n".join(lines), ensure_ascii=False).encode()) + 5 * sum(map(text.count, "<>&"))


def rendered(rules: Path, dashboards: Path, *, folder: str = "Plumbline") -> dict[str, str]:
    """Path below ``components/`` → text. Raise :class:`RenderError` for what is missing or too large for Kubernetes."""
    objects: dict[str, str] = {}
    pages: dict[str, str] = {}
    for path in sorted(rules.glob("*.yaml")):
        objects |= {name: rule(name, part) for name, part in parts(path.stem, path.read_text("utf-8")).items()}
    for path in sorted(dashboards.glob("plumbline-*.json")):
        pages[f"{path.stem}.yaml"] = dashboard(path.stem, path.read_text("utf-8"), folder=folder)
    if not objects or not pages:
        raise RenderError(f"no rules in {rules}, or no dashboards in {dashboards}")
    found: dict[str, str] = {}
    rule_files = {f"{name}.yaml": text for name, text in objects.items()}
    for component, files in (("prometheus-operator", rule_files), ("dashboards", pages)):
        listed = "".join(f"  - {name}\n" for name in files)
        files["kustomization.yaml"] = (
            f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{listed}"
        )
        found |= {f"{component}/generated/{name}": text for name, text in files.items()}
    for name, text in found.items():
        size = applied_size(text)
        if size > APPLIED_MAX:
            raise RenderError(f"{name}: {size} bytes; kubectl apply takes {APPLIED_MAX}")
    return found


def main(argv: list[str]) -> int:
    """Exit status: 0 written, 1 nothing written, with one line that says why."""
    parser = argparse.ArgumentParser(prog="deploy/kubernetes/render.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rules", type=Path, default=ROOT / "alerts" / "out", help="rule files (default: alerts/out)")
    parser.add_argument("--dashboards", type=Path, default=ROOT / "dashboards" / "out", help="pages as JSON")
    parser.add_argument("--folder", default="Plumbline", help="Grafana's folder")
    parser.add_argument("--out", type=Path, default=COMPONENTS, help="the components' folder")
    arguments = parser.parse_args(argv)
    try:
        files = rendered(arguments.rules, arguments.dashboards, folder=arguments.folder)
    except (RenderError, OSError, ValueError) as error:
        print(f"deploy/kubernetes/render.py: {error}", file=sys.stderr)
        return 1
    for name, text in files.items():
        path = arguments.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
