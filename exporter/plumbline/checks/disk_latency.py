"""Are there latency histograms of the disks?"""

from collections.abc import Iterator
from typing import TypeAlias

from plumbline.checks import fixes
from plumbline.checks.model import RESTART_ENDS_PROBES, Fix, Keep, Severity, Verdict, check
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.blocklatency import HOPELESS, LatencyReading
from plumbline.sources.kernel.installation import Installation, Need

DROP_IN_FILE = "/etc/systemd/system/plumbline.service.d/disk-latency.conf"
DROP_IN = """[Service]
AmbientCapabilities=CAP_BPF CAP_PERFMON
CapabilityBoundingSet=CAP_BPF CAP_PERFMON
PrivateUsers=no
SystemCallFilter=bpf capset"""
_RESTART = Installation.HOST.step(Need.RESTART)
_RELOAD = f"systemctl daemon-reload && {_RESTART}"

Latency: TypeAlias = LatencyReading | str | None
"""A text says why there are no histograms; ``None``: unknown. No advice where this kernel or machine can't have
them."""


def disk_latency_facts(readings: Readings) -> Latency:
    return readings.get(LatencyReading) or readings.reasons.get("latency")


@check(
    "disk.latency-histograms",
    "Let the daemon measure disk latencies in the kernel.",
    "a running daemon, on kernels with BTF",
    "Without the histograms there are only the averages of /proc/diskstats, which hide the few slow requests that a "
    "whole stripe waits for.",
    "systemd/README.md, disk latencies; capabilities(7), CAP_BPF and CAP_PERFMON",
    Severity.INFO,
    fixes.DEBIAN.install("libbpf", _RELOAD),
)
def latency_histograms(latency: Latency) -> Iterator[Verdict]:
    if latency is None or (isinstance(latency, str) and any(word in latency for word in HOPELESS)):
        return
    expected = "latency histograms of every disk"
    keep, caution = Keep(DROP_IN_FILE, DROP_IN), RESTART_ENDS_PROBES
    if isinstance(latency, str):
        yield Verdict(
            "disks", latency, expected, fixes.install("libbpf", _RELOAD, keep=keep, caution=caution, need=Need.LATENCY)
        )
    elif latency.restart_required:
        actual = "some disks are not timed: the kernel no longer notes when their requests are issued"
        yield Verdict("disks", actual, expected, Fix(_RESTART, keep, caution, Need.RESTART))
    elif latency.without_room:
        number, first = len(latency.without_room), ", ".join(latency.without_room[:3])
        actual = f"{number} disks are not timed, there is no room for them in the kernel's table: {first} …"
        caution = f"{caution} It makes room for up to 1,000 disks."
        yield Verdict("disks", actual, expected, Fix(_RESTART, keep, caution, Need.RESTART))
    else:
        yield Verdict("disks", "measured in the kernel", expected)


CHECKS = (latency_histograms,)
