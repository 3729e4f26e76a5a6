"""The worker's side of :mod:`.pool_class`: three queries to the monitors, in a short-lived process.

It imports little, so that it starts in a tenth of a second.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from plumbline.core.memory import LIBRADOS, limit_memory
from plumbline.core.privacy import keep_memory_private
from plumbline.errors import ParseError, PlumblineError
from plumbline.probes.ceph.librados import Access, connect

MIXED = "mixed"


def class_of(rule: Any, classes: Any) -> str | None:
    """Derived from the pool's rule and all existing classes; ``None`` if no OSD has one. Raises :class:`ParseError`."""
    try:
        taken = {str(step["item_name"]) for step in rule["steps"] if step["op"] == "take"}
        known = [str(each) for each in classes]
    except (KeyError, TypeError) as error:
        raise ParseError("ceph osd crush", f"not as Ceph 16 to 20 say it: {type(error).__name__}: {error}") from error
    named = {name.partition("~")[2] for name in taken}
    found = named if named and "" not in named else set(known)
    return next(iter(found)) if len(found) == 1 else (MIXED if found else None)


def main(argv: list[str]) -> int:
    """Query and print the answer as JSON; on error one line on stderr, exit status 1."""
    keep_memory_private()  # it will hold a key
    limit_memory(LIBRADOS)
    facts = json.loads(argv[0])
    try:
        with connect(Access(**facts["access"])) as cluster:
            name = cluster.mon_command("osd pool get", {"pool": facts["pool"], "var": "crush_rule"})["crush_rule"]
            rule = cluster.mon_command("osd crush rule dump", {"name": name})
            print(json.dumps(class_of(rule, cluster.mon_command("osd crush class ls"))))
    except (PlumblineError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
