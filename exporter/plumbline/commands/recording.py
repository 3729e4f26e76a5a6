"""``plumbline baseline record``: measure this site's layers bottom-up, compute the statistics, check, write.

A running daemon continues. Every finished run is kept in the storage path, so that an interruption costs one run. The
file itself is written at the end, atomically, and only when it holds everything that was asked for and can be true.
"""

from __future__ import annotations

import os
import platform
import pwd
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from plumbline import __version__
from plumbline.background.fingerprint import read_fingerprint
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import Target
from plumbline.baseline.record import consistency
from plumbline.baseline.record.statistics import EntryRecord
from plumbline.baseline.record.text import format_record
from plumbline.baseline.record.walk import RUNS, STOPPED, Environment, Progress, Step, Walked, entries_of, file_of, walk
from plumbline.baseline.record.work_file import WorkFile
from plumbline.baseline.site import Device, SiteFile, parse_site
from plumbline.baseline.writer import check_target, write_text
from plumbline.commands.recording_steps import Steps, Wanted, choose, identities_of
from plumbline.config.model import Config
from plumbline.config.workloads import WorkloadCatalogue, load_catalogue
from plumbline.core.roots import Roots
from plumbline.core.storage_names import RECORD_LOCK, RECORDED
from plumbline.core.units import si
from plumbline.errors import BaselineError, PlumblineError, ProbeRefused, Unavailable
from plumbline.probes import gates
from plumbline.probes.histogram import quantile
from plumbline.probes.model import ClusterGuard
from plumbline.probes.plan import ProbingPlan, targets_of
from plumbline.probes.run_now import check_storage
from plumbline.probes.single_run import RunOnce
from plumbline.sources.disk.block import read_block_devices
from plumbline.sources.disk.diskusers import read_disk_users
from plumbline.sources.net.lower_ports import read_lower_ports


class Stopped(PlumblineError):
    """Stopped on request; finished runs are kept."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A finished recording and its file; ``kept``: where the file it replaced is."""

    file: SiteFile
    records: tuple[EntryRecord, ...]
    path: Path
    kept: Path | None
    left_out: Mapping[str, str]
    """Probes that could not be recorded here, and why."""


@dataclass(frozen=True, slots=True)
class Here:
    """This host, and what a recording on it needs."""

    config: Config
    plan: ProbingPlan
    storage: Path
    host: str
    roots: Roots
    environment: Mapping[str, str]
    cluster: ClusterGuard | None = None


