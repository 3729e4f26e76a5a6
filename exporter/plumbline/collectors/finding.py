"""Findings as metrics."""

from collections.abc import Iterator

from plumbline.checks.model import Finding
from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge

FINDING = gauge(
    "plumbline_finding",
    "1: the advice is not met; 0: met; absent: it does not apply. See `plumbline check`.",
    ("check", "subject", "urgency"),
)


class FindingsReading(tuple[Finding, ...]):
    """What the checks reported last."""


def samples(findings: FindingsReading) -> Iterator[Sample]:
    for finding in findings:
        yield FINDING, (finding.check, finding.subject, finding.severity.value), 0 if finding.met else 1


COLLECTOR: Collector[Host, FindingsReading] = Collector(
    "finding",
    declared(globals()),
    lambda host, _skip: host.parts.latest(FindingsReading),
    samples,
    origin="the checks ([checks.md](checks.md)) over what the other collectors read",
    needs_daemon=True,
)
