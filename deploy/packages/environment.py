"""The virtual environment inside the package: made without running anything in it, the same bytes each time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from deploy.packages.components import Component, parse_component
from deploy.packages.project import BuildError

HOME = Path("opt/plumbline")
SCRIPT = """\
#!/opt/plumbline/bin/python3
import sys

from plumbline.cli import main

sys.exit(main())
"""
PYVENV = "home = /usr/bin\ninclude-system-site-packages = false\n"
"""All that the interpreter reads of it (https://docs.python.org/3/library/site.html)."""
_NOT_OURS = ("RECORD", "REQUESTED", "direct_url.json")
"""The package's list of files is the record; direct_url.json would tell where the wheel was built."""


def stage_environment(tree: Path, *, python: int, lock: Path, wheel: Path) -> list[Component]:
    """Fill ``tree/opt/plumbline``: what ``lock`` pins, checked by its hashes, and our wheel. What is in it.

    ``python``: the minor version of the CPython 3 that it is for. pip takes that one's wheels whichever builds.
    """
    home = tree / HOME
    packages = home / "lib" / f"python3.{python}" / "site-packages"
    packages.mkdir(parents=True)
    wanted = ("--python-version", f"3.{python}", "--only-binary=:all:")
    _pip(packages, *wanted, "--require-hashes", "-r", str(lock))
    _pip(packages, *wanted, "--no-index", str(wheel))
    shutil.rmtree(packages / "bin", ignore_errors=True)  # other packages' commands, nobody calls them
    components = []
    for info in sorted(packages.glob("*.dist-info")):
        components.append(parse_component((info / "METADATA").read_text()))
        for name in _NOT_OURS:
            (info / name).unlink(missing_ok=True)
    commands = home / "bin"
    commands.mkdir()
    (commands / "python3").symlink_to(f"/usr/bin/python3.{python}")
    (commands / "python").symlink_to("python3")
    (commands / "plumbline").write_text(SCRIPT)
    (commands / "plumbline").chmod(0o755)
    (home / "pyvenv.cfg").write_text(PYVENV)
    return components


def _pip(target: Path, *words: str) -> None:
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--target", str(target)]
    done = subprocess.run(
        [*argv, *words], env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BuildError(f"pip: {said[-1] if said else f'exit {done.returncode}'}")
