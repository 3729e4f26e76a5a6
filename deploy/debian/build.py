"""From the staged tree to ``plumbline_<version>_<architecture>.deb``, by one call of dpkg-deb.

dpkg-deb and not debhelper: there is nothing to compile for Debian but what the wheel brings, the tree is built by
thirty lines that can be read, and any Debian has dpkg-deb.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from deploy.debian import control
from deploy.packages.components import copyright_file
from deploy.packages.project import NAME, Release, project_version
from deploy.packages.staging import CONFFILES, DOC, Staged, compress, normalise, run, set_date

HERE = Path(__file__).resolve().parent
SCRIPTS = ("postinst", "prerm", "postrm")
FILES = {
    "systemd/plumbline.service": "lib/systemd/system/plumbline.service",  # not below /usr: Debian 12's policy
    "deploy/debian/lintian-overrides": f"usr/share/lintian/overrides/{NAME}",
    "deploy/debian/README.md": f"{DOC}/README.Debian.md",
    "exporter/plumbline/completions/_plumbline": f"usr/share/zsh/vendor-completions/_{NAME}",
}
"""Beside what all packages have."""


def build_deb(out: Path, staged: Staged, date: int, release: Release) -> Path:
    """The Debian package of what is staged, for ``release`` and this machine's architecture."""
    architecture = run(["dpkg", "--print-architecture"]).strip()
    version = release.version(project_version())
    target = out / f"{NAME}_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory(prefix="plumbline-deb-") as folder:
        tree = Path(folder) / "tree"
        staged.copy(tree, FILES, installer="dpkg")
        compress(tree / DOC / "changelog.gz", control.changelog(version, date).encode())
        (tree / DOC / "copyright").write_text(copyright_file(staged.components))
        normalise(tree)
        stage_control(tree, version, architecture, python=staged.python)
        set_date(tree, date)
        # gzip and xz are as reproducible with one thread; xz halves the size
        run(["dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "--build", str(tree), str(target)],
            SOURCE_DATE_EPOCH=str(date))  # fmt: skip
    return target


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
