"""The roots of the kernel's and the system's trees. Only ``daemon/wiring.py`` knows that they are under ``/``."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class Roots(Struct, frozen=True):
    """Injectable, as node_exporter's ``--path.*``: for tests, and containers that mount the host's trees elsewhere."""

    proc: Path
    sys: Path
    dev: Path
    udev: Path  # udev's runtime database, /run/udev
    etc: Path  # Ceph's configuration
    var: Path  # Ceph's configuration on hosts that cephadm manages

    @classmethod
    def under(cls, root: Path) -> Roots:
        """The usual layout below one directory (a fixture host, or ``/``)."""
        return cls(root / "proc", root / "sys", root / "dev", root / "run" / "udev", root / "etc", root / "var")
