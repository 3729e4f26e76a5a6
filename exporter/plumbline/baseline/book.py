"""All baselines of this node: documented by the package, written by the site, and measured here.

An invalid site file that the configuration names stops the start or the reload with a one-line error, because its
author believes that it applies. The recorded file and that of this node's class belong to the daemon: if one is
damaged, or lacks the signature that the configuration asks for, the error is reported and the other baselines stay in
use, so that the monitor keeps running. Of the class the figures read before stay, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from plumbline.baseline.budget import Budget
from plumbline.baseline.fingerprint import Fingerprint, Part, changes
from plumbline.baseline.model import BaselineEntry, Experiment, Source, Target, experiment
from plumbline.baseline.nearest import Nearest, nearest
from plumbline.baseline.profiles import check_judge, load_profiles
from plumbline.baseline.selection import Selection, select
from plumbline.baseline.signature import check_signed
from plumbline.baseline.site import LoadedSite, parse_site, read_site, site_text
from plumbline.config.model import BaselineConfig
from plumbline.core.storage_names import CLASS_FILE, RECORDED
from plumbline.errors import BaselineError

# layers whose operations documented budgets break down; only a node that measures one of them shows the budgets
BUDGETED = frozenset({"rados", "rbd"})
_WORDS = {
    Part.CEPH: "another Ceph version",
    Part.KERNEL: "another kernel",
    Part.FIO: "another fio version",
    Part.DISKS: "other disks or firmware",
    Part.NICS: "other network ports, drivers or firmware",
    Part.TUNING: "other kernel or queue settings",
}


class Book(Struct, frozen=True):
    """The baselines, and the selection made among them for this node's targets. ``recorded_error``: why the recorded
    file is not used, if it is unusable. ``measured_on``: profile of each measured baseline → the environment recorded
    in its file. ``budgets``: profile and documented latency budget. ``near``: the documented row nearest to each
    experiment of this node. ``fleet_classes``: source, profile and class of each baseline of a fleet. ``class_site``:
    the figures of its class that are used; ``class_error``: why its file is not."""

    selection: Selection
    recorded_error: BaselineError | None = None
    measured_on: Mapping[str, Fingerprint] = field(default_factory=dict)
    budgets: tuple[tuple[str, Budget], ...] = ()
    near: Mapping[Experiment, Nearest] = field(default_factory=dict)
    fleet_classes: tuple[tuple[str, str, str], ...] = ()
    class_site: LoadedSite | None = None
    class_error: BaselineError | None = None

    def in_force(self, target: Target) -> BaselineEntry | None:
        same = (verdict for verdict in self.selection.verdicts if experiment(verdict.target) == experiment(target))
        return next((verdict.in_force for verdict in same), None)

    def shown(self, target: Target) -> BaselineEntry | None:
        """The baseline to show beside ``target``: the one in force, else one that may only be shown."""
        entries = (
            comparable.entry
            for comparable in self.selection.comparable
            if experiment(comparable.entry) == experiment(target)
        )
        return self.in_force(target) or next(entries, None)

    def documented(self, target: Target) -> str:
        """The nearest documented figure in words (:attr:`.Nearest.text`); empty if no document has one."""
        near = self.near.get(experiment(target))
        return near.text if near else ""

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
    targets: Sequence[Target],
    environment: Mapping[str, str] | None = None,
    before: Book | None = None,
) -> Book:
    """Read and select all baselines. ``where`` names the configuration in errors; ``environment`` has the ``PATH`` of
    ssh-keygen; the figures of the class stay as in ``before`` if its file is refused. Raises :class:`ConfigError` for
    an unknown profile, :class:`BaselineError` for an invalid file in the configuration."""
    # parsing them takes 2 MiB and 0.1 s, in vain on a node without probes
    profiles = load_profiles() if targets or config.judge else {}
    check_judge(config.judge, profiles, where)
    entries = [entry for profile in profiles.values() for entry in profile.entries]
    sites = [read_site(Path(name), host=host) for name in config.files]

    def own(name: str) -> tuple[LoadedSite | None, BaselineError | None]:
        if not (storage / name).exists():
            return None, None
        try:
            return read_own(storage / name, config, host=host, environment=environment or {}), None
        except BaselineError as error:
            return None, error

    (class_site, class_error), (recorded, error) = own(CLASS_FILE), own(RECORDED)
    if class_error is not None and before is not None:
        class_site = before.class_site
    sites += [site for site in (class_site, recorded) if site is not None]
    entries += [entry for site in sites for entry in site.entries]
    here = BUDGETED & {target.layer for target in targets}
    budgets = tuple((name, budget) for name, loaded in profiles.items() for budget in loaded.profile.budgets if here)
    near = nearest(entries, targets)
    classes = tuple(
        (site.file.source, site.entries[0].profile, site.file.fleet_class) for site in sites if site.file.fleet_class
    )
    return Book(
        select(entries, targets, config.judge),
        error,
        measured_on(sites),
        budgets,
        near,
        classes,
        class_site,
        class_error,
    )


def read_own(path: Path, config: BaselineConfig, *, host: str, environment: Mapping[str, str]) -> LoadedSite:
    """A file of the storage path, signed where the configuration asks for it. Raises :class:`BaselineError`."""
    text = site_text(path)
    if config.allowed_signers is not None:
        check_signed(path, text, Path(config.allowed_signers), environment=environment)
    site = parse_site(text, where=str(path), host=host)
    if path.name == CLASS_FILE and site.file.source != Source.CLASS.value:
        raise BaselineError(str(path), "is not the baseline of a class", key="source", value=site.file.source)
    return site


def measured_on(sites: Sequence[LoadedSite]) -> dict[str, Fingerprint]:
    """The fingerprints of the files measured on this host; if two files share a name, the last one wins."""
    return {
        site.entries[0].profile: site.file.fingerprint
        for site in sites
        if site.file.source == Source.MEASURED.value and site.file.fingerprint is not None
    }


def mismatched(selection: Selection) -> Iterator[str]:
    """One sentence for each measured operation whose only baselines have other parameters."""
    for row in selection.mismatched:
        target, entry = row.target, row.entry
        yield (
            f"{target.probe}: {target.operation} {target.workload} is not compared: the {entry.source} baseline"
            f" {entry.profile} was measured with other parameters ({entry.config_hash}, here {target.config_hash})"
        )


def outdated(measured_on: Mapping[str, Fingerprint], now: Fingerprint) -> Iterator[str]:
    """One sentence for each part of this node that changed since a measured baseline was recorded."""
    for profile, then in measured_on.items():
        for change in changes(then, now):
            yield f"baseline {profile} was measured with {_WORDS[change.part]}: {change.then}; now {change.now}"
