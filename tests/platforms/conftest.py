"""For all platforms: podman with our image, made once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from support.kubernetes import Cluster, kubernetes_cluster
from support.podman import Podman, podman_with_image


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """Debian's, with what ``make test-platforms`` asks for."""
    if not os.environ.get("PLUMBLINE_PLATFORMS"):
        pytest.skip("takes minutes: make test-platforms")
    if os.geteuid() != 0:
        pytest.skip("root is needed for containers")
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed (Debian package podman)")
    with podman_with_image(tmp_path_factory.mktemp("podman")) as podman:
        yield podman


@pytest.fixture(scope="session")
def cluster(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Kubernetes on one node, with our image and nothing of ours applied."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed, which Kubernetes is built with")
    with kubernetes_cluster(podman, tmp_path_factory.mktemp("kubernetes")) as made:
        yield made
