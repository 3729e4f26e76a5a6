"""Software RAID: is every disk there, and do the copies agree?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from plumbline.checks.array.facts import ArrayFacts
from plumbline.checks.model import Check, Fix, Severity, Verdict
from plumbline.checks.text import listed, plural
from plumbline.sources.disk.md import MdArray

_REBUILDS = frozenset({"recover", "resync", "reshape"})
_MIRRORS = frozenset({"raid1", "raid10"})
_PARITIES = frozenset({"raid4", "raid5", "raid6"})
_RUNS_NOT = frozenset({"inactive", "broken"})


def _degraded(facts: ArrayFacts) -> Iterator[Verdict]:
    for raid in facts.raids:
        if raid.level == "container" or raid.state == "clear":
            continue  # a container holds disks and no data; a cleared array is no longer one
        if raid.state in _RUNS_NOT:
            yield _not_running(raid)
        elif raid.degraded_disks is not None:
            yield _missing(raid, raid.degraded_disks)


def _not_running(raid: MdArray) -> Verdict:
    fix = Fix(
        f"mdadm --detail {_device(raid)}",
        caution="This only shows. Where the missing disks are back: mdadm --stop, then mdadm --assemble --scan.",
    )
    is_ = f"{raid.state}, with {plural(len(raid.members), 'disk')} there"
    return Verdict(raid.device, is_, "running", fix, Severity.CRITICAL, "Nobody can read this array.")


def _missing(raid: MdArray, missing: int) -> Verdict:
    whole = "all disks in place" if raid.disks is None else f"all {plural(raid.disks, 'disk')} in place"
    if not missing:
        return Verdict(raid.device, whole, whole)
    left = None if raid.redundant_disks is None else raid.redundant_disks - missing
    faulty = [member.device for member in raid.members if member.faulty]
    is_ = f"{raid.level}, {plural(missing, 'disk')} missing"
    if faulty:
        is_ += f" (faulty: {listed(faulty)})"
    because = ""
    if left is not None:
        because = "One more lost disk can lose the data." if left <= 0 else f"It can lose {left} more."
    if raid.sync_action in _REBUILDS:
        done = "" if raid.sync_ratio is None else f", {raid.sync_ratio:.1%} done"
        is_ += f"; {raid.sync_action}{done}"
        fix = Fix("cat /proc/mdstat", caution="This only shows: it is being rebuilt, and there is nothing to do.")
    else:
        fix = _refill(raid, faulty)
    severity = Severity.CRITICAL if left is not None and left <= 0 else Severity.WARNING
    return Verdict(raid.device, is_, whole, fix, severity, because)


def _refill(raid: MdArray, faulty: list[str]) -> Fix:
    """A disk that merely dropped out can be re-added; only a faulty member shows which one it was."""
    device = _device(raid)
    if not faulty:
        return Fix(
            f"mdadm --detail {device}",
            caution="This only shows what is missing. A disk that dropped out comes back by mdadm "
            f"{device} --re-add /dev/<disk>, a new one by --add.",
        )
    names = " ".join(shlex.quote(f"/dev/{name.replace('!', '/')}") for name in faulty)
    return Fix(
        f"mdadm {device} --remove {names} && mdadm {device} --re-add {names}",
        caution="Only if the disk itself is sound (smartctl -H, dmesg): otherwise replace it, and --add the new one.",
    )


def _mismatch(facts: ArrayFacts) -> Iterator[Verdict]:
    for raid in facts.raids:
        if raid.mismatch_sectors is None or raid.level not in _MIRRORS | _PARITIES:
            continue
        should = "no sectors that disagree"
        if not raid.mismatch_sectors:
            yield Verdict(raid.device, should, should)
            continue
        mirror = raid.level in _MIRRORS
        fix = Fix(
            f"echo repair > /sys/block/{shlex.quote(raid.device)}/md/sync_action",
            caution="Look for a failing disk first (smartctl, dmesg). A mirror takes over one copy and cannot know "
            "whether it is the right one; parity is computed anew from the data.",
        )
        yield Verdict(
            raid.device,
            f"{raid.level}, {plural(raid.mismatch_sectors, 'sector')} disagree",
            should,
            fix,
            Severity.INFO if mirror else Severity.WARNING,
            "On mirrors swap and files mapped into memory make harmless ones: pages that changed while they were being"
            " written, and that nobody reads again."
            if mirror
            else "",
        )


def _device(raid: MdArray) -> str:
    return shlex.quote(f"/dev/{raid.device}")


DEGRADED = Check(
    "array.md-degraded",
    "Have every disk of a software RAID in place.",
    "md arrays with redundancy, and those that do not run. Containers and stopped arrays are left in peace.",
    "An array that misses a disk is slower, and has lost the redundancy it was made for.",
    "Documentation/admin-guide/md.rst (array_state, degraded); mdadm(8)",
    Severity.WARNING,
    _degraded,
    "mdadm --detail /dev/<array>",
)
MISMATCH = Check(
    "array.md-mismatch",
    "Have copies and parity agree.",
    "md arrays of level raid1, raid4, raid5, raid6 and raid10, after a check or repair.",
    "Where they disagree, what is read depends on which disk is asked, and a rebuild writes what is wrong.",
    "Documentation/admin-guide/md.rst (mismatch_cnt); md(4) (scrubbing and mismatches)",
    Severity.WARNING,
    _mismatch,
    "echo repair > /sys/block/<array>/md/sync_action",
)

CHECKS = (DEGRADED, MISMATCH)
