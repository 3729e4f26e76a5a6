"""deploy/kubernetes/chart.py: by real Helm, the same objects as kustomize builds of the same folders."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.kubernetes import chart, render

from support.metrics import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ALL = chart.ORDER
COMBINATIONS = [(), *((each,) for each in ALL if each != "rook"),
                ("prometheus-operator", "dashboards", "rook"),
                ("disk-latency", "devices"), (*ALL[:3], "disk-latency"), ALL]  # fmt: skip
"""Rook's patches label the operator's objects, so it comes with them, as in its overlay."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chart")
    assert chart.main(["--out", str(folder)]) == 0
    return folder / "plumbline"


@pytest.fixture(scope="module")
def kustomize(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree, rendered, for overlays of the tests' own."""
    copy = tmp_path_factory.mktemp("kustomize") / "kubernetes"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("generated", "__pycache__", "chart"))
    assert render.main(["--out", str(copy / "components")]) == 0
    return copy


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed: go install helm.sh/helm/v3/cmd/helm@latest")
    return subprocess.run(["helm", *words], capture_output=True, text=True, timeout=120, check=False)


def templated(made: Path, *words: str, namespace: str = "plumbline") -> list[dict[str, Any]]:
    done = helm("template", "plumbline", str(made), "--namespace", namespace, *words)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.load_all(done.stdout, LOADER) if each]


def chosen(components: tuple[str, ...]) -> list[str]:
    return [word for name in components for word in ("--set", f"components.{name}=true")]


def built(tree: Path, components: tuple[str, ...]) -> list[dict[str, Any]]:
    """kustomize's objects: the overlay's settings for Rook, the base's else; the Namespace apart."""
    argv = ["kustomize", "build"] if shutil.which("kustomize") else ["kubectl", "kustomize"]
    if shutil.which(argv[0]) is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    overlay = tree / "overlays" / "-".join(("chart", *components))
    (overlay / "config").mkdir(parents=True)
    rook = "rook" in components
    config = tree / ("overlays/rook" if rook else "base") / "config/plumbline.yaml"
    shutil.copy(config, overlay / "config")
    content = {
        "namespace": "rook-ceph" if rook else "plumbline",
        "resources": ["../../base"],
        "components": [f"../../components/{name}" for name in components],
        "configMapGenerator": [{"name": "plumbline-config", "behavior": "replace", "files": ["config/plumbline.yaml"]}],
    }
    (overlay / "kustomization.yaml").write_text(json.dumps(content))
    done = subprocess.run([*argv, overlay], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.load_all(done.stdout, LOADER) if each["kind"] != "Namespace"]


