"""``plumbline check``: judge this host once, and print the findings."""

import argparse
from collections.abc import Sequence

from rich.console import Console

from plumbline.checks import report
from plumbline.checks.model import Finding, Severity
from plumbline.commands.shared import complain, duration, roots, show
from plumbline.core.console import line, table
from plumbline.daemon.daemon import examine
from plumbline.errors import PlumblineError

_COULD_NOT_JUDGE = 3
_SEVERITY_STYLE = {Severity.CRITICAL: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold"}


def check(options: argparse.Namespace) -> int:
    try:
        examined = examine(
            config_file=options.config_file,
            storage_path_flag=options.storage_path,
            roots=roots(options),
            wait_s=duration(options.wait, "--wait") or 0.0,
        )
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return _COULD_NOT_JUDGE
    data = report.as_data(examined.findings, host=examined.host, window_s=examined.window_s)
    show(options, data, lambda console: print_findings(console, examined.findings, every=options.all))
    for what, reason in examined.blind.items():
        complain(f"not judged: {what}: {reason}")
    return report.exit_code(examined.findings)


def print_findings(console: Console, findings: Sequence[Finding], *, every: bool = False) -> None:
    """``plumbline check``: what is not met by severity, then what makes the fixes permanent, then how much is met."""
    unmet = report.not_met(findings)
    for severity, group in unmet.items():
        line(console, f"{severity.value} ({len(group)})", _SEVERITY_STYLE[severity])
        rows = [(item.subject, item.actual, item.expected, item.fix.now if item.fix else "") for item in group]
        table(console, ("Subject", "Is", "Should be", "Fix now"), rows)
        line(console, "")
    shown = [finding for group in unmet.values() for finding in group]
    for finding in {(finding.check, finding.why): finding for finding in shown}.values():
        line(console, f"{finding.check}: {finding.why}")
        line(console, f"  source: {finding.source}", "dim")
        if finding.fix and finding.fix.caution:
            line(console, f"  take care: {finding.fix.caution}")
    for (file, place), contents in report.keeps(shown).items():
        line(console, "")
        line(console, f"To stay, in {file}{f' {place}' if place else ''}:", "bold")
        for text in (text for content in contents for text in content.splitlines()):
            line(console, f"  {text}")
    met = [finding for finding in findings if finding.met]
    if shown:
        line(console, "")
    if every and met:
        line(console, f"met ({len(met)})", "green")
        table(
            console, ("Subject", "Check", "Is"), [(finding.subject, finding.check, finding.actual) for finding in met]
        )
    else:
        summary = report.met_summary(findings)
        line(console, f"met ({len(met)}): {', '.join(_times(name, count) for name, count in summary.items())}")


def _times(name: str, count: int) -> str:
    return name if count == 1 else f"{name} ×{count}"
