"""``make packages``: the wheel, the Debian package and, where rpmbuild is, the RPM of this tree, into ``dist/``.

Usage: python -m deploy.packages [--suite bookworm|trixie] [--out DIR]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from deploy.packages.build import build_all
from deploy.packages.project import RELEASES, ROOT, BuildError, source_date
from deploy.rpm import build as rpm


def main() -> int:
    """Exit code: 0 what can be built here is there, 1 one line says why not."""
    parser = argparse.ArgumentParser(prog="python -m deploy.packages", description="Build the wheel and the packages.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="where they go (dist/)")
    parser.add_argument("--suite", choices=RELEASES, default="bookworm", help="the Debian release it is for (bookworm)")
    options = parser.parse_args()
    try:
        for path in build_all(options.out, source_date(os.environ), [RELEASES[options.suite]]):
            print(path)
        if reason := rpm.missing():
            print(f"make packages: no RPM: {reason}", file=sys.stderr)
    except BuildError as error:
        print(f"make packages: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
