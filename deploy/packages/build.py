"""Every package of this tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from deploy.debian.build import build_deb
from deploy.packages.project import RELEASES, Release
from deploy.packages.staging import build_wheel, staged
from deploy.rpm import build as rpm


def build_all(out: Path, date: int, releases: Iterable[Release] = RELEASES.values()) -> Iterator[Path]:
    """Wheel, the Debian package of each release, and where rpmbuild is the RPM, beside the package for its Python."""
    wheel = build_wheel(out, date)
    yield wheel
    for release in releases:
        with staged(wheel, release.python) as tree:
            yield build_deb(out, tree, date, release)
            if release.python == rpm.PYTHON and not rpm.missing():
                yield rpm.build_rpm(out, tree, date)
