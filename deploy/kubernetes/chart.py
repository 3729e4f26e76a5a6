"""Write the Helm chart: the objects of ``base`` and ``components``, each component behind a value of its name.

Usage: python -m deploy.kubernetes.chart [--out DIR]

``chart/`` has what is written by hand: values, helpers, notes. A component's patch becomes ``{{ if }}`` in the object
that it patches, in the order of :data:`ORDER`. Of kustomize only what these folders use is understood; all else is
refused. The Namespace is left out: Helm makes it itself (``--create-namespace``) and refuses one that is already there.
Nothing of it is committed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from deploy.kubernetes import render
from deploy.packages.folders import SUMS, make_empty, sums
from deploy.packages.project import ROOT, BuildError, project_version

HERE = Path(__file__).resolve().parent
ORDER = ("prometheus-operator", "dashboards", "rook", "disk-latency", "devices", "web-config", "network-policy")
"""Of the patches, as the overlays list the components: a later one has the last word."""
_KEYS = {"volumeMounts": "mountPath"}
"""What makes two items of a list the same one, where it is not ``name``; as in Kubernetes' own types."""


class ChartError(Exception):
    """One line: what the chart can't express, and where."""


@dataclass(frozen=True, slots=True)
class Go:
    """A value in Helm's template language."""

    text: str


@dataclass(frozen=True, slots=True)
class When:
    """A value that stands under a condition, and what stands there else; None: nothing."""

    condition: str
    then: Any
    otherwise: Any = None


def merged(old: Any, new: Any, condition: str, field: str = "") -> Any:
    """A strategic merge patch of one value: mappings and lists of named items go into each other, else ``new`` wins."""
    if isinstance(new, dict) and isinstance(old, dict):
        result = dict(old)
        for key, value in new.items():
            result[key] = merged(old[key], value, condition, key) if key in old else When(condition, value)
        return result
    if isinstance(new, list) and isinstance(old, list) and all(isinstance(item, dict) for item in new):
        by = _KEYS.get(field, "name")
        items = list(old)
        for patch in new:
            at = [n for n, item in enumerate(items) if isinstance(item, dict) and item[by] == patch[by]]
            if at:
                items[at[0]] = merged(items[at[0]], patch, condition)
            else:
                items.append(When(condition, patch))
        return items
    if isinstance(old, When) and isinstance(new, dict):
        raise ChartError(f"{field}: patched by two components, which the chart can't tell apart")
    return old if new == old else When(condition, new, old)


def operated(document: dict[str, Any], operation: dict[str, Any], condition: str) -> None:
    """One operation of a JSON patch, ``add`` or ``replace``; https://www.rfc-editor.org/rfc/rfc6902."""
    *steps, last = operation["path"].lstrip("/").split("/")
    node: Any = document
    for step in steps:
        node = node[int(step)] if isinstance(node, list) else node[step]
    if operation["op"] == "add" and isinstance(node, list) and last == "-":
        node.append(When(condition, operation["value"]))
    elif operation["op"] == "add" and isinstance(node, dict) and last not in node:
        node[last] = When(condition, operation["value"])
    elif operation["op"] == "replace" and isinstance(node, dict):
        node[last] = When(condition, operation["value"], node[last])
    else:
        raise ChartError(f"{operation['op']} {operation['path']}: not understood")


def text_of(node: Any, indent: int = 0) -> Iterator[str]:
    """The lines of a mapping or list as a template. A key that is a template itself brings its own entries."""
    entries = node.items() if isinstance(node, dict) else ((None, item) for item in node)
    for key, value in entries:
        yield from _entry("-" if key is None else f"{key}:", value, indent)


def _entry(head: str, value: Any, indent: int) -> Iterator[str]:
    space = " " * indent
    if head.startswith("{{"):
        yield space + head.removesuffix(":")
    elif isinstance(value, When):
        word = "if"
        while isinstance(value, When) and value.then is not None:
            yield f"{space}{{{{- {word} {value.condition} }}}}"
            yield from _entry(head, value.then, indent)
            value, word = value.otherwise, "else if"
        if isinstance(value, When):
            yield f"{space}{{{{- {word} not ({value.condition}) }}}}"
            value = value.otherwise
        elif value is not None:
            yield f"{space}{{{{- else }}}}"
        if value is not None:
            yield from _entry(head, value, indent)
        yield f"{space}{{{{- end }}}}"
    elif isinstance(value, Go):
        yield f"{space}{head} {value.text}"
    elif isinstance(value, dict | list) and value:
        yield space + head
        yield from text_of(value, indent + 2)
    else:
        yield f"{space}{head} {json.dumps(value, ensure_ascii=False)}"