def record_here(
    here: Here,
    wanted: Wanted,
    *,
    output: Path | None = None,
    replace: bool = False,
    restart: bool = False,
    stopping: threading.Event,
    progress: Callable[[Progress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Recording:
    """Measure what is missing, check, write. ``output`` defaults to ``baseline.yaml`` in the storage path.

    ``replace``: an existing file may be replaced; ``restart``: runs that an earlier recording kept are repeated;
    ``say`` gets a line before the start, if there is something to say. Raises :class:`BaselineError` when nothing can
    or should be written, :class:`Stopped` when stopped from outside; finished runs are kept in both cases.
    """
    if wanted.runs < 2:
        raise BaselineError(
            "record", "one run says nothing of its spread; use at least 2", key="runs", value=wanted.runs
        )
    check_storage(here.storage)
    path = output or here.storage / RECORDED
    check_target(path, force=replace or wanted.force)
    items, left_out = choose(here.plan, wanted)
    once = RunOnce(
        storage=here.storage,
        roots=here.roots,
        environment=here.environment,
        rules=here.config.gates,
        cluster=here.cluster,
        stopping=stopping,
    )
    steps = Steps(once, wanted, roots=here.roots, stopping=stopping).of(items)
    if not steps:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise BaselineError("record", f"no probe measures anything here ({reasons or 'enable one'})")
    catalogue = load_catalogue()
    with gates.HeavyLock(here.storage / RECORD_LOCK).hold("plumbline baseline record"):
        fingerprint = read_fingerprint(here.roots, environment=here.environment, ceph=here.config.ceph)
        work = WorkFile(here.storage, release=__version__, host=here.host, fingerprint=fingerprint)
        walked = _walk(steps, work, restart=restart, progress=progress, say=say)
        left_out |= _not_here(walked)
        if not walked.runs:
            raise BaselineError("record", "; ".join(f"{name}: {why}" for name, why in left_out.items()))
        targets = [target for item in items for each in identities_of(item) for target in targets_of(each)]
        records = entries_of(targets, walked.runs, quantile)
        refusals = [line for record in records for line in record.refusals]
        if refusals and not wanted.force:
            advice = "--restart measures anew when this host is quiet, --force accepts it with a note"
            raise BaselineError("record", f"{'; '.join(refusals)}. Nothing was written: {advice}")
        environment = _environment(here, walked, targets, fingerprint)
        notes = [*_notes(wanted, records), *(f"left out: {name}: {why}" for name, why in left_out.items())]
        text, file = _checked(
            environment, records, notes, here, catalogue=catalogue, where=str(path), force=wanted.force
        )
        kept = write_text(path, text, force=replace or wanted.force)
        work.remove()
    return Recording(file, records, path, kept, left_out)


def _walk(
    steps: Sequence[Step],
    work: WorkFile,
    *,
    restart: bool,
    progress: Callable[[Progress], None],
    say: Callable[[str], None],
) -> Walked:
    """All runs, including those kept by an earlier recording; an error where a required one failed."""
    if restart:
        work.forget(frozenset(step.name for step in steps), now=time.time())
    resumed = work.resume({step.name: step.parameters for step in steps}, now=time.time())
    if resumed.line:
        say(resumed.line)
    try:
        walked = walk(steps, kept=resumed.runs, keep=work.keep, clock=time.time, progress=progress)
    except ProbeRefused as refusal:
        if refusal.reason != STOPPED:
            raise
        raise Stopped(f"stopped; finished runs are kept in {work.path}: the next record goes on with them") from None
    missing = {name: error for name, error in walked.failed.items() if not _tool_missing(error)}
    if missing:
        said = "; ".join(f"{name}: {error}" for name, error in missing.items())
        advice = "mend it and record again, which goes on where this ended, or leave it out with --without NAME"
        raise BaselineError(
            "record", f"{len(missing)} of {len(steps)} gave nothing: {said}. Nothing was written: {advice}"
        )
    return walked


def _not_here(walked: Walked) -> dict[str, str]:
    return {name: str(error) for name, error in walked.failed.items() if _tool_missing(error)}


def _tool_missing(error: PlumblineError) -> bool:
    return isinstance(error, ProbeRefused) and error.reason == "tool-missing"


def _notes(wanted: Wanted, records: Sequence[EntryRecord]) -> list[str]:
    """What the person who signs the baseline has to know."""
    notes = []
    if wanted.runs < RUNS:
        notes.append(f"only {wanted.runs} runs of each probe, on request (--runs); {RUNS} are the rule")
    if wanted.run_duration_s is not None:
        length = si(wanted.run_duration_s, "s")
        notes.append(
            f"runs of {length} where time bounds them, on request (--run-duration), not the probes' own length"
        )
    for record in records:
        notes += [f"accepted by --force: {line}" for line in record.refusals]
        notes += [line for line in record.warnings if line not in record.refusals]
    return notes


def _checked(
    environment: Environment,
    records: Sequence[EntryRecord],
    notes: list[str],
    here: Here,
    *,
    catalogue: WorkloadCatalogue,
    where: str,
    force: bool,
) -> tuple[str, SiteFile]:
    """The text to write, of figures that can be true, or that were accepted although they can't."""
    file = file_of(environment, records, notes)
    loaded = parse_site(format_record(file, catalogue), where=where, host=here.host, catalogue=catalogue)
    measured = consistency.with_workloads(loaded.entries, catalogue, [entry.device for entry in file.entries])
    findings = consistency.check(measured, _place(here, file))
    if findings and not force:
        said = "; ".join(map(str, findings))
        advice = "--restart measures anew, --force accepts it with a note"
        raise BaselineError("record", f"{said}. Nothing was written: {advice}")
    if findings:
        file = file_of(environment, records, [*notes, *(f"accepted by --force: {each}" for each in findings)])
    return format_record(file, catalogue), file


def _place(here: Here, file: SiteFile) -> consistency.Place:
    try:
        holds_osds = bool(read_disk_users(here.roots).osds())
    except Unavailable:
        holds_osds = True  # unknown: the rules that need it don't judge
    devices = {entry.device for entry in file.entries if entry.device}
    return consistency.Place(holds_osds, {device: read_lower_ports(device, here.roots) for device in devices})


def _environment(here: Here, walked: Walked, targets: Sequence[Target], fingerprint: Fingerprint) -> Environment:
    tools = {run.tool: run.tool_version for run in walked.runs if run.tool}
    return Environment(
        host=here.host,
        recorded=datetime.fromtimestamp(max(run.finished for run in walked.runs), UTC),
        by=_who(here.environment),
        kernel=platform.release(),
        tools={"plumbline": __version__} | tools,
        devices=_devices(here.roots, {target.device for target in targets if target.layer != "network"}),
        fingerprint=fingerprint,
    )


def _who(environment: Mapping[str, str]) -> str:
    """The user, and with sudo the original one too."""
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = f"uid {uid}"
    before = environment.get("SUDO_USER", "")
    return f"{before} (as {user})" if before and before != user else user


def _devices(roots: Roots, names: set[str]) -> tuple[Device, ...]:
    """The file's description of the measured disks."""
    try:
        found = read_block_devices(roots, on_skip=lambda _item, _reason: None, keep=names.__contains__)
    except Unavailable:
        return ()
    return tuple(
        Device(
            name=each.name,
            device_class=each.device_class or "unknown",
            model=each.model or "",
            serial=each.serial or "",
        )
        for each in found
    )
