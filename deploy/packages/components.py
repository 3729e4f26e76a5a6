"""What is inside the packages' environment, and under which licences. Pure."""

from __future__ import annotations

import email.parser
import textwrap
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Component:
    """One Python distribution in the environment."""

    name: str
    version: str
    licence: str
    author: str
    homepage: str


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
