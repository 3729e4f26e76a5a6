"""Are there latency histograms of the disks?"""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks.latency_facts import LatencyFacts
from plumbline.checks.model import Check, Finding, Fix, Keep, Severity, Verdict, worst_first

DROP_IN_FILE = "/etc/systemd/system/plumbline.service.d/disk-latency.conf"
DROP_IN = """[Service]
AmbientCapabilities=CAP_BPF CAP_PERFMON
CapabilityBoundingSet=CAP_BPF CAP_PERFMON
PrivateUsers=no
SystemCallFilter=bpf capset"""
_NOW = (
    "apt-get install --no-install-recommends libbpf1 && systemctl daemon-reload && systemctl restart plumbline.service"
)

_RESTART = "systemctl restart plumbline.service"


def _histograms(facts: LatencyFacts) -> Iterator[Verdict]:
    if facts.unavailable is None:
        return
    if facts.restart_required:
        yield Verdict(
            "disks",
            "some disks are not timed: the kernel no longer notes when their requests are issued",
            "latency histograms of every disk",
            Fix(_RESTART, Keep(DROP_IN_FILE, DROP_IN), "The restart ends the probes that are under way."),
        )
        return
    missing = bool(facts.unavailable)
    yield Verdict(
        "disks",
        facts.unavailable if missing else "measured in the kernel",
        "latency histograms of every disk",
        Fix(_NOW, Keep(DROP_IN_FILE, DROP_IN), "The restart ends the probes that are under way.") if missing else None,
    )


CHECKS: tuple[Check[LatencyFacts], ...] = (
    Check(
        id="disk.latency-histograms",
        advice="Let the daemon measure disk latencies in the kernel.",
        applies="a running daemon, on kernels with BTF",
        why=(
            "Without the histograms there are only /proc/diskstats' averages, which hide the few slow requests that a"
            " whole stripe waits for."
        ),
        source="systemd/README.md, disk latencies; capabilities(7), CAP_BPF and CAP_PERFMON",
        severity=Severity.INFO,
        judge=_histograms,
        fix=_NOW,
    ),
)


def judge(facts: LatencyFacts) -> tuple[Finding, ...]:
    """The finding, if any."""
    return worst_first(finding for check in CHECKS for finding in check.findings(facts))
