"""The Debian package of this tree, and its service in a guest."""

from __future__ import annotations

import os
from pathlib import Path

from deploy.debian.build import build_deb
from deploy.packages.project import RELEASES, Release, source_date
from deploy.packages.staging import build_wheel, staged

from lab.guest import Guest, GuestError
from support.debian_host import BASES
from support.scraped import Scrape

FOR = RELEASES | {"forky": Release(14, 14)}
"""What a guest's package is for. Only the lab makes one for Debian 14, which is not out yet."""

PYTHON = "/opt/plumbline/bin/python3"
"""The package's own, which has all that it imports."""
SETTINGS = "/etc/plumbline/plumbline.yaml"
READY_WITHIN_S = 1800.0


def package(suite: str) -> Path:
    """The package for a guest of ``suite``, built now from this tree; BuildError says why not."""
    release = FOR[suite]
    out = BASES / "lab-package"
    out.mkdir(parents=True, exist_ok=True)
    date = source_date(os.environ)
    with staged(build_wheel(out, date), release.python) as tree:
        return build_deb(out, tree, date, release)


def failed(scrape: Scrape) -> list[str]:
    """The collectors of a page that failed."""
    found = scrape.series("plumbline_collector_success")
    return sorted(each.labels["collector"] for each in found if not each.value)


def ready(guest: Guest) -> None:
    """Wait until the service has read everything once. GuestError when it does not come up."""
    if not guest.until(lambda: _ready(guest), bool, within_s=READY_WITHIN_S):
        raise GuestError(f"the daemon is not ready: {guest.run('journalctl -u plumbline -n 3 -o cat', check=False)}")


def _ready(guest: Guest) -> bool:
    try:
        return bool(guest.get("/-/ready"))
    except GuestError:
        return False
