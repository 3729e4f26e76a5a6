"""The script that draws: ``grafana/`` bundled with Grafana's packages, as ``package-lock.json`` pins them.

Both are kept in ``.tools/preview/`` under a hash of what they are made from: 450 MB of packages, made once.
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
PAGE = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><link rel="stylesheet" href="main.css">
<body style="margin: 0"><script src="main.js"></script>
"""
TYPEFACE = {400: "Regular", 500: "Medium"}
WITHIN_S = 900.0


def bundle(kept: Path = KEPT) -> Path:
    """A folder with ``index.html`` and all that it loads. Needs npm, and the first time its registry."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise PreviewError(f"{program} is not installed (requirements/debian-preview.txt)")
    packages = _once(kept, "packages", (SOURCES / name for name in LOCKED), _install)
    sources = sorted(
        path for path in SOURCES.iterdir() if path.suffix in {".ts", ".tsx"} or path.name == "tsconfig.json"
    )
    return _once(packages, "site", [*sources, Path(__file__)], _build)


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
    shutil.copytree(SOURCES, work / "source", ignore=shutil.ignore_patterns("package*", ".npmrc", "node_modules"))
    _run([programs / "tsc", "--project", "source"], work)
    options = ["--format=iife", "--jsx=automatic", "--minify", '--define:process.env.NODE_ENV="production"']
    options += [f"--loader:.{kind}=dataurl" for kind in ("svg", "ttf", "woff", "woff2")]
    _run([programs / "esbuild", "source/main.tsx", "--bundle", "--outdir=.", "--log-level=warning", *options], work)
    (work / "index.html").write_text(PAGE, "utf-8")
    # where the components look for icons and for the typeface
    shutil.copytree(programs.parent / "@grafana/ui/dist/public/img", work / "public/build/img")
    (work / "public/fonts/inter").mkdir(parents=True)
    for weight, name in TYPEFACE.items():
        face = programs.parent / f"@fontsource/inter/files/inter-latin-{weight}-normal.woff2"
        shutil.copy(face, work / f"public/fonts/inter/Inter-{name}.woff2")


def _run(argv: list[str | Path], folder: Path) -> None:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise PreviewError(f"{Path(argv[0]).name}: " + "; ".join(lines[:20]))
