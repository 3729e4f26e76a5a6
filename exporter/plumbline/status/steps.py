"""What to do first about a fact of a verdict: a command on this node, and the runbook of the alert that is about it."""

from shlex import quote
from urllib.parse import urlencode

from msgspec import Struct

from plumbline.sources.ceph.osds import OsdState
from plumbline.status.model import Loss, Measure, OsdRow, ProbeRow

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
SLOW_OSD = Step("PlumblineCephSlowOperations", "plumbline ceph top")


def probe(row: ProbeRow) -> Step:
    """Of one that hangs, fails or is overdue."""
    if row.overdue and row.success is not False and row.stuck_s is None:
        return overdue(row)
    if row.canary:
        return _probe("PlumblineCanaryFailing", row)
    return _probe("PlumblineProbeFailing" if row.stuck_s is None else "PlumblineProbeStuck", row)


def overdue(row: ProbeRow) -> Step:
    return _probe("PlumblineCanaryOverdue" if row.canary else "PlumblineProbeOverdue", row)


def beyond(row: ProbeRow, measure: Measure) -> Step:
    if row.canary:
        return _probe("PlumblineCanaryLatencyHigh", row)
    return _probe("PlumblineProbeLatencyHigh" if measure is Measure.LATENCY else "PlumblineProbeThroughputLow", row)


def loss(device: str, lost: Loss) -> Step:
    return port("PlumblineNicErrors" if lost.what == "errors" else _LOSSES.get(lost.cause, ""), device)


def port(alert: str, device: str) -> Step:
    return Step(alert, f"plumbline nic {quote(device)}", (("device", device),))


def disk(device: str) -> Step:
    return Step("PlumblineDiskLatencyOutlier", f"plumbline disk {quote(device)}", (("device", device),))


def osd(row: OsdRow) -> Step:
    """Of one that ended, does not answer or has blocked operations."""
    labels = (("ceph_daemon", row.daemon),)
    if row.answers:
        return Step("PlumblineOsdOperationsBlocked", "plumbline ceph top", labels)
    alert = "PlumblineCephOsdDown" if row.answer is OsdState.ENDED else "PlumblineOsdSocketHung"
    return Step(alert, f"systemctl status ceph-osd@{quote(row.daemon.removeprefix('osd.'))}", labels)


def _probe(alert: str, row: ProbeRow) -> Step:
    return Step(alert, "plumbline probe list", (("probe", row.probe),))
