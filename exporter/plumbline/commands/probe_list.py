"""``plumbline probe list``: every probe of the configuration, and what the daemon remembers of it.

The state file is read beside the daemon, without its lock: it is replaced atomically, so it is always consistent.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from plumbline.baseline.book import mismatched
from plumbline.claims.claim_file import KIND as CLAIM
from plumbline.claims.claim_file import ClaimState, read_claims
from plumbline.commands.node import this_node
from plumbline.commands.shared import roots, show
from plumbline.config.probes.base import Periodic
from plumbline.core.console import line, table
from plumbline.core.kernel import TABLE, read_kernel
from plumbline.core.roots import Roots
from plumbline.core.scheduler import next_tick, splay
from plumbline.core.storage_names import LOCK_FILE
from plumbline.core.units import seconds_text
from plumbline.probes.run.model import Identity, PeriodicProbe
from plumbline.probes.run.plan import ProbingPlan
from plumbline.probes.run.schedule import CALENDAR_SPLAY_S, interval_s
from plumbline.probes.run.state import ProbeRecord, read_state

CONTINUOUS = "continuous"
_GOOD, _BAD, _NOTE = "green", "bold red", "yellow"


class Listed(Struct, frozen=True):
    """One probe. Times are Unix seconds; ``None``: unknown, or not applicable."""

    probe: str
    type: str
    layer: str
    device_class: str
    target: str
    workload: str
    schedule: str  # every 6h, Sun 03:00, continuous
    heavy: bool
    result: str | None = None  # Result of the newest run with these parameters
    message: str = ""  # Why it failed, or why the newest tick was skipped
    finished: float | None = None
    next_start: float | None = None  # From what the daemon saved, so accurate to a minute; None without a daemon
    runs: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)


def run(options: argparse.Namespace) -> int:
    node, now = this_node(options), time.time()
    daemon = daemon_runs(node.storage, roots(options))
    rows = list_probes(node.plan, read_state(node.storage), host=node.host, now=now, daemon=daemon)
    rows += map(_reported, read_claims(node.storage, of_any_user=True)[0])

    def draw(console: Console) -> None:
        wrong = tuple(mismatched(node.book().selection))
        print_probes(console, rows, now=now, daemon=daemon, mismatched=wrong)

    show(options, {"host": node.host, "daemon": daemon, "probes": rows}, draw)
    return 0


def list_probes(
    plan: ProbingPlan, records: Mapping[str, ProbeRecord], *, host: str, now: float, daemon: bool
) -> list[Listed]:
    """Canaries first, then scheduled probes, both in configuration order."""
    rows = [
        _listed(job.name, identity, CONTINUOUS, heavy=False) for job in plan.continuous for identity in job.identities()
    ]
    return rows + [
        _periodic(probe, records.get(probe.identity.probe, ProbeRecord()), host, now, daemon) for probe in plan.periodic
    ]


def _listed(name: str, identity: Identity, schedule: str, *, heavy: bool) -> Listed:
    return Listed(
        probe=name,
        type=identity.kind,
        layer=identity.layer,
        device_class=identity.device_class,
        target=identity.target,
        workload=identity.workload,
        schedule=schedule,
        heavy=heavy,
    )


def schedule_text(config: Periodic) -> str:
    if config.at is not None:
        return str(config.at)
    return every(float(config.interval))


def every(seconds: float) -> str:
    for unit, scale in (("w", 604800.0), ("d", 86400.0), ("h", 3600.0), ("m", 60.0)):
        if seconds % scale == 0:
            return f"every {seconds / scale:g}{unit}"
    return f"every {seconds:g}s"


def next_start(probe: PeriodicProbe, record: ProbeRecord, *, host: str, now: float) -> float | None:
    """When the daemon starts it next, Unix seconds; ``None`` before its first tick."""
    at = probe.config.at
    if at is not None:
        late = splay(host, probe.identity.probe, CALENDAR_SPLAY_S)
        return at.next_after(now - late) + late
    if record.ticked is None:
        return None
    return next_tick(record.ticked, interval_s(probe), now)


def daemon_runs(storage: Path, roots: Roots) -> bool:
    """Whether a daemon holds the storage path, from the kernel's list of locks: trying the lock would take it. Compares
    inodes only: overlay and btrfs file systems show another device number there than stat(2) does."""
    try:
        inode = (storage / LOCK_FILE).stat().st_ino
        return inode in parse_flocks(read_kernel(roots.proc / "locks", TABLE).decode("ascii", "replace"))
    except OSError:
        return False


def parse_flocks(text: str) -> frozenset[int]:
    """Inodes locked by flock(2), from ``1: FLOCK  ADVISORY  WRITE 3324 08:01:123456 0 EOF`` (proc_locks(5))."""
    inodes = set()
    for entry in text.splitlines():
        words = entry.split()
        if len(words) >= 6 and words[1] == "FLOCK":
            inode = words[5].rpartition(":")[2]
            if inode.isascii() and inode.isdigit():
                inodes.add(int(inode))
    return frozenset(inodes)


def _periodic(probe: PeriodicProbe, record: ProbeRecord, host: str, now: float, daemon: bool) -> Listed:
    identity, result = probe.identity, record.result
    if result is not None and result.config_hash != identity.config_hash:
        result = None  # another experiment of the same name
    return replace(
        _listed(identity.probe, identity, schedule_text(probe.config), heavy=probe.heavy),
        result=result.outcome.value if result else None,
        message=record.last_skip or (result.message if result else ""),
        finished=result.finished if result else None,
        next_start=next_start(probe, record, host=host, now=now) if daemon else None,
        runs={outcome.value: count for outcome, count in record.runs.items()},
        skipped=dict(sorted(record.skipped.items())),
    )


def _reported(claim: ClaimState) -> Listed:
    """A claim of a volume, which a job of Kubernetes measures."""
    result, identity = claim.record.result, claim.identity
    return replace(
        _listed(identity.probe, identity, every(claim.interval_s), heavy=False),
        result=result.outcome.value if result else None,
        message=result.message if result else "",
        finished=result.finished if result else None,
        runs={outcome.value: count for outcome, count in claim.record.runs.items()},
    )


def print_probes(
    console: Console, rows: Sequence[Listed], *, now: float, daemon: bool, mismatched: Sequence[str] = ()
) -> None:
    """Print the list. ``mismatched``: baselines with other parameters, one sentence each."""
    heads = ("Probe", "Type", "Layer", "Target", "Workload", "Schedule", "Last result", "Age", "Next start", "Skipped")
    table(
        console,
        heads,
        [
            (
                row.probe,
                row.type,
                " ".join(filter(None, (row.layer, row.device_class))),
                row.target,
                row.workload,
                row.schedule,
                _result(row),
                seconds_text(max(0.0, now - row.finished)) if row.finished is not None else "",
                _next(row, now, daemon),
                ", ".join(f"{reason} {count}" for reason, count in row.skipped.items()),
            )
            for row in rows
        ],
    )
    for row in rows:
        if row.message:
            line(console, f"{row.probe}: {row.message}")
    for sentence in mismatched:
        line(console, sentence, _NOTE)
    if not daemon:
        line(console, "no daemon runs on this storage path, so no probe starts by itself", _NOTE)


def _result(row: Listed) -> Text:
    if row.schedule == CONTINUOUS:
        return Text("")
    if row.result is None:
        return Text("never ran", style=_NOTE)
    return Text(row.result, style=_GOOD if row.result == "success" else _BAD)


def _next(row: Listed, now: float, daemon: bool) -> str:
    if row.schedule == CONTINUOUS or not daemon:
        return ""
    if row.type == CLAIM:
        return "by its CronJob"
    if row.next_start is None:
        return "within 5 min"
    return f"in {seconds_text(max(0.0, row.next_start - now))}"
