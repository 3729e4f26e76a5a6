"""Where the kernel's and the system's trees stand. Only ``daemon/wiring.py`` knows that they stand under ``/``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Roots:
    """Injectable roots, as node_exporter's ``--path.*`` flags.

    A container that mounts the host's trees elsewhere points these there; tests point them at fixtures.
    """

    proc: Path
    sys: Path
    dev: Path
    udev: Path  # udev's runtime database, /run/udev
    etc: Path  # Ceph's configuration
    var: Path  # Ceph's configuration where cephadm made it

    @classmethod
    def under(cls, root: Path) -> Roots:
        """The usual layout below one directory (a fixture host, or ``/``)."""
        return cls(
            proc=root / "proc",
            sys=root / "sys",
            dev=root / "dev",
            udev=root / "run" / "udev",
            etc=root / "etc",
            var=root / "var",
        )
