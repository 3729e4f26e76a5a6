"""``plumbline baseline compare``: find both sides, read and compare them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from plumbline.background.fingerprint import read_fingerprint
from plumbline.baseline import describe
from plumbline.baseline.compare.comparison import Comparison, Item, Side, compare
from plumbline.baseline.lookup import Loaded, find, name_of
from plumbline.baseline.model import Source
from plumbline.baseline.profiles import LoadedProfile
from plumbline.baseline.site import read_site
from plumbline.commands.current import NOW, figures_now
from plumbline.commands.node import Node
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.errors import BaselineError, ConfigError
from plumbline.probes.state import read_state


def compare_here(a: str, b: str, *, node: Node, roots: Roots, classes: Iterable[str] = ()) -> Comparison:
    """Compare ``a`` with ``b``: names or paths, ``b`` also ``now``; ``classes`` are pairs such as ``ssd=nvme``.

    Raises :class:`BaselineError`, :class:`ConfigError` or :class:`StateError` when they can't be compared.
    """
    renamed = _classes(classes)
    if a == NOW:
        raise BaselineError(a, "only the second one can be; name what was accepted first")
    accepted = _side(lookup(a, node))
    found = now_side(node, roots) if b == NOW else _side(lookup(b, node))
    for device_class in renamed:
        if all(item.entry.device_class != device_class for item in accepted.items):
            have = ", ".join(sorted({item.entry.device_class for item in accepted.items}))
            raise ConfigError("--as", f"{accepted.name} has no such device class; it has: {have}", value=device_class)
    return compare(accepted, found, renamed=renamed)


def lookup(name: str, node: Node) -> Loaded:
    """Find a baseline by its name here, or by a file's path, even another host's."""
    catalogue = load_catalogue()
    return find(
        name, node.profiles, node.sites, read=lambda path: read_site(Path(path), host=None, catalogue=catalogue)
    )


def now_side(node: Node, roots: Roots) -> Side:
    """What this host's daemon measured last, and this host's fingerprint now."""
    found = figures_now(node.plan, read_state(node.storage), now=time.time())
    ceph = node.config.ceph if any(each.cluster for each in node.plan.identities()) else None
    return Side(
        name=NOW,
        source=NOW,
        title=f"the latest results on {node.host}",
        items=found.items,
        fingerprint=read_fingerprint(roots, environment=os.environ, ceph=ceph),
        missing=found.missing,
    )


def as_data(found: Comparison) -> dict[str, Any]:
    """Data for ``--json``: the two sides without their items, which the rows contain."""
    return {
        "a": _side_data(found.a),
        "b": _side_data(found.b),
        "exit_code": found.exit_code,
        "rows": [asdict(row) | {"verdict": row.word.value} for row in found.rows],
        "other_parameters": found.others,
        "only_a": found.only_a,
        "only_b": found.only_b,
        "environment": found.environment,
    }


def _side_data(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "source": side.source,
        "title": side.title,
        "when": side.when,
        "fingerprint": side.fingerprint,
        "missing": side.missing,
    }


def _side(loaded: Loaded) -> Side:
    items = tuple(Item(entry) for entry in loaded.entries)
    if isinstance(loaded, LoadedProfile):
        return Side(name_of(loaded), Source.DOCUMENTED.value, loaded.profile.title, items)
    (summary,) = describe.summaries({}, [loaded], {})
    file = loaded.file
    return Side(summary.name, file.source, summary.title, items, when=summary.recorded, fingerprint=file.fingerprint)


def _classes(pairs: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        ours, separator, theirs = pair.partition("=")
        if not (ours and separator and theirs):
            raise ConfigError("--as", "expected two device classes, such as ssd=nvme", value=pair)
        found[ours] = theirs
    return found
