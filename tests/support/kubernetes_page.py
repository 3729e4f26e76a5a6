"""What deploy/kubernetes/README.md has its reader do, on a :class:`.kubernetes.Cluster`; for the tests of platforms."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from .kubernetes import Cluster
from .page_commands import Page
from .systemd_host import ADDRESS, SHIPPED

PAGE = Page.of("deploy/kubernetes/README.md")
FOLDER = f"{SHIPPED}/deploy/kubernetes"
URL, ROOKS = f"http://{ADDRESS}:10047", f"http://{ADDRESS}:10048"
OURS = "app.kubernetes.io/name=plumbline"
WITHIN_S = 180.0
ROLLED_OUT = f"kubectl -n plumbline rollout status daemonset/plumbline --timeout={WITHIN_S:g}s"


def first_lines() -> list[str]:
    """The page's first script."""
    lines = PAGE.script("render.py").splitlines()
    assert lines[1] == "cd deploy/kubernetes/overlays/prometheus-operator"
    return lines


@contextlib.contextmanager
def base_applied(cluster: Cluster) -> Iterator[Cluster]:
    """The daemon as the page's first lines start it, of the base; what they made is deleted at the end."""
    _, cd, image, apply, *_ = first_lines()
    script = "\n".join([cd.replace("overlays/prometheus-operator", "base"), image, apply, ROLLED_OUT])
    try:
        cluster.page(script)
        yield cluster
    finally:
        cluster.page(f"cd {FOLDER}/base; kubectl delete -k . --timeout=120s")


@contextlib.contextmanager
def with_components(cluster: Cluster, *components: str) -> Iterator[None]:
    """The base with these for a while, as an overlay of one's own; then without."""
    try:
        _site(cluster, *components)
        yield
    finally:
        _site(cluster)


def _site(cluster: Cluster, *components: str) -> None:
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "plumbline",
        "resources": ["../../base"],
        "components": [f"../../components/{name}" for name in components],
    }
    folder = f"{FOLDER}/overlays/site"
    cluster.host.write(f"{folder}/kustomization.yaml", json.dumps(content))
    cluster.page(f"cd {folder}; {first_lines()[3]}; {ROLLED_OUT}")


def pod(cluster: Cluster, namespace: str = "plumbline") -> dict[str, Any]:
    """The daemon's that is not about to end."""
    pods = cluster.look("pods", f"--selector={OURS}", namespace=namespace)["items"]
    (found,) = (each for each in pods if "deletionTimestamp" not in each["metadata"])
    assert isinstance(found, dict)
    return found


def is_ready(cluster: Cluster) -> bool:
    """Whether the one container of :func:`pod` is."""
    (container,) = pod(cluster)["status"]["containerStatuses"]
    return bool(container["ready"])