def comparable(objects: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    """By kind and name. Both hash the configuration into its name, each its own way; volumes have no order."""
    found = {}
    for each in json.loads(re.sub(r'"plumbline-config-\w{10}"', '"plumbline-config"', json.dumps(objects))):
        if each["kind"] == "DaemonSet":
            spec = each["spec"]["template"]["spec"]
            spec["volumes"].sort(key=lambda volume: volume["name"])
            for container in (*spec["initContainers"], *spec["containers"]):
                container["volumeMounts"].sort(key=lambda mount: mount["mountPath"])
        found[each["kind"], each["metadata"]["name"]] = each
    assert len(found) == len(objects)
    return found


@pytest.mark.parametrize("components", COMBINATIONS, ids=lambda names: "+".join(names) or "defaults")
def test_helm_gives_what_kustomize_gives(made: Path, kustomize: Path, components: tuple[str, ...]) -> None:
    namespace = "rook-ceph" if "rook" in components else "plumbline"
    by_helm = comparable(templated(made, *chosen(components), namespace=namespace))
    by_kustomize = comparable(built(kustomize, components))
    assert by_helm.keys() == by_kustomize.keys()
    for name, wanted in by_kustomize.items():
        assert by_helm[name] == wanted, name


def test_helm_finds_no_fault_in_it(made: Path) -> None:
    for components in ((), ALL):
        done = helm("lint", "--strict", str(made), *chosen(components))
        assert done.returncode == 0, done.stdout + done.stderr


def test_values_reach_their_objects(made: Path, tmp_path: Path) -> None:
    config = tmp_path / "plumbline.yaml"
    config.write_text("storage_path: /var/lib/plumbline\nprobes: [] # {{ not a template }}\n")
    objects = comparable(
        templated(
            made, *chosen(("prometheus-operator",)), "--set-file", f"config={config}",
            "--set", "image.repository=registry.example/plumbline", "--set", "image.tag=9.0.1",
            "--set", "image.pullSecrets[0].name=key",
            "--set", "monitor.labels.release=stack", "--set", "monitor.cluster=north",
            "--set", "monitor.nativeHistograms=true", "--set", "monitor.fullPages=true",
        )
    )  # fmt: skip
    pod = objects["DaemonSet", "plumbline"]["spec"]["template"]["spec"]
    assert {each["image"] for each in (*pod["initContainers"], *pod["containers"])} == {
        "registry.example/plumbline:9.0.1"
    }
    assert pod["imagePullSecrets"] == [{"name": "key"}]
    assert objects["ConfigMap", "plumbline-config"]["data"]["plumbline.yaml"] == config.read_text()
    monitor = objects["ServiceMonitor", "plumbline"]
    assert monitor["spec"]["endpoints"][0]["relabelings"][-1] == {"targetLabel": "cluster", "replacement": "north"}
    assert monitor["spec"]["convertClassicHistogramsToNHCB"] is True
    assert monitor["spec"]["endpoints"][0]["params"] == {"profile": ["full"]}
    native = yaml.load((ROOT / "alerts" / "out-native" / "plumbline-rules.yaml").read_text("utf-8"), LOADER)
    assert objects["PrometheusRule", "plumbline-rules"]["spec"] == native
    for name in (("ServiceMonitor", "plumbline"), ("PrometheusRule", "plumbline-alerts")):
        assert objects[name]["metadata"]["labels"]["release"] == "stack"


def test_both_flavours_of_the_rules_are_in_it(made: Path) -> None:
    for folder, source in (("rules", "out"), ("rules-native", "out-native")):
        for whole in (ROOT / "alerts" / source).glob("*.yaml"):
            parts = sorted((made / "files" / folder).glob(f"{whole.stem}*.yaml"), key=lambda part: len(part.name))
            groups = [group for part in parts for group in yaml.safe_load(part.read_text("utf-8"))["groups"]]
            assert groups == yaml.safe_load(whole.read_text("utf-8"))["groups"]
        assert len(list((made / "files" / folder).iterdir())) == 3  # the alerts in two parts


def test_another_configuration_has_another_name(made: Path) -> None:
    names = set()
    for words in ((), ("--set", "config=probes: []"), chosen(("rook",))):
        objects = templated(made, *words)
        (name,) = (each["metadata"]["name"] for each in objects if each["kind"] == "ConfigMap")
        assert f'"{name}"' in json.dumps([each for each in objects if each["kind"] == "DaemonSet"])
        names.add(name)
    assert len(names) == 3


def test_a_value_that_does_not_exist_is_refused(made: Path) -> None:
    for words in (("--set", "components.rock=true"), ("--set-string", "components.rook=yes"), ("--set", "tag=1")):
        done = helm("template", "plumbline", str(made), *words)
        assert done.returncode != 0, words
        assert "values don't meet the specifications of the schema" in done.stderr


# -- without Helm


@pytest.mark.parametrize(
    ("version", "semantic"), [("0.1.0", "0.1.0"), ("0.2.0rc1", "0.2.0-rc1"), ("0.2.0.dev3", "0.2.0-dev3")]
)
def test_a_version_as_helm_wants_it(version: str, semantic: str) -> None:
    assert chart.semantic_version(version) == semantic


def test_the_chart_has_the_version_of_the_tree(made: Path) -> None:
    about = yaml.safe_load((made / "Chart.yaml").read_text())
    for place in ("base", "components/rook"):
        (image,) = yaml.safe_load((FOLDER / place / "kustomization.yaml").read_text())["images"]
        assert image["newTag"] == about["appVersion"]


def test_what_it_can_not_express_is_refused() -> None:
    with pytest.raises(chart.ChartError, match="remove /a: not understood"):
        chart.operated({"a": 1}, {"op": "remove", "path": "/a"}, "x")
    with pytest.raises(chart.ChartError, match="b: patched by two components"):
        chart.merged({"b": chart.When("x", {"c": 1})}, {"b": {"c": 2}}, "y")


def test_a_component_without_a_place_in_the_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "ORDER", chart.ORDER[:-1])
    with pytest.raises(chart.ChartError, match="ORDER differ: network-policy"):
        chart.objects({})
