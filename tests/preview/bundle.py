"""The program that asks Grafana's code: ``grafana/`` and Grafana's packages, as ``package-lock.json`` pins them.

Both are kept in ``.tools/preview/`` under a hash of what they are made from: 180 MB of packages, fetched once.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from .answers import PreviewError

SOURCES = Path(__file__).parent / "grafana"
KEPT = Path(__file__).parents[2] / ".tools" / "preview"
LOCKED = ("package.json", "package-lock.json", ".npmrc")
WITHIN_S = 900.0


def bundle(kept: Path = KEPT) -> Path:
    """The program for Node. Needs npm, and the first time its registry; else :class:`.answers.PreviewError`."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise PreviewError(f"{program} is not installed (requirements/debian-preview.txt)")
    packages = _once(kept, "packages", (SOURCES / name for name in LOCKED), _install)
    sources = [*sorted(SOURCES.glob("*.ts")), SOURCES / "tsconfig.json"]
    return _once(packages, "program", [*sources, Path(__file__)], _build) / "main.cjs"


def _once(folder: Path, name: str, inputs: Iterable[Path], make: Callable[[Path], None]) -> Path:
    """``folder/name-<hash of the inputs>``, made there by ``make`` unless it is there: whole, or not at all."""
    digest = hashlib.sha256()
    for path in inputs:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    made = folder / f"{name}-{digest.hexdigest()[:16]}"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=f"{name}-") as unfinished:
            work = Path(unfinished, "made")
            work.mkdir()
            make(work)
            work.rename(made)
    return made


def _install(work: Path) -> None:
    for name in LOCKED:
        shutil.copy(SOURCES / name, work)
    _run(["npm", "ci", "--no-progress", "--loglevel=error"], work)


def _build(work: Path) -> None:
    """Types are checked first: that is how a release of Grafana with other options is noticed."""
    programs = work.parents[1] / "node_modules" / ".bin"
    for path in (*SOURCES.glob("*.ts"), SOURCES / "tsconfig.json"):
        shutil.copy(path, work)
    _run([programs / "tsc", "--project", "."], work)
    options = ["--platform=node", "--outfile=main.cjs", "--log-level=warning", "--log-override:direct-eval=silent"]
    _run([programs / "esbuild", "main.ts", "--bundle", *options], work)


def _run(argv: list[str | Path], folder: Path) -> None:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise PreviewError(f"{Path(argv[0]).name}: " + "; ".join(lines[:20]))
