"""All baselines of this node in one place: what the package documents, what the site wrote, what was measured here.

A site file that is configured and wrong stops the start, or the reload, with its one line: somebody wrote it and
believes it holds. The recorded file is the daemon's own: damaged, it must not keep the monitor from running, so the
others hold and the mistake is reported.
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
"""Layers whose operations documented budgets take apart: only a node that measures one carries the budgets."""


@dataclass(frozen=True, slots=True)
class Book:
    """The baselines, and what was decided between them for this node's targets."""

    selection: Selection
    recorded_error: BaselineError | None = None
    """Why the recorded file is not used, if it can't be."""
    measured_on: Mapping[str, Fingerprint] = field(default_factory=dict)
    """Profile of each measured baseline → what its file says it was measured on."""
    budgets: tuple[tuple[str, Budget], ...] = ()
    """(profile, documented latency budget), where this node measures what they take apart."""

    def in_force(self, target: Target) -> BaselineEntry | None:
        """The baseline that judges ``target``; ``None``: nothing may."""
        for verdict in self.selection.verdicts:
            if verdict.target.key == target.key and verdict.target.config_hash == target.config_hash:
                return verdict.in_force
        return None

    def shown(self, target: Target) -> BaselineEntry | None:
        """The baseline to put beside ``target``: the one in force, else one that is only shown."""
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
    """Read everything and decide. ``where`` names the configuration in errors.

    Raises :class:`ConfigError` for an unknown profile, :class:`BaselineError` for a configured file that is wrong.
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
    """Of those that were measured on this host; of one name the last given holds, as for its figures."""
    return {
        site.entries[0].profile: site.file.fingerprint
        for site in sites
        if site.file.source == Source.MEASURED.value and site.file.fingerprint is not None
    }
