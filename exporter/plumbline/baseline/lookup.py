"""Finds a baseline by its name in ``plumbline baseline list`` or by a file's path."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from plumbline.baseline.model import BaselineEntry
from plumbline.baseline.profiles import LoadedProfile
from plumbline.baseline.site import LoadedSite
from plumbline.errors import BaselineError

Loaded = LoadedProfile | LoadedSite


def find(
    name: str,
    profiles: Mapping[str, LoadedProfile],
    sites: Sequence[LoadedSite],
    *,
    read: Callable[[Path], LoadedSite],
) -> Loaded:
    """The profile or file that ``name`` means; ``read`` reads a file that the configuration does not name.

    The file may come from another host: it is only shown here and does not judge. Raises :class:`BaselineError` if
    nothing or more than one baseline has the name, and for an invalid file.
    """
    found: list[Loaded] = [site for site in sites if name in (site.where, site_name(site))]
    found += [profiles[name]] if name in profiles else []
    if len(found) > 1:
        where = ", ".join(site.where for site in sites if site_name(site) == name)
        raise BaselineError(name, f"{len(found)} baselines have this name; say which by its path: {where}")
    if found:
        return found[0]
    if "/" in name or Path(name).is_file():
        return read(Path(name))
    known = [*profiles, *map(site_name, sites)]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or known
    raise BaselineError(name, f"no such baseline, nor a file here; there are: {', '.join(near)}")


def site_name(site: LoadedSite) -> str:
    """The ``profile`` label of a file's entries."""
    return site.entries[0].profile


def name_of(loaded: Loaded) -> str:
    """Its name in ``plumbline baseline list``."""
    return loaded.profile.name if isinstance(loaded, LoadedProfile) else site_name(loaded)


def entries_of(loaded: Loaded) -> tuple[BaselineEntry, ...]:
    """All figures in base units."""
    return loaded.entries
