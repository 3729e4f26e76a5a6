"""What a check says.

A check is one documented advice. Asked about a host it gives a finding for each subject that the advice applies to,
met or not; where it does not apply, or where the facts are not known, it says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

F = TypeVar("F")


class Severity(StrEnum):
    """How much an advice that is not met matters."""

    CRITICAL = "critical"
    """The host serves badly because of it now."""
    WARNING = "warning"
    """Data is being lost, or redundancy or speed that was paid for is missing."""
    INFO = "info"
    """Worth doing when convenient."""

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return _ORDER.index(self)


_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True)
class Keep:
    """What makes a fix outlast a restart: ``content`` has to stand in ``file``, beside whatever stands there already.

    ``place`` says where in it, when that matters.
    """

    file: str
    content: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """``now`` is a command for a root shell, ready to be pasted; names in it are quoted.

    ``keep`` is ``None`` when the command lasts by itself. ``caution``: what the command does besides, or what has to
    be made sure of first.
    """

    now: str
    keep: Keep | None = None
    caution: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One subject judged: its name, what is, what should be. Not met exactly when there is a ``fix``."""

    subject: str
    is_: str
    should: str
    fix: Fix | None = None
    severity: Severity | None = None
    """``None``: the check's own."""
    because: str = ""
    """What is particular about this case, said after the check's ``why``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict with the check it came from: everything that a table, a page or a metric shows."""

    check: str
    subject: str
    severity: Severity
    met: bool
    is_: str
    should: str
    why: str
    source: str
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Check(Generic[F]):
    """One advice. ``id`` is stable and dotted: dashboards and silences name it."""

    id: str
    advice: str
    """In one line, as an instruction."""
    applies: str
    """To what, and when: the facts that ``judge`` asks for, in words."""
    why: str
    source: str
    severity: Severity
    judge: Callable[[F], Iterator[Verdict]] = field(compare=False)
    fix: str = ""
    """The command, with what varies in angle brackets; for the documentation."""

    def findings(self, facts: F) -> Iterator[Finding]:
        """A finding for each subject the advice applies to."""
        for each in self.judge(facts):
            met = each.fix is None
            yield Finding(
                check=self.id,
                subject=each.subject,
                severity=self.severity if met else each.severity or self.severity,
                met=met,
                is_=each.is_,
                should=each.should,
                why=f"{self.why} {each.because}".rstrip(),
                source=self.source,
                fix=each.fix,
            )


def worst_first(findings: Iterator[Finding]) -> tuple[Finding, ...]:
    """Not met ones first, the most severe at the top; then by check and subject, so that the order never wavers."""
    return tuple(sorted(findings, key=lambda each: (each.met, each.severity.rank, each.check, each.subject)))
