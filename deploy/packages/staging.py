"""The tree that every package holds: environment, command, files; and the wheel. Two stagings of a commit are the same.

Files carry ``SOURCE_DATE_EPOCH`` and no trace of where they were built.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.packages.components import Component
from deploy.packages.environment import HOME, stage_environment
from deploy.packages.project import NAME, ROOT, BuildError

CONFFILES = ("/etc/default/plumbline", "/etc/plumbline/plumbline.yaml")
DOC = f"usr/share/doc/{NAME}"
FILES = {
    "deploy/packages/plumbline.default": "etc/default/plumbline",
    "deploy/packages/plumbline.yaml": "etc/plumbline/plumbline.yaml",
    "deploy/plumbline.yaml": f"{DOC}/examples/plumbline.yaml",
    "README.md": f"{DOC}/README.md",
    "systemd/README.md": f"{DOC}/systemd.md",
    "systemd/drop-ins/*.conf": f"usr/share/{NAME}/systemd",
    "systemd/plumbline-iperf3.service": f"usr/share/{NAME}/systemd/plumbline-iperf3.service",
    "docs/*.md": f"{DOC}/docs",
    "exporter/plumbline/completions/plumbline.bash": f"usr/share/bash-completion/completions/{NAME}",
    "alerts/out/*.yaml": f"usr/share/{NAME}/alerts",
    "alerts/out-native/*.yaml": f"usr/share/{NAME}/alerts-native",
    "alerts/alertmanager/alertmanager.yaml": f"usr/share/{NAME}/alertmanager/alertmanager.yaml",
    "alerts/runbooks/*.md": f"usr/share/{NAME}/runbooks",
    "dashboards/out/plumbline-*.json": f"usr/share/{NAME}/dashboards",
}
"""Source in the tree → place in the package; a pattern fills a folder."""
COMPRESSED = {
    "CHANGELOG.md": f"{DOC}/CHANGELOG.md.gz",
    "deploy/packages/plumbline.1": "usr/share/man/man1/plumbline.1.gz",
}


def build_wheel(out: Path, date: int) -> Path:
    """The wheel, with the BPF program inside; :class:`BuildError` without a compiler for that."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="plumbline-wheel-") as folder:
        run(
            [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
            SOURCE_DATE_EPOCH=str(date), PLUMBLINE_REQUIRE_BPF="1",
        )  # fmt: skip
        (built,) = Path(folder).glob("*.whl")
        return Path(shutil.move(built, out / built.name))


@dataclass(frozen=True, slots=True)
class Staged:
    """What all packages hold, once: each format takes a copy."""

    tree: Path
    components: list[Component]
    python: int
    """The minor version of the CPython 3 that it is for."""

    def copy(self, target: Path, files: Mapping[str, str], *, installer: str) -> None:
        """The tree of one format, with its own ``files``; ``installer`` is who keeps the list of files then."""
        shutil.copytree(self.tree, target, symlinks=True)
        place_files(target, files)
        for path in target.rglob("*.dist-info"):
            (path / "INSTALLER").write_text(f"{installer}\n")


@contextmanager
def staged(wheel: Path, python: int) -> Iterator[Staged]:
    """The environment around ``wheel``, its command, :data:`FILES` and :data:`COMPRESSED`."""
    with tempfile.TemporaryDirectory(prefix="plumbline-stage-") as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        components = stage_environment(tree, python=python, lock=ROOT / "requirements" / "s3.txt", wheel=wheel)
        command = tree / "usr" / "bin" / NAME
        command.parent.mkdir(parents=True)
        command.symlink_to(f"/{HOME}/bin/{NAME}")
        place_files(tree, FILES)
        for source, place in COMPRESSED.items():
            compress(tree / place, (ROOT / source).read_bytes())
        yield Staged(tree, components, python)


def place_files(tree: Path, files: Mapping[str, str], root: Path = ROOT) -> None:
    """Each source must be there."""
    for source, place in files.items():
        found = sorted(root.glob(source))
        if not found:
            raise BuildError(f"{source}: not in this tree")
        for each in found:
            target = tree / place / each.name if "*" in source else tree / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(each.read_bytes())


def compress(target: Path, data: bytes) -> None:
    """The same bytes each time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(data, 9, mtime=0))


def normalise(tree: Path) -> None:
    """The builder's umask leaves no trace; what may be run stays so."""
    tree.chmod(0o755)
    for path in tree.rglob("*"):
        if path.is_symlink():
            continue
        runs = path.is_dir() or (path.parent.name == "bin" and path.stat().st_mode & stat.S_IXUSR)
        path.chmod(0o755 if runs else 0o644)


def set_date(tree: Path, date: int) -> None:
    """One time for all: dpkg-deb and rpmbuild only take the newer ones back to SOURCE_DATE_EPOCH."""
    for path in [tree, *tree.rglob("*")]:
        os.utime(path, (date, date), follow_symlinks=False)


def run(argv: list[str], **environment: str) -> str:
    """What the program prints; :class:`BuildError` with its last line when it fails."""
    try:
        done = subprocess.run(
            argv, cwd=ROOT, env={**os.environ, "LC_ALL": "C.UTF-8", **environment},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise BuildError(f"{argv[0]}: not found; packages are built on Debian or one of its kin") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BuildError(f"{' '.join(argv[:3])}: {said[-1] if said else f'exit {done.returncode}'}")
    return done.stdout
