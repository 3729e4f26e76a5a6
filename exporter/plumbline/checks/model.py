"""What a check reports.

A check is one piece of documented advice. It gives a finding for each subject that the advice applies to, met or not,
and none where the advice does not apply or the facts are unknown.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from plumbline.sources.distribution import Distribution
from plumbline.sources.kernel.installation import Installation, Need
from plumbline.sources.net.ownership import Manager, Owner

F = TypeVar("F")


class Severity(StrEnum):
    """How much it matters that advice is not met."""

    CRITICAL = "critical"
    """The host serves badly because of it now."""
    WARNING = "warning"
    """Data is being lost, or redundancy or speed that was paid for is missing."""
    INFO = "info"
    """Worth doing when convenient."""

    @property
    def rank(self) -> int:
        """0 is the most severe."""
        return _ORDER.index(self)


_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)


class Keep(Struct, frozen=True):
    """What makes a fix outlast a reboot: add ``content`` to ``file``, and keep what is there already.

    ``place`` says where in the file, when that matters.
    """

    file: str
    content: str
    place: str = ""


class Fix(Struct, frozen=True):
    """``now`` is a command to paste into a root shell; names in it are quoted.

    ``keep`` is ``None`` when the command is permanent by itself. ``caution``: side effects, or what to make sure of
    first.
    """

    now: str
    keep: Keep | None = None
    caution: str = ""
    need: Need | None = None
    """Set where it mends the daemon itself, not the host: then it is right for a daemon of systemd alone."""

    def where(self, installation: Installation) -> "Fix":
        """The same where the daemon runs as ``installation``."""
        if installation is Installation.HOST:
            return self
        if self.need is None:
            return replace(self, caution=f"{self.caution} {_ON_THE_NODE}".lstrip())
        return Fix(installation.step(self.need), None, RESTART_ENDS_PROBES, self.need)


RESTART_ENDS_PROBES = "The restart ends the probes that are running."
_ON_THE_NODE = "Run it on the node itself, not in the container."


class System(Struct, frozen=True):
    """What the words of a fix depend on. By default, Debian with ifupdown."""

    distribution: Distribution = Distribution()
    owner: Callable[[str], Owner | None] = lambda _device: Owner(Manager.IFUPDOWN, "/etc/network/interfaces")
    """An interface → who configures it; ``None`` if that is unknown."""
    installation: Installation = Installation.HOST


USUAL = System()
Worded: TypeAlias = Callable[[System], Fix]
"""A fix that differs between systems."""


class Verdict(Struct, frozen=True):
    """One subject judged: its name, what is, what should be. It is not met exactly when there is a ``fix``."""

    subject: str
    actual: str
    expected: str
    fix: Fix | Worded | None = None
    severity: Severity | None = None
    """``None``: the check's severity."""
    because: str = ""
    """What is particular about this case, appended to the check's ``why``."""


class Finding(Struct, frozen=True):
    """A verdict with its check: everything that a table, a page or a metric shows."""

    check: str
    subject: str
    severity: Severity
    met: bool
    actual: str
    expected: str
    why: str
    source: str
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Check(Generic[F]):
    """One piece of advice. ``id`` is stable and dotted: dashboards and silences refer to it."""

    id: str
    advice: str
    """One line, as an instruction."""
    applies: str
    """What it applies to, and when: the facts that ``judge`` needs, in words."""
    why: str
    source: str
    severity: Severity
    judge: Callable[[F], Iterator[Verdict]] = field(compare=False)
    fix: str = ""
    """The command, with placeholders in angle brackets; for the documentation."""

    def findings(self, facts: F, system: System = USUAL) -> Iterator[Finding]:
        """A finding for each subject the advice applies to, with its fix in the words of this system."""
        for verdict in self.judge(facts):
            met = verdict.fix is None
            fix = verdict.fix(system) if callable(verdict.fix) else verdict.fix
            yield Finding(
                check=self.id,
                subject=verdict.subject,
                severity=self.severity if met else verdict.severity or self.severity,
                met=met,
                actual=verdict.actual,
                expected=verdict.expected,
                why=f"{self.why} {verdict.because}".rstrip(),
                source=self.source,
                fix=fix and fix.where(system.installation),
            )


def check(  # noqa: PLR0917  (in the order of Check's fields)
    id: str, advice: str, applies: str, why: str, source: str, severity: Severity, fix: str
) -> Callable[[Callable[[F], Iterator[Verdict]]], Check[F]]:
    """Make a :class:`Check` of the decorated function, which judges the facts."""
    return lambda judge: Check(id, advice, applies, why, source, severity, judge, fix)


def judge(checks: Iterable[Check[F]], facts: F, system: System = USUAL) -> tuple[Finding, ...]:
    """All findings of these checks, the worst first."""
    return worst_first(finding for rule in checks for finding in rule.findings(facts, system))


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Unmet findings first, the most severe at the top; then by check and subject, for a stable order."""
    return tuple(
        sorted(findings, key=lambda finding: (finding.met, finding.severity.rank, finding.check, finding.subject))
    )
