"""``plumbline baseline record``: measure this site's layers bottom-up, compute the statistics, check, write.

A running daemon continues. Every finished run is kept in the storage path, so that an interruption costs one run. The
file itself is written at the end, atomically, and only when it holds everything that was asked for and can be true.
"""

import argparse
import math
import os
import platform
import pwd
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

from msgspec import Struct
from rich.console import Console

from plumbline import __version__
from plumbline.background.fingerprint import read_fingerprint
from plumbline.baseline.files import SCHEMA_VERSION
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import Target
from plumbline.baseline.record import consistency
from plumbline.baseline.record.level import missing
from plumbline.baseline.record.statistics import EntryRecord
from plumbline.baseline.record.text import format_record
from plumbline.baseline.record.walk import RUNS, STOPPED, Progress, Step, Walked, entries_of, file_of, walk
from plumbline.baseline.record.work_file import WorkFile
from plumbline.baseline.site import Device, SiteEntry, SiteFile, parse_site
from plumbline.baseline.units import Quantity
from plumbline.baseline.writer import check_target, kept, write_text
from plumbline.commands.node import Node, this_node
from plumbline.commands.recording_steps import Request, Steps, choose, identities_of, with_run_duration
from plumbline.commands.shared import INTERRUPTED, complain, duration, set_by_signals
from plumbline.core.console import Step as BarStep
from plumbline.core.console import line, make_console, progress, table
from plumbline.core.roots import Roots
from plumbline.core.storage_names import CANDIDATE, RECORD_LOCK, RECORDED
from plumbline.core.units import duration_text, si
from plumbline.errors import BaselineError, ConfigError, PlumblineError, ProbeRefused, Unavailable
from plumbline.probes.ceph.cluster import CephGuard
from plumbline.probes.run import gates
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.model import ClusterGuard
from plumbline.probes.run.plan import targets_of
from plumbline.probes.run.run_now import check_storage
from plumbline.probes.run.storage import holds_baseline
from plumbline.sources.disk.block import read_block_devices
from plumbline.sources.disk.diskusers import read_disk_users
from plumbline.sources.net.routes import read_lower_ports


class Stopped(PlumblineError):
    """Stopped on request; finished runs are kept."""


class Recording(Struct, frozen=True):
    """A finished recording and its file; ``kept``: where the file it replaced is."""

    file: SiteFile
    records: tuple[EntryRecord, ...]
    path: Path
    kept: Path | None
    left_out: Mapping[str, str]  # Probes that could not be recorded here, and why


def run(options: argparse.Namespace) -> int:
    request = Request(
        layers=options.layer,
        probes=options.probe,
        without=options.without,
        runs=options.runs,
        run_duration_s=duration(options.run_duration, "--run-duration"),
        latency_target_s=duration(options.latency_target, "--latency-target"),
        latency_percentile=options.latency_percentile,
        force=options.force,
        candidate=options.candidate,
        fleet_class=options.fleet_class,
    )
    if options.candidate and options.output:
        raise ConfigError("--candidate", "says where to write, as --output does; use one of them")
    node = this_node(options, lambda config: with_run_duration(config, request.run_duration_s))
    stopping, console = threading.Event(), make_console()
    with set_by_signals(stopping), closing(CephGuard(node.config.ceph, node.config.gates, host=node.host)) as cluster:
        try:
            with record_progress(console) as show:
                done = record_here(
                    node,
                    request,
                    cluster=cluster,
                    output=options.output,
                    replace=options.replace,
                    restart=options.restart,
                    stopping=stopping,
                    progress=show,
                    say=complain,
                )
        except Stopped as stopped:
            complain(f"plumbline: {stopped}")
            return INTERRUPTED
    print_record(console, done)
    for name, why in done.left_out.items():
        complain(f"left out: {name}: {why}")
    return 0


