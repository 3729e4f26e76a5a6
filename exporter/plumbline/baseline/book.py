"""All baselines of this node: documented by the package, written by the site, and measured here.

An invalid site file that the configuration names stops the start or the reload with a one-line error, because its
author believes that it applies. The recorded file belongs to the daemon: if it is damaged, the error is reported and
the other baselines stay in use, so that the monitor keeps running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.baseline.budget import Budget
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import BaselineEntry, Source, Target
from plumbline.baseline.profiles import check_judge, load_profiles
from plumbline.baseline.selection import Selection, select
from plumbline.baseline.site import LoadedSite, read_site
from plumbline.config.model import BaselineConfig
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.core.storage_names import RECORDED
from plumbline.errors import BaselineError

BUDGETED = frozenset({"rados", "rbd"})
"""Layers whose operations documented budgets break down; only a node that measures one of them shows the budgets."""


@dataclass(frozen=True, slots=True)
class Book:
    """The baselines, and the selection made among them for this node's targets."""

    selection: Selection
    recorded_error: BaselineError | None = None
    """Why the recorded file is not used, if it is unusable."""
    measured_on: Mapping[str, Fingerprint] = field(default_factory=dict)
    """Profile of each measured baseline → the environment recorded in its file."""
    budgets: tuple[tuple[str, Budget], ...] = ()
    """(profile, documented latency budget), if this node measures a layer of :data:`BUDGETED`."""

    def in_force(self, target: Target) -> BaselineEntry | None:
        """The baseline that judges ``target``, or ``None``."""
        for verdict in self.selection.verdicts:
            if verdict.target.key == target.key and verdict.target.config_hash == target.config_hash:
                return verdict.in_force
        return None

    def shown(self, target: Target) -> BaselineEntry | None:
        """The baseline to show beside ``target``: the one in force, else one that may only be shown."""
        judging = self.in_force(target)
        if judging is not None:
            return judging
        for one in self.selection.comparable:
            if one.entry.key == target.key and one.entry.config_hash == target.config_hash:
                return one.entry
        return None

    def bounds(self) -> Mapping[tuple[str, str, str], tuple[float, ...]]:
        """(probe, workload, operation) → the latency bound in seconds, for the canary's bucket edges."""
        return {
            (verdict.target.probe, verdict.target.workload, verdict.target.operation): (verdict.bound,)
            for verdict in self.selection.verdicts
            if verdict.bound is not None
        }


def load_book(
    config: BaselineConfig,
    *,
    where: str,
    storage: Path,
    host: str,
    catalogue: WorkloadCatalogue,
    targets: Sequence[Target],
) -> Book:
    """Read and select all baselines. ``where`` names the configuration in errors.

    Raises :class:`ConfigError` for an unknown profile, :class:`BaselineError` for an invalid file in the configuration.
    """
    profiles = load_profiles(catalogue)
    check_judge(config.judge, profiles, where)
    entries = [entry for profile in profiles.values() for entry in profile.entries]
    sites = [read_site(Path(name), host=host, catalogue=catalogue) for name in config.files]
    recorded, error = storage / RECORDED, None
    if recorded.exists():
        try:
            sites.append(read_site(recorded, host=host, catalogue=catalogue))
        except BaselineError as caught:
            error = caught
    entries += [entry for site in sites for entry in site.entries]
    here = BUDGETED & {target.layer for target in targets}
    budgets = tuple((name, each) for name, one in profiles.items() for each in one.profile.budgets if here)
    return Book(select(entries, targets, config.judge), error, measured_on(sites), budgets)


def measured_on(sites: Sequence[LoadedSite]) -> dict[str, Fingerprint]:
    """The fingerprints of the files measured on this host; if two files share a name, the last one wins."""
    return {
        site.entries[0].profile: site.file.fingerprint
        for site in sites
        if site.file.source == Source.MEASURED.value and site.file.fingerprint is not None
    }
