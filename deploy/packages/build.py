"""Every package of this tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deploy.debian.build import build_deb
from deploy.packages.staging import build_wheel, staged
from deploy.rpm import build as rpm


def build_all(out: Path, date: int) -> Iterator[Path]:
    """Wheel, Debian package, and the RPM where rpmbuild is."""
    wheel = build_wheel(out, date)
    yield wheel
    with staged(wheel) as tree:
        yield build_deb(out, tree, date)
        if not rpm.missing():
            yield rpm.build_rpm(out, tree, date)
