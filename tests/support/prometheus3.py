"""Debian 14's Prometheus 3 and Alertmanager for the tests, by ``make test-prometheus3``: a folder with the programs
alone, to stand first in ``PATH``, from a base that is kept. They run on older releases as they are.

Usage: python -m support.prometheus3
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .debian_host import BASES, Base, made

BASE = Base("monitoring", installed=("prometheus", "prometheus-alertmanager"), suite="forky")
PROGRAMS = ("prometheus", "promtool", "prometheus-alertmanager", "amtool")


def programs() -> Path:
    """The folder. RuntimeError with debootstrap's last words."""
    base = made(BASE)
    folder = BASES / "prometheus3"
    folder.mkdir(exist_ok=True)
    for name in PROGRAMS:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(base / "usr/bin" / name)
    return folder


def main() -> None:
    """Print the folder, and on standard error what is in it."""
    folder = programs()
    for name in PROGRAMS:
        done = subprocess.run([folder / name, "--version"], capture_output=True, text=True, check=True)
        print(done.stdout.partition(" (")[0], file=sys.stderr)
    print(folder.resolve())


if __name__ == "__main__":
    main()