def record_here(
    node: Node,
    request: Request,
    *,
    cluster: ClusterGuard | None = None,
    output: Path | None = None,
    replace: bool = False,
    restart: bool = False,
    stopping: threading.Event,
    progress: Callable[[Progress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Recording:
    """Measure what is missing, check, write. ``output`` defaults to ``baseline.yaml`` in the storage path. ``replace``:
    an existing file may be replaced; ``restart``: runs that an earlier recording kept are repeated; ``say`` gets a line
    before the start, if there is something to say. Raises :class:`BaselineError` when nothing can or should be written,
    :class:`Stopped` when stopped from outside; finished runs are kept in both cases."""
    if request.runs < 2:
        raise BaselineError("record", "one run shows no spread; use at least 2", key="runs", value=request.runs)
    check_storage(node.storage)
    path = output or node.storage / (CANDIDATE if request.candidate else RECORDED)
    if path == node.storage / RECORDED and node.config.baseline.allowed_signers is not None:
        reason = (
            "only signed files are used here (baseline.allowed_signers): record it with `plumbline fleet record`,"
            " or say where with --output"
        )
        raise BaselineError(str(path), reason)
    overwrite = replace or request.force or request.candidate
    over = None if not overwrite else holds_baseline("measured") if request.candidate else kept(path)
    check_target(path, over=over)
    items, left_out = choose(node.plan, request)
    steps = Steps(node.run_once(cluster, stopping), request, roots=node.roots, stopping=stopping).of(items)
    if not steps:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise BaselineError("record", f"no probe measures anything here ({reasons or 'enable one'})")
    with gates.HeavyLock(node.storage / RECORD_LOCK).hold("plumbline baseline record"):
        fingerprint = read_fingerprint(node.roots, environment=os.environ, ceph=node.config.ceph)
        work = WorkFile(node.storage, release=__version__, host=node.host, fingerprint=fingerprint)
        walked = _walk(steps, work, restart=restart, progress=progress, say=say)
        left_out |= {name: str(error) for name, error in walked.failed.items() if _tool_missing(error)}
        if not walked.runs:
            raise BaselineError("record", "; ".join(f"{name}: {why}" for name, why in left_out.items()))
        targets = [target for item in items for identity in identities_of(item) for target in targets_of(identity)]
        records = entries_of(targets, walked.runs, quantile)
        refusals = [line for record in records for line in record.refusals]
        if refusals and not request.force:
            raise _refusal(refusals, "--restart measures again when this host is quiet, --force accepts it with a note")
        head = _head(node, walked, targets, fingerprint, request.fleet_class)
        notes = [*_notes(request, records), *(f"left out: {name}: {why}" for name, why in left_out.items())]
        text, file = _checked(head, records, notes, node, where=str(path), force=request.force)
        backup = write_text(path, text, over=over)
        work.remove()
    return Recording(file, records, path, backup, left_out)


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
        raise Stopped(f"stopped; finished runs are kept in {work.path}: the next record continues with them") from None
    missing = {name: error for name, error in walked.failed.items() if not _tool_missing(error)}
    if missing:
        reasons = "; ".join(f"{name}: {error}" for name, error in missing.items())
        raise _refusal(
            [f"{len(missing)} of {len(steps)} measured nothing: {reasons}"],
            "fix it and record again (finished runs are kept), or leave it out with --without NAME",
        )
    return walked


def _refusal(reasons: Iterable[object], advice: str) -> BaselineError:
    return BaselineError("record", f"{'; '.join(map(str, reasons))}. Nothing was written: {advice}")


def _tool_missing(error: PlumblineError) -> bool:
    return isinstance(error, ProbeRefused) and error.reason == "tool-missing"


def _notes(request: Request, records: Sequence[EntryRecord]) -> list[str]:
    """What the person who signs the baseline has to know."""
    notes = []
    if request.runs < RUNS:
        notes.append(f"only {request.runs} runs of each probe, on request (--runs); {RUNS} are recommended")
    if request.run_duration_s is not None:
        length = si(request.run_duration_s, "s")
        notes.append(f"runs of {length} where time bounds them, not of the probes' own length (--run-duration)")
    notes += _level_notes(request, records)
    for record in records:
        notes += [f"accepted by --force: {line}" for line in record.refusals]
        notes += [line for line in record.warnings if line not in record.refusals]
    return notes


def _level_notes(request: Request, records: Sequence[EntryRecord]) -> Iterator[str]:
    """What the recording was too short for: one line for all canaries, because all were recorded as long."""
    short = [record.level for record in records if record.level is not None and missing(record.level)]
    if short:
        needed_s = {span: needed for level in short for span, needed in missing(level).items()}
        left_out = [f"{span} ({duration_text(needed)})" for span, needed in sorted(needed_s.items(), key=itemgetter(1))]
        measured = duration_text(min(level.measured_s for level in short))
        run = math.ceil(max(needed_s.values()) / 60 / request.runs)
        yield (
            f"spread of medians left out, because a canary was measured for {measured} and not three times the span: "
            f"{', '.join(left_out)}; --run-duration {run}m records all"
        )


def _checked(
    head: SiteFile, records: Sequence[EntryRecord], notes: list[str], node: Node, *, where: str, force: bool
) -> tuple[str, SiteFile]:
    """The text to write, of figures that can be true, or that were accepted although they can't."""
    file = file_of(head, records, notes)
    loaded = parse_site(format_record(file), where=where, host=node.host)
    measured = consistency.with_workloads(loaded.entries, [entry.device for entry in file.entries])
    findings = consistency.check(measured, _place(node, file))
    if findings and not force:
        raise _refusal(findings, "--restart measures again, --force accepts it with a note")
    if findings:
        file = file_of(head, records, [*notes, *(f"accepted by --force: {finding}" for finding in findings)])
    return format_record(file), file


def _place(node: Node, file: SiteFile) -> consistency.Place:
    try:
        holds_osds = bool(read_disk_users(node.roots).osds())
    except Unavailable:
        holds_osds = True  # unknown: the rules that need it don't judge
    devices = {entry.device for entry in file.entries if entry.device}
    return consistency.Place(holds_osds, {device: read_lower_ports(device, node.roots) for device in devices})


def _head(
    node: Node, walked: Walked, targets: Sequence[Target], fingerprint: Fingerprint, fleet_class: str
) -> SiteFile:
    tools = {run.tool: run.tool_version for run in walked.runs if run.tool}
    return SiteFile(
        schema_version=SCHEMA_VERSION,
        source="measured",
        name=node.host,  # the name in alerts: "the measured baseline stor01"
        host=node.host,
        fleet_class=fleet_class,
        recorded=datetime.fromtimestamp(int(max(run.finished for run in walked.runs)), UTC),
        recorded_by=_who(),
        kernel=platform.release(),
        tools={"plumbline": __version__} | tools,
        devices=_devices(node.roots, {target.device for target in targets if target.layer != "network"}),
        fingerprint=fingerprint,
        entries=(),
    )


def _who() -> str:
    """The user, and with sudo the original one too."""
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = f"uid {uid}"
    before = os.environ.get("SUDO_USER", "")
    return f"{before} (as {user})" if before and before != user else user


def _devices(roots: Roots, names: set[str]) -> tuple[Device, ...]:
    try:
        devices = read_block_devices(roots, on_skip=lambda _item, _reason: None, keep=names.__contains__)
    except Unavailable:
        return ()
    return tuple(
        Device(
            name=device.name,
            device_class=device.device_class or "unknown",
            model=device.model or "",
            serial=device.serial or "",
        )
        for device in devices
    )


def print_record(console: Console, done: Recording) -> None:
    heads = (
        "Layer", "Probe", "Workload", "Operation", "Class", "p50", "p99", "IOPS", "Throughput", "At latency", "MAD",
        "Spread", "Tolerance",
    )  # fmt: skip
    table(console, heads, [_row(record) for record in done.records])
    for note in done.file.notes:
        line(console, f"note: {note}", "yellow")
    line(console, f"written to {done.path}" + (f"; the old one is {done.kept}" if done.kept else ""))


def _row(record: EntryRecord) -> tuple[str, ...]:
    entry, target = record.entry, record.targets[0]
    latency = dict(entry.latency.items())
    several = len(record.targets) > 1
    return (
        record.layer,
        f"{target.probe.partition('/')[0]} ({len(record.targets)})" if several else target.probe,
        entry.workload,
        entry.operation,
        entry.device_class,
        _short(latency.get("p50") or latency.get("mean"), "s"),
        _short(latency.get("p99"), "s"),
        f"{entry.iops.value:.0f}" if entry.iops else "",
        _short(entry.throughput, "B/s"),
        _at_latency(entry),
        f"±{entry.mad_ratio:.1%}" if entry.mad_ratio is not None else "",
        f"×{entry.spread_ratio:.2f}" if entry.spread_ratio else "",
        f"×{entry.tolerance_ratio:.2f}" if entry.tolerance_ratio else "",
    )


def _at_latency(entry: SiteEntry) -> str:
    result = entry.iops_at_latency
    if result is None:
        return ""
    return (
        f"{result.iops.value:.0f} IOPS at {result.target.text} (p{result.percentile:g}), {result.queue_depth} in flight"
    )


def _short(figure: Quantity | None, unit: str) -> str:
    return "" if figure is None else si(figure.value, unit)


@contextmanager
def record_progress(console: Console) -> Iterator[Callable[[Progress], None]]:
    """On a terminal a bar with layer, probe, run and the time left; elsewhere one line per run. It advances by time,
    not by runs: a run of one probe takes a second, of another five minutes."""
    began = time.monotonic()

    def step(now: Progress) -> BarStep:
        spent, left, text = time.monotonic() - began, left_text(now.left_s), progress_text(now)
        counted = "" if now.done == now.total else f" ({now.done + 1} of {now.total}{f', {left}' if left else ''})"
        more = " ".join(filter(None, (left, now.stage, now.figures)))
        return BarStep(text, spent / ((spent + now.left_s) or 1.0), more=more, line=text + counted)

    with progress(console, "reading this host") as show:
        yield lambda now: show(step(now))


def progress_text(now: Progress) -> str:
    """``disk: fio-a, run 2 of 5``."""
    if now.done == now.total:
        return f"{now.total} runs done"
    return f"{now.layer}: {now.step}, run {now.run} of {now.runs}"


def left_text(seconds: float) -> str:
    """``about 4 min left``."""
    return f"about {duration_text(seconds)} left" if seconds >= 1 else ""
