"""The texts that Debian wants beside the files: control, changelog. Pure."""

from __future__ import annotations

import email.utils

from deploy.packages.project import DESCRIPTION, MAINTAINER, SUMMARY

CHANGELOG = "/usr/share/doc/plumbline/CHANGELOG.md.gz"


def control(version: str, architecture: str, *, python: int, installed_kib: int) -> str:
    """``DEBIAN/control``; https://www.debian.org/doc/debian-policy/ch-controlfields.html.

    ``python``: the minor version of the one CPython 3 whose extension modules stand in the package.
    """
    described = "\n".join(f" {line or '.'}" for line in DESCRIPTION.splitlines())
    return f"""\
Package: plumbline
Version: {version}
Architecture: {architecture}
Maintainer: {MAINTAINER}
Section: net
Priority: optional
Installed-Size: {installed_kib}
Depends: libc6 (>= 2.36), python3 (>= 3.{python}), python3 (<< 3.{python + 1})
Recommends: fio, libbpf1
Suggests: ceph-common, iperf3, prometheus, prometheus-alertmanager, smartmontools
Description: {SUMMARY}
{described}
"""


def changelog(version: str, date: int) -> str:
    """One entry: the real ones stand in CHANGELOG.md, whose format dpkg does not read."""
    when = email.utils.formatdate(date, usegmt=True).replace("GMT", "+0000")
    return (
        f"plumbline ({version}) stable; urgency=medium\n\n"
        f"  * What changed stands in {CHANGELOG}\n\n"
        f" -- {MAINTAINER}  {when}\n"
    )