def enabled(component: str) -> str:
    """The condition under which a component's objects and patches stand."""
    return f'index .Values.components "{component}"'


def objects(files: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Every object with its component ("": always there), patched. What a template includes goes to ``files``."""
    known = {path.parent.name for path in HERE.glob("components/*/kustomization.yaml")}
    if known != set(ORDER):
        raise ChartError(f"components/ and ORDER differ: {', '.join(sorted(known ^ set(ORDER)))}")
    found = [("", each) for each in _resources(HERE / "base") if each["kind"] != "Namespace"]
    for name in ORDER:
        found += [(name, each) for each in _resources(HERE / "components" / name)]
    found += [("prometheus-operator", each) for each in rules(files)]
    found += [("dashboards", each) for each in dashboards(files)]
    for name in ORDER:
        for patch in _kustomization(HERE / "components" / name).get("patches", []):
            for content, target in _patches(HERE / "components" / name, patch):
                found = [(owner, _patched(each, content, target, enabled(name))) for owner, each in found]
    return found


def rules(files: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The PrometheusRules. Their texts are no templates, though they look like some: they are included."""
    for path in sorted((ROOT / "alerts" / "out").glob("*.yaml")):
        texts = {folder: (ROOT / "alerts" / folder / path.name).read_text("utf-8") for folder in ("out", "out-native")}
        of_classic, of_native = (render.parts(path.stem, text) for text in texts.values())
        if of_classic.keys() != of_native.keys():
            raise ChartError(f"{path.name}: the rules for native histograms have another number of parts")
        for name in of_classic:
            classic, native = f"files/rules/{name}.yaml", f"files/rules-native/{name}.yaml"
            files[classic], files[native] = of_classic[name], of_native[name]
            chosen = f'ternary "{native}" "{classic}" .Values.monitor.nativeHistograms'
            document: dict[str, Any] = yaml.safe_load(render.rule(name, ""))
            yield document | {"spec": Go(f"{{{{- .Files.Get ({chosen}) | nindent 2 }}}}")}


def dashboards(files: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A ConfigMap a page."""
    for path in sorted((ROOT / "dashboards" / "out").glob("plumbline-*.json")):
        document = yaml.safe_load(render.dashboard(path.stem, path.read_text("utf-8"), folder="Plumbline"))
        ((name, text),) = document["data"].items()
        files[f"files/dashboards/{name}"] = text
        yield document | {"data": {name: Go(f'{{{{ .Files.Get "files/dashboards/{name}" | toJson }}}}')}}


def _kustomization(folder: Path) -> dict[str, Any]:
    known = {"apiVersion", "kind", "namespace", "resources", "patches", "configMapGenerator", "images"}
    content: dict[str, Any] = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    if strange := content.keys() - known:
        raise ChartError(f"{folder.name}/kustomization.yaml: {', '.join(sorted(strange))}: not understood")
    return content


def _resources(folder: Path) -> Iterator[dict[str, Any]]:
    """What stands in the folder; what ``render.py`` writes there is made by :func:`rules` and :func:`dashboards`."""
    for name in _kustomization(folder).get("resources", []):
        if not name.startswith("generated"):
            yield yaml.safe_load((folder / name).read_text("utf-8"))


def _patches(folder: Path, patch: dict[str, Any]) -> Iterator[tuple[Any, dict[str, str]]]:
    """Its content and what it is for: kind, and the name unless it is for all of the kind."""
    content = yaml.safe_load((folder / patch["path"]).read_text("utf-8") if "path" in patch else patch["patch"])
    yield content, patch.get("target") or {"kind": content["kind"], "name": content["metadata"]["name"]}


def _patched(document: dict[str, Any], content: Any, target: dict[str, str], condition: str) -> dict[str, Any]:
    if document["kind"] != target["kind"] or target.get("name") not in (None, document["metadata"]["name"]):
        return document
    if isinstance(content, dict):
        result: dict[str, Any] = merged(document, content, condition)
        return result
    for operation in content:
        operated(document, operation, condition)
    return document


def valued(document: dict[str, Any]) -> dict[str, Any]:
    """With what only Helm has: the release's namespace, and the values beside ``components``."""
    document["metadata"]["namespace"] = Go("{{ .Release.Namespace }}")
    if document["kind"] == "DaemonSet":
        pod = document["spec"]["template"]["spec"]
        pod["imagePullSecrets"] = When(".Values.image.pullSecrets", Go("{{ toJson .Values.image.pullSecrets }}"))
        for item in (*pod["initContainers"], *pod["containers"]):
            container = item.then if isinstance(item, When) else item
            container["image"] = Go('{{ include "plumbline.image" . | quote }}')
        (volume,) = (each for each in pod["volumes"] if isinstance(each, dict) and each["name"] == "config")
        volume["configMap"] = {"name": Go('{{ include "plumbline.configMap" . }}')}
    if document["kind"] in ("ServiceMonitor", "PrometheusRule"):
        document["metadata"]["labels"]["{{- with .Values.monitor.labels }}{{ toYaml . | nindent 4 }}{{ end }}"] = None
    if document["kind"] == "ServiceMonitor":
        label = {"targetLabel": "cluster", "replacement": Go("{{ .Values.monitor.cluster | quote }}")}
        document["spec"]["endpoints"][0]["relabelings"].append(When(".Values.monitor.cluster", label))
        document["spec"]["convertClassicHistogramsToNHCB"] = When(".Values.monitor.nativeHistograms", True)
        document["spec"]["endpoints"][0]["params"] = When(".Values.monitor.fullPages", {"profile": ["full"]})
    return document


def config_map() -> dict[str, Any]:
    """What kustomize's ``configMapGenerator`` makes."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": Go('{{ include "plumbline.configMap" . }}')},
        "data": {"plumbline.yaml": Go('{{ include "plumbline.config" . | toJson }}')},
    }


def semantic_version(version: str) -> str:
    """PEP 440 as Helm wants it, by https://semver.org: ``0.2.0rc1`` is ``0.2.0-rc1``."""
    number, rest = re.fullmatch(r"([0-9.]+?)\.?([a-z].*)?", version).groups()  # type: ignore[union-attr]
    return f"{number}-{rest}" if rest else number


def schema(values: Any) -> dict[str, Any]:
    """Of ``values.yaml``, from the values themselves: a name that isn't there is refused by Helm."""
    if isinstance(values, dict):
        inside = {name: schema(value) for name, value in values.items()}
        return {"type": "object", "properties": inside, "additionalProperties": False} if values else {"type": "object"}
    return {"type": {bool: "boolean", str: "string", list: "array"}[type(values)]}


def chart() -> dict[str, str]:
    """Path in the chart → text."""
    files = {
        str(path.relative_to(HERE / "chart")): path.read_text("utf-8")
        for path in sorted((HERE / "chart").rglob("*")) if path.is_file()
    }  # fmt: skip
    values = yaml.safe_load(files["values.yaml"])
    if tuple(values["components"]) != ORDER:
        raise ChartError("chart/values.yaml: components are not those of ORDER, in its order")
    files["values.schema.json"] = json.dumps(schema(values), indent=2) + "\n"
    version = project_version()
    about = {
        "apiVersion": "v2",
        "name": "plumbline",
        "description": "Storage node exporter with probes, baselines and verdicts, as a DaemonSet",
        "type": "application",
        "version": semantic_version(version),
        "appVersion": version,
    }
    files["Chart.yaml"] = yaml.safe_dump(about, sort_keys=False, width=120)
    files["files/plumbline.yaml"] = (HERE / "base/config/plumbline.yaml").read_text("utf-8")
    files["files/rook.yaml"] = (HERE / "overlays/rook/config/plumbline.yaml").read_text("utf-8")
    for owner, document in [("", config_map()), *objects(files)]:
        name = document["kind"].lower()
        if document["kind"] in ("ConfigMap", "PrometheusRule") and owner:
            name += f"-{document['metadata']['name']}"
        lines = "".join(f"{line}\n" for line in text_of(valued(document)))
        files[f"templates/{name}.yaml"] = f"{{{{- if {enabled(owner)} }}}}\n{lines}{{{{- end }}}}\n" if owner else lines
    return files


def write(target: Path) -> None:
    """The chart's folder, anew; a file that no earlier run wrote there is left, and then nothing is written."""
    files = chart()
    make_empty(target)
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (target / SUMS).write_text(sums(target), "utf-8")


def main(argv: list[str]) -> int:
    """Exit status: 0 written, 1 one line says why not."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.kubernetes.chart", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "chart", metavar="DIR", help="(dist/chart)")
    options = parser.parse_args(argv)
    try:
        write(options.out / "plumbline")
    except (ChartError, BuildError, OSError) as error:
        print(f"no chart: {error}", file=sys.stderr)
        return 1
    print(options.out / "plumbline")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
