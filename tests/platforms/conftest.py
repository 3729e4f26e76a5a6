"""For all platforms: podman with our image, made once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

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
