#!/usr/bin/env python3
"""Are the dependencies what we mean them to be, and is anything known against them?

Usage: python -m requirements.audit [--offline]

Two halves. The first needs no network and always runs: every release pinned exactly and with hashes, one version of
one package in the locks that are installed together, the locks fit pyproject.toml and the ``.in`` files, what is
installed is what is locked, and its licences are allowed. The second has pip-audit ask the vulnerability service of the
package index for every release; a release that could not be asked about is named, and never counts as one without
findings.

Exit code: 0 good, 1 something is wrong or vulnerable, 3 the first half is good and the service could not be asked
(with ``--offline``: was not asked, 0, and the last line says so).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import cast

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from requirements.licences import LicenceError, allowed, declared
from requirements.locks import ROOT, SHIPPED, LockError, Pinned, every_lock, parse_wanted, read_lock

GOOD, WRONG, NOT_ASKED = 0, 1, 3
TOGETHER = (*SHIPPED, "build.txt", "dev.txt")
"""Installed into one environment, that of the tests; others have one of their own."""
ASK_SECONDS = 300
"""For all releases together; the service answers in about a second a release."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the vulnerability service said. ``findings``: one line each; ``unasked``: (name, why) of what it said
    nothing about."""

    findings: tuple[str, ...]
    unasked: tuple[tuple[str, str], ...]


def disagreements(locks: Mapping[str, Sequence[Pinned]]) -> Iterator[str]:
    """A package in two versions: the tests would run another one than the daemon."""
    seen: dict[str, tuple[str, str]] = {}
    for lock, pins in locks.items():
        for pin in pins:
            version, where = seen.setdefault(pin.name, (pin.version, lock))
            if version != pin.version:
                yield f"{pin.name}: {version} in {where}, {pin.version} in {lock}; run: make lock UPGRADE="


def unmet(wanted: Iterable[Requirement], pins: Sequence[Pinned], lock: str, source: str) -> Iterator[str]:
    """Requirements that the lock does not hold, or not in a version that fits."""
    by_name = {pin.name: pin for pin in pins}
    for each in wanted:
        pin = by_name.get(canonicalize_name(each.name))
        if each.url:
            yield f"{source}: {each.name} is taken from an address; name a release"
        elif pin is None:
            yield f"{source}: {each.name} is missing in {lock}; run: make lock UPGRADE="
        elif not each.specifier.contains(pin.version, prereleases=True):
            yield f"{source}: {each} does not allow the {pin.version} of {lock}; run: make lock UPGRADE="


def licence_troubles(name: str, data: Message) -> Iterator[str]:
    """What speaks against a package's licences; each of several has to be allowed."""
    licences = declared(data)
    if not licences:
        yield f"{name}: its metadata declares no licence that can be read"
    for each in licences:
        try:
            if not allowed(each):
                yield f"{name}: licence {each!r} is not among those of requirements/licences.py"
        except LicenceError as error:
            yield f"{name}: {error}"


def installed_troubles(pins: Iterable[Pinned]) -> Iterator[str]:
    """What of the shipped releases is not installed here, or not in the locked version, or has a wrong licence."""
    for pin in pins:
        try:
            data = metadata.metadata(pin.name)
        except metadata.PackageNotFoundError:
            yield f"{pin.name}: not installed here, its licence is not known; run: make audit"
            continue
        if data["Version"] != pin.version:
            yield f"{pin.name}: {data['Version']} is installed, {pin.version} is locked; run: make audit"
            continue
        yield from licence_troubles(pin.name, cast(Message, data))


def offline_troubles(root: Path = ROOT) -> list[str]:
    """Everything that can be found wrong without a network."""
    troubles: list[str] = []
    locks: dict[str, Sequence[Pinned]] = {}
    for name in every_lock(root):
        try:
            locks[name] = read_lock(name, root)
        except (LockError, OSError) as error:
            troubles.append(str(error))
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    own = [Requirement(each) for each in project["dependencies"]]
    extras = {name: [Requirement(each) for each in wanted] for name, wanted in project["optional-dependencies"].items()}
    wanted = {"run.txt": own} | {f"{name}.txt": own + more for name, more in extras.items()}
    for lock, requirements in wanted.items():
        if lock not in SHIPPED:
            troubles.append(f"pyproject.toml: the extra of {lock} is not in SHIPPED of requirements/locks.py")
        troubles += unmet(requirements, locks.get(lock, ()), lock, "pyproject.toml")
    for path in sorted((root / "requirements").glob("*.in")):
        lock = path.with_suffix(".txt").name
        source = f"requirements/{path.name}"
        try:
            troubles += unmet(parse_wanted(path.read_text("utf-8"), source), locks.get(lock, ()), lock, source)
        except LockError as error:
            troubles.append(str(error))
    troubles += disagreements({lock: locks[lock] for lock in TOGETHER if lock in locks})
    shipped = {pin.name: pin for lock in SHIPPED for pin in locks.get(lock, ())}
    return troubles + list(installed_troubles(shipped.values()))


