"""``make bundle``: the mixin with the libraries it needs, its rendered form, and ``render-site`` for a site's own.

Usage: python -m deploy.release.bundle. Writes ``dist/plumbline-mixin-VERSION.tar.gz``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from deploy.packages.project import NAME, ROOT, BuildError, package_version, project_version, source_date
from deploy.release.__main__ import MONITORING, archive

SOURCES = ("mixin.libsonnet", "alerts/**/*.libsonnet", "dashboards/**/*.libsonnet", "alerts/README.md", "LICENSE")
VENDOR = ROOT / "dashboards" / "vendor"
NOTICE = """\
Written by others, under the Apache License 2.0 (../../LICENSE has its text):
github.com/grafana/grafonnet, github.com/jsonnet-libs/docsonnet, github.com/jsonnet-libs/xtd
"""
"""Of two of them jsonnet-bundler fetches a folder without the licence."""


def files() -> dict[str, bytes]:
    """Path in the bundle → content; :class:`BuildError` without Grafonnet."""
    if not VENDOR.is_dir():
        raise BuildError("dashboards/vendor: not there; run `make grafonnet`")
    paths = {path for each in (*SOURCES, *MONITORING) for path in ROOT.glob(each)}
    paths |= {path for path in VENDOR.rglob("*") if path.is_file()}
    found = {str(path.relative_to(ROOT)): path.read_bytes() for path in paths if path.is_file()}
    # jsonnet-bundler makes links that the imports go through: what they lead to, under their names
    for link in VENDOR.iterdir():
        if link.is_symlink() and link.is_dir():
            found |= {f"{link.relative_to(ROOT)}/{path.relative_to(link)}": path.read_bytes()
                      for path in link.rglob("*") if path.is_file()}  # fmt: skip
    found["dashboards/vendor/NOTICE"] = NOTICE.encode()
    return found | {"render-site": Path(__file__).with_name("render-site").read_bytes()}


def main() -> int:
    """Exit status: 0 written, 1 one line says why not."""
    named = f"{NAME}-mixin-{package_version(project_version())}"
    try:
        content = {f"{named}/{name}": data for name, data in files().items()}
        out = ROOT / "dist" / f"{named}.tar.gz"
        out.parent.mkdir(exist_ok=True)
        out.write_bytes(archive(content, source_date(os.environ)))
    except (BuildError, OSError) as error:
        print(f"no bundle: {error}", file=sys.stderr)
        return 1
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
