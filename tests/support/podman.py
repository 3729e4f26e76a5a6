"""Debian's podman for the tests of platforms: images and volumes apart from the machine's own, and kept.

All images are of a base, a Debian made by debootstrap that knows what leads to this machine's registries.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .debian_host import BASES, Base, made
from .newcomer import give
from .page_commands import ROOT, Page

STORE = BASES.resolve() / "podman"
(BASE,) = re.findall(r"^ARG BASE=(\S+)$", (ROOT / "Containerfile").read_text("utf-8"), re.MULTILINE)
"""The page says to give another one that is configured for a mirror; here the same name has one that is."""
CONFIGURATION = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc={processes}:{processes}"]
netns = "{network}"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
"""No systemd that makes control groups; an ordinary login's limits; Debian 12's crun refuses hybrid control groups."""


@dataclass(frozen=True, slots=True)
class Podman:
    """Called with ``environment``, which leads to its own storage."""

    environment: Mapping[str, str]

    def call(self, *argv: str, timeout_s: float = 900, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Whatever comes of it; ``given`` on its standard input."""
        return subprocess.run(
            ["podman", *argv], env=self.environment, cwd=ROOT, input=given or "",
            capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False,
        )  # fmt: skip

    def run(self, *argv: str, timeout_s: float = 900, given: str | None = None) -> str:
        """Its standard output; AssertionError with what it said when it fails."""
        done = self.call(*argv, timeout_s=timeout_s, given=given)
        assert done.returncode == 0, f"{shlex.join(argv)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def build(self, argv: list[str], timeout_s: float = 1800) -> None:
        """``podman build`` as a page has it; the build takes this machine's network, and layers are kept."""
        self.run("build", "--network=host", "--layers", *argv, timeout_s=timeout_s)

    def base(self, suite: str) -> str:
        """The name of a Debian that all images are of, made unless it is there: it has what leads to this machine's
        registries, as the page says for a proxy."""
        name: str = BASE.replace("bookworm", suite)
        if self.call("image", "exists", name).returncode:
            base = made(Base("container", installed=("ca-certificates",), suite=suite))
            with tempfile.TemporaryDirectory(dir=BASES) as folder:
                tree, packed = Path(folder, "base"), Path(folder, "base.tar")
                subprocess.run(["cp", "-a", base, tree], check=True)
                give(tree)
                subprocess.run(["tar", "-C", tree, "-cf", packed, "."], check=True)
                self.run("import", str(packed), name)
        return name


@contextlib.contextmanager
def podman_with_image(folder: Path) -> Iterator[Podman]:
    """With the image of docs/container.md, built as the page says; ``folder`` is for its configuration."""
    configuration, storage = folder / "containers.conf", folder / "storage.conf"
    configuration.write_text(CONFIGURATION.format(processes=32000, network="private"))
    STORE.parent.mkdir(exist_ok=True)
    storage.write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{STORE}"\nrunroot = "{STORE.parent / "podman-run"}"\n'
    )
    environment = {"CONTAINERS_CONF": str(configuration), "CONTAINERS_STORAGE_CONF": str(storage)}
    podman = Podman(os.environ | environment)
    try:
        podman.base("bookworm")
        (argv,) = Page.of("docs/container.md").commands("podman build")
        podman.build(argv[2:])
        yield podman
    finally:
        # not those of today: the stage that compiles is one of them, and the next run wants its layers
        podman.call("image", "prune", "--force", "--filter=until=168h")
