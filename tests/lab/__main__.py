"""``make lab``: boot a guest with the Debian package, take the rows of the table, write ``docs/lab.md``.

Usage: python -m lab [--suite trixie] [--only nvme,bond] [--out docs/lab.md]
       python -m lab --cluster --mitigations
       python -m lab --cluster [--suite forky] [--only link,disk] [--out docs/verdicts.md]
"""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.packages.project import BuildError

from lab import product, report
from lab.cluster import table
from lab.cluster.run import measure, run
from lab.cluster.scenarios import SCENARIOS
from lab.guest import Guest, GuestError, NoAnswer, booted
from lab.image import SUITES
from lab.rows import GROUPS
from lab.table import RIGHT, UNSHOWN, WRONG, Group, NotShown, Row, said
from support import debian_host


def main() -> int:
    """Exit code: 0 every row taken is right or can't be shown; 1 one is wrong, or the guest did not come up."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # hosts, disks and networks are taken down
    os.environ["RUNTIME_DIRECTORY"] = ""  # this machine's commands are to find no daemon of ours
    names = {each.name for each in (SCENARIOS if options.cluster else GROUPS)}
    if unknown := set(options.only) - names:
        kind = "fault" if options.cluster else "group"
        print(f"lab: no {kind} {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}", file=sys.stderr)
        return 1
    if reason := _missing():
        print(f"lab: {reason}", file=sys.stderr)
        return 1
    if options.cluster:
        return _cluster(options)
    options.out = options.out or report.PATH
    groups = [group for group in GROUPS if (group.name in options.only if options.only else not group.long)]
    try:
        deb = product.package(options.suite)
        _say(f"booting {options.suite} (its image is made at the first run: minutes)")
        with booted(options.suite, deb) as guest:
            kernel = guest.run("uname -r").strip()
            _say(f"kernel {kernel}, {deb.name}")
            product.ready(guest)
            results = []
            for group in groups:
                results += taken(guest, group, kernel)
                _write(options.out, results)  # a guest that ends before the last group has taken none of these with it
    except (BuildError, GuestError, RuntimeError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    wrong = [row for row in results if row.verdict.startswith(WRONG)]
    _say(f"{len(results)} rows, {len(wrong)} wrong: {options.out}")
    return 1 if wrong else 0


def _cluster(options: argparse.Namespace) -> int:
    try:
        if options.mitigations:
            return measure(options.suite, options.out or table.PATH, _say)
        return run(options.only, options.suite, options.out or table.PATH, _say)
    except (BuildError, GuestError, RuntimeError, AssertionError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _write(out: Path, results: Sequence[report.Result]) -> None:
    before = report.parse(out.read_text("utf-8")) if out.exists() else []
    out.write_text(report.render(report.merged(before, results)), "utf-8")


def taken(guest: Guest, group: Group, kernel: str) -> list[report.Result]:
    """The group's rows, one after another. A group that can't be prepared has all its rows unshown."""
    reason = ""
    try:
        product.ready(guest)  # the rows before may have restarted the daemon
        if group.prepare:
            group.prepare(guest)
    except (GuestError, NotShown) as error:
        reason = str(error)
    results = []
    for row in group.rows:
        truth, figure, verdict = _look(guest, row) if not reason else ("-", "-", f"{UNSHOWN}: {reason}")
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        words = (truth, figure, verdict)
        truth, figure, verdict = (" ".join(word.replace(" | ", " / ").split()) for word in words)
        results.append(report.Result(group.name, row.device, row.feature, kernel, truth, figure, verdict, today))
        _say(f"{group.name}: {row.device}, {row.feature}: {truth} / {figure}: {verdict}")
    return results


def _look(guest: Guest, row: Row) -> tuple[str, str, str]:
    try:
        seen = row.look(guest)
    except (NoAnswer, ValueError, LookupError, ArithmeticError) as error:  # no answer, no page, a series it lacks
        return "-", "-", f"{WRONG}: {type(error).__name__}: {error}"
    except (GuestError, NotShown) as error:
        return "-", "-", f"{UNSHOWN}: {error}"
    return said(seen.truth), said(seen.figure), RIGHT if seen.right() else WRONG


def _missing() -> str | None:
    if os.geteuid() != 0:
        return "root is needed for mounts and a Debian of its own"
    return debian_host.missing()


def _say(line: str) -> None:
    print(f"{datetime.datetime.now(datetime.UTC):%H:%M:%S} {line}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="Hold the daemon against kernels and devices.")
    parser.add_argument("--suite", choices=SUITES, default="trixie", help="the guest's Debian (trixie)")
    parser.add_argument(
        "--only", type=_words, default=(), metavar="NAME,…", help="these groups of rows, or faults (all but cephadm)"
    )
    parser.add_argument("--cluster", action="store_true", help="three hosts with a Ceph, faults and notifications")
    parser.add_argument("--mitigations", action="store_true", help="of the cluster: what helps against a slow OSD")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the report (docs/lab.md; docs/verdicts.md)")
    return parser


def _words(text: str) -> Sequence[str]:
    return text.split(",")


if __name__ == "__main__":
    sys.exit(main())