def parse_answer(text: str) -> Answer:
    """pip-audit's JSON: ``{"dependencies": [{"name", "version", "vulns": [{"id", "fix_versions"}]} | {"name",
    "skip_reason"}]}``. Where the service can't be reached pip-audit skips every release, says "No known
    vulnerabilities found" and exits with 0 (2.10.1): so what was skipped is kept apart. Raise ``ValueError``
    for anything else."""
    try:
        rows = json.loads(text)["dependencies"]
        findings = tuple(
            f"{row['name']} {row['version']}: {found['id']}"
            + (f", mended in {', '.join(found['fix_versions'])}" if found["fix_versions"] else ", not mended yet")
            for row in rows
            for found in row.get("vulns", ())
        )
        unasked = tuple((row["name"], _reason(row)) for row in rows if "skip_reason" in row)
        return Answer(findings, unasked)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"pip-audit answered what is not understood: {error}: {text[:200]!r}") from error


def _reason(row: Mapping[str, str]) -> str:
    """Why a release was skipped, without its own name, so that the same reason is told once."""
    return row["skip_reason"].partition(": " + row["name"])[0]


def ask(locks: Sequence[str], root: Path = ROOT) -> Answer:
    """Ask about every release of the locks. Raise ``ValueError`` where pip-audit could not do its work at all."""
    files = [word for name in locks for word in ("-r", str(root / "requirements" / name))]
    argv = [sys.executable, "-m", "pip_audit", *files, "--disable-pip", "--require-hashes", "-f", "json"]
    try:
        done = subprocess.run(
            [*argv, "--progress-spinner", "off"], capture_output=True, text=True, check=False, timeout=ASK_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"no answer within {ASK_SECONDS} s") from error
    if not done.stdout.strip():
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ValueError(f"pip-audit: exit code {done.returncode}: {last[:300]}")
    return parse_answer(done.stdout)


def verdict(answer: Answer, releases: int) -> tuple[int, list[str]]:
    """(exit code, lines): a finding is worse than what could not be asked."""
    lines = [f"vulnerable: {each}" for each in answer.findings]
    if answer.unasked:
        lines.append(f"not asked: {', '.join(name for name, _ in answer.unasked)}")
        lines += sorted({f"  because: {reason}" for _, reason in answer.unasked})
        lines.append(
            f"vulnerabilities: {len(answer.unasked)} of {releases} releases could NOT be asked about, nothing is known"
            " of those (is the vulnerability service of the package index reachable from here?)"
        )
    elif not answer.findings:
        lines.append(f"vulnerabilities: none known of {releases} releases")
    return (WRONG if answer.findings else NOT_ASKED if answer.unasked else GOOD), lines


def main(arguments: Sequence[str]) -> int:
    """See the module."""
    if set(arguments) - {"--offline"}:
        print(__doc__, file=sys.stderr)
        return 2
    troubles = offline_troubles()
    for each in troubles:
        print(f"wrong: {each}", file=sys.stderr)
    if troubles:
        return WRONG
    releases = {(pin.name, pin.version) for lock in every_lock() for pin in read_lock(lock)}
    print(f"{len(releases)} releases: pinned with hashes, locks agree, licences of what is shipped allowed")
    if "--offline" in arguments:
        print("vulnerabilities: NOT asked (--offline)")
        return GOOD
    try:
        code, lines = verdict(ask(every_lock()), len(releases))
    except ValueError as error:
        code, lines = NOT_ASKED, [f"vulnerabilities: could NOT be asked: {error}"]
    print("\n".join(lines), file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
