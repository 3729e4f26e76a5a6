"""The texts that Debian wants beside the files: control, changelog, copyright. Pure."""

from __future__ import annotations

import email.parser
import email.utils
import textwrap
from dataclasses import dataclass

MAINTAINER = "The Plumbline authors <plumbline@packages.invalid>"
"""There is no address that answers; .invalid says so (RFC 2606)."""
CHANGELOG = "/usr/share/doc/plumbline/CHANGELOG.md.gz"


@dataclass(frozen=True, slots=True)
class Component:
    """One Python distribution in the environment."""

    name: str
    version: str
    licence: str
    author: str
    homepage: str


def control(version: str, architecture: str, *, python: int, installed_kib: int) -> str:
    """``DEBIAN/control``; https://www.debian.org/doc/debian-policy/ch-controlfields.html.

    ``python``: the minor version of the one CPython 3 whose extension modules stand in the package.
    """
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
Description: storage node exporter with probes, baselines and verdicts
 Prometheus exporter for storage nodes and Ceph clusters: what the kernel knows
 of network and disks, probes that measure on purpose without hurting anybody,
 and a written baseline that both are held against, with alert rules, runbooks
 and Grafana dashboards.
 .
 Plumbline's Python dependencies are inside, in /opt/plumbline: Debian's own are
 older than what it needs.
"""


def changelog(version: str, date: int) -> str:
    """One entry: the real ones stand in CHANGELOG.md, whose format dpkg does not read."""
    when = email.utils.formatdate(date, usegmt=True).replace("GMT", "+0000")
    return (
        f"plumbline ({version}) stable; urgency=medium\n\n"
        f"  * What changed stands in {CHANGELOG}\n\n"
        f" -- {MAINTAINER}  {when}\n"
    )


def parse_component(metadata: str) -> Component:
    """From the METADATA of a ``.dist-info``; https://packaging.python.org/en/latest/specifications/core-metadata/."""
    found = email.parser.HeaderParser().parsestr(metadata)
    classifiers = [
        each.rpartition(" :: ")[2] for each in found.get_all("Classifier", []) if each.startswith("License :: ")
    ]
    # the old field holds whole licence texts in some packages
    licence = found["License-Expression"] or ", ".join(classifiers) or (found["License"] or "").split("\n")[0]
    urls = [each.partition(",")[2].strip() for each in found.get_all("Project-URL", [])]
    return Component(
        name=found["Name"],
        version=found["Version"],
        licence=licence,
        author=found["Author"] or found["Author-email"] or "its authors",
        homepage=found["Home-page"] or (urls[0] if urls else ""),
    )


def copyright_file(components: list[Component]) -> str:
    """``copyright``: ours is the Apache licence, each of the others says its own beside its code."""
    rows = "".join(
        f"\n{each.name} {each.version}\n  Copyright {each.author}\n  Licence: {each.licence}\n"
        + (f"  {each.homepage}\n" if each.homepage else "")
        for each in sorted(components, key=lambda each: each.name.lower())
        if each.name != "plumbline"
    )
    head = textwrap.dedent("""\
        Plumbline
          Copyright (C) 2026 The Plumbline authors
          Licence: Apache-2.0; on Debian its text is /usr/share/common-licenses/Apache-2.0

        The Python distributions in /opt/plumbline, each with its full licence in its .dist-info there:
        """)
    return head + rows
