"""What ``plumbline check`` reports, apart from how it looks: the order, the exit code, the machine-readable form."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import asdict

from plumbline.checks.model import Finding, Severity


def not_met(findings: Iterable[Finding]) -> dict[Severity, list[Finding]]:
    """Unmet findings by severity, the most severe first; severities without any are absent."""
    open_ones = [finding for finding in findings if not finding.met]
    grouped = {severity: [finding for finding in open_ones if finding.severity is severity] for severity in Severity}
    return {severity: group for severity, group in grouped.items() if group}


def exit_code(findings: Sequence[Finding]) -> int:
    """2: something critical; 1: a warning; 0: neither. Info alone is no reason to fail a script."""
    unmet = not_met(findings)
    if Severity.CRITICAL in unmet:
        return 2
    return 1 if Severity.WARNING in unmet else 0


def keeps(findings: Iterable[Finding]) -> dict[tuple[str, str], list[str]]:
    """What to add where to make the fixes permanent: (file, place in it) → contents, each once."""
    files: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        keep = finding.fix.keep if finding.fix else None
        if keep is not None:
            contents = files.setdefault((keep.file, keep.place), [])
            if keep.content not in contents:
                contents.append(keep.content)
    return files


def met_summary(findings: Iterable[Finding]) -> dict[str, int]:
    """Check id → number of subjects that meet it."""
    return dict(sorted(Counter(finding.check for finding in findings if finding.met).items()))


def as_data(findings: Sequence[Finding], *, host: str, window_s: float) -> dict[str, object]:
    """The data for ``--json``. Keys are stable."""
    unmet = not_met(findings)
    return {
        "host": host,
        "window_seconds": window_s,
        "summary": {
            **{severity.value: len(unmet.get(severity, ())) for severity in Severity},
            "met": sum(finding.met for finding in findings),
        },
        "findings": [_finding_data(finding) for finding in findings],
    }


def _finding_data(finding: Finding) -> dict[str, object]:
    data: dict[str, object] = {
        "check": finding.check,
        "subject": finding.subject,
        "severity": finding.severity.value,
        "met": finding.met,
        "is": finding.actual,
        "should": finding.expected,
        "why": finding.why,
        "source": finding.source,
    }
    fix = finding.fix
    if fix is not None:
        data["fix"] = {
            "now": fix.now,
            "caution": fix.caution,
            "keep": None if fix.keep is None else asdict(fix.keep),
        }
    return data
