"""``make packages``: the wheel and the Debian package of this tree, into ``dist/``.

Usage: python -m deploy.debian [--suite bookworm|trixie] [--out DIR]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from deploy.debian.build import build_deb, build_wheel
from deploy.debian.project import RELEASES, ROOT, BuildError, source_date


def main() -> int:
    """Exit code: 0 both are there, 1 one line says why not."""
    parser = argparse.ArgumentParser(prog="python -m deploy.debian", description="Build the wheel and the package.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="where they go (dist/)")
    parser.add_argument("--suite", choices=RELEASES, default="bookworm", help="the Debian release it is for (bookworm)")
    options = parser.parse_args()
    try:
        date = source_date(os.environ)
        wheel = build_wheel(options.out, date)
        print(wheel)
        print(build_deb(options.out, wheel, date, RELEASES[options.suite]))
    except BuildError as error:
        print(f"make packages: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
