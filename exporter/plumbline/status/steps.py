"""What to do first about a fact of a verdict: a command on this node, and the runbook of the alert that is about it."""

from shlex import quote
from urllib.parse import urlencode

from msgspec import Struct

from plumbline.status.model import Loss, Measure, ProbeRow

_LOSSES = {"ring": "PlumblineNicRingDrops", "fifo": "PlumblineNicFifoDrops"}


class Step(Struct, frozen=True):
    """``labels``: those of the alert, for the runbook's scripts."""

    alert: str = ""
    command: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def runbook(self) -> str:
        """Its path on this daemon; empty if no alert is about it."""
        query = f"?{urlencode(self.labels, errors='surrogateescape')}" if self.labels else ""
        return f"/runbooks/{self.alert}{query}" if self.alert else ""


NOTHING = Step()
BACKLOG = Step("PlumblineSoftnetBacklogOverflow", "cat /proc/net/softnet_stat")
TIME_SQUEEZE = Step("PlumblineSoftnetTimeSqueeze", "cat /proc/net/softnet_stat")
FINDINGS = Step("PlumblineFindingOpen", "plumbline check")


def stuck(row: ProbeRow) -> Step:
    return _probe("PlumblineCanaryFailing" if row.canary else "PlumblineProbeStuck", row)


def failing(row: ProbeRow) -> Step:
    return _probe("PlumblineCanaryFailing" if row.canary else "PlumblineProbeFailing", row)


def overdue(row: ProbeRow) -> Step:
    return _probe("PlumblineCanaryOverdue" if row.canary else "PlumblineProbeOverdue", row)


def beyond(row: ProbeRow, measure: Measure) -> Step:
    if row.canary:
        return _probe("PlumblineCanaryLatencyHigh", row)
    return _probe("PlumblineProbeLatencyHigh" if measure is Measure.LATENCY else "PlumblineProbeThroughputLow", row)


def loss(device: str, lost: Loss) -> Step:
    alert = "PlumblineNicErrors" if lost.what == "errors" else _LOSSES.get(lost.cause, "")
    return Step(alert, f"plumbline nic {quote(device)}", (("device", device),))


def osd(alert: str, daemon: str, command: str) -> Step:
    """``command`` with ``{}`` for the OSD's number."""
    return Step(alert, command.format(quote(daemon.removeprefix("osd."))), (("ceph_daemon", daemon),))


def _probe(alert: str, row: ProbeRow) -> Step:
    return Step(alert, "plumbline probe list", (("probe", row.probe),))
