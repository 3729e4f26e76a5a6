"""From this tree to ``plumbline_<version>_<architecture>.deb``: stage every file, then one call of dpkg-deb.

dpkg-deb and not debhelper: there is nothing to compile for Debian but what the wheel brings, the tree is built by
thirty lines that can be read, and any Debian has dpkg-deb. Two builds of one commit are the same bytes: files carry
``SOURCE_DATE_EPOCH``, owner root, and no trace of where they were built.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.debian import control
from deploy.debian.environment import HOME, stage_environment
from deploy.debian.project import NAME, ROOT, BuildError, Release, project_version

HERE = Path(__file__).resolve().parent
CONFFILES = ("/etc/default/plumbline", "/etc/plumbline/plumbline.yaml")
SCRIPTS = ("postinst", "prerm", "postrm")
DOC = f"usr/share/doc/{NAME}"
FILES = {
    "systemd/plumbline.service": "lib/systemd/system/plumbline.service",  # not below /usr: Debian 12's policy
    "deploy/debian/plumbline.default": "etc/default/plumbline",
    "deploy/debian/plumbline.yaml": "etc/plumbline/plumbline.yaml",
    "deploy/debian/lintian-overrides": f"usr/share/lintian/overrides/{NAME}",
    "deploy/plumbline.yaml": f"{DOC}/examples/plumbline.yaml",
    "README.md": f"{DOC}/README.md",
    "deploy/debian/README.md": f"{DOC}/README.Debian.md",
    "systemd/README.md": f"{DOC}/systemd.md",
    "systemd/drop-ins/*.conf": f"usr/share/{NAME}/systemd",
    "docs/*.md": f"{DOC}/docs",
    "alerts/out/*.yaml": f"usr/share/{NAME}/alerts",
    "alerts/alertmanager/alertmanager.yaml": f"usr/share/{NAME}/alertmanager/alertmanager.yaml",
    "alerts/runbooks/*.md": f"usr/share/{NAME}/runbooks",
    "dashboards/out/plumbline-*.json": f"usr/share/{NAME}/dashboards",
}
"""Source in the tree → place in the package; a pattern fills a folder."""
COMPRESSED = {
    "CHANGELOG.md": f"{DOC}/CHANGELOG.md.gz",
    "deploy/debian/plumbline.1": "usr/share/man/man1/plumbline.1.gz",
}


def build_wheel(out: Path, date: int) -> Path:
    """The wheel, with the BPF program inside; :class:`BuildError` without a compiler for that."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="plumbline-wheel-") as folder:
        _run(
            [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
            SOURCE_DATE_EPOCH=str(date), PLUMBLINE_REQUIRE_BPF="1",
        )  # fmt: skip
        (built,) = Path(folder).glob("*.whl")
        return Path(shutil.move(built, out / built.name))


def build_deb(out: Path, wheel: Path, date: int, release: Release) -> Path:
    """The Debian package around ``wheel``, for ``release`` and this machine's architecture."""
    architecture = _run(["dpkg", "--print-architecture"]).strip()
    version = release.version(project_version())
    target = out / f"{NAME}_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory(prefix="plumbline-deb-") as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        components = stage_environment(tree, python=release.python, lock=ROOT / "requirements" / "s3.txt", wheel=wheel)
        stage_files(tree)
        _compress(tree / DOC / "changelog.gz", control.changelog(version, date).encode())
        (tree / DOC / "copyright").write_text(control.copyright_file(components))
        command = tree / "usr" / "bin" / NAME
        command.parent.mkdir(parents=True)
        command.symlink_to(f"/{HOME}/bin/{NAME}")
        _normalise(tree)
        stage_control(tree, version, architecture, python=release.python)
        _date(tree, date)
        # gzip and xz are as reproducible with one thread; xz halves the size
        _run(["dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "--build", str(tree), str(target)],
             SOURCE_DATE_EPOCH=str(date))  # fmt: skip
    return target


def stage_files(tree: Path, root: Path = ROOT) -> None:
    """Everything that is not Python: each source must be there."""
    for source, place in FILES.items():
        found = sorted(root.glob(source))
        if not found:
            raise BuildError(f"{source}: not in this tree")
        for each in found:
            target = tree / place / each.name if "*" in source else tree / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(each.read_bytes())
    for source, place in COMPRESSED.items():
        _compress(tree / place, (root / source).read_bytes())


def stage_control(tree: Path, version: str, architecture: str, *, python: int) -> None:
    """``DEBIAN/``: control, conffiles, maintainer scripts, checksums."""
    files = [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]
    folder = tree / "DEBIAN"
    folder.mkdir()
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    (folder / "control").write_text(control.control(version, architecture, python=python, installed_kib=size))
    (folder / "conffiles").write_text("".join(f"{name}\n" for name in CONFFILES))
    sums = (f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(tree)}\n"
            for path in files if f"/{path.relative_to(tree)}" not in CONFFILES)  # fmt: skip
    (folder / "md5sums").write_text("".join(sums))
    for name in SCRIPTS:
        (folder / name).write_bytes((HERE / name).read_bytes())
        (folder / name).chmod(0o755)
    for name in ("control", "conffiles", "md5sums"):
        (folder / name).chmod(0o644)
    folder.chmod(0o755)


def _compress(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(data, 9, mtime=0))


def _normalise(tree: Path) -> None:
    """The builder's umask leaves no trace; what may be run stays so."""
    tree.chmod(0o755)
    for path in tree.rglob("*"):
        if path.is_symlink():
            continue
        runs = path.is_dir() or (path.parent.name == "bin" and path.stat().st_mode & stat.S_IXUSR)
        path.chmod(0o755 if runs else 0o644)


def _date(tree: Path, date: int) -> None:
    """One time for all: dpkg-deb only takes the newer ones back to SOURCE_DATE_EPOCH."""
    for path in [tree, *tree.rglob("*")]:
        os.utime(path, (date, date), follow_symlinks=False)


def _run(argv: list[str], **environment: str) -> str:
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
