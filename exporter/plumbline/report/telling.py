"""A review as a document: the summary, the sections in the order of a meeting's questions, and the glossary."""

from __future__ import annotations

from plumbline.pages.document import Document
from plumbline.report import sections, sections_capacity, sections_events
from plumbline.report.model import Review
from plumbline.report.summary import lead, points

GLOSSARY = (
    ("Baseline", "Figures measured or written down when the cluster was accepted: how fast it has to be."),
    ("Figure", "One number that is measured again and again on one host and compared with its baseline: the median"
     " latency of one kind of operation, operations or bytes per second."),
    ("Degradation ratio", "Measured ÷ baseline for latency, baseline ÷ measured for operations and bytes per second:"
     " 1 is as accepted, 2 is twice as bad, whatever the layer."),
    ("Tolerance", "How far a figure may be from its baseline: the spread that the baseline itself showed, at least a"
     " quarter unless the site sets another number. Beyond it, a figure is out of line."),
    ("Within tolerance", "Of all measured time of all figures, the share in which they were not beyond their"
     " tolerance. Ten figures that were measured for an hour are ten hours."),
    ("Out of line", "Minutes with at least one figure of the layer beyond its tolerance, however many there were."),
    ("Observed", "The share of the period with at least one judged figure. What was not observed counts neither as"
     " good nor as bad."),
    ("Measured", "Of the time in which every figure could have been measured, the share in which it was. Much less than"
     " observed: some hosts, disks or probes were missing for long, and nothing is known of them then."),
    ("Layer", "The stack from the bottom up: network, disks, OSDs, RADOS pools, RBD images, file systems, object"
     " storage, clients. A slow lower layer slows all above it."),
    ("OSD", "The Ceph daemon that stores data on one disk."),
    ("Pool", "A part of a Ceph cluster with its own rules of how data is copied."),
    ("Canary", "One small operation at a time, always on, at most a hundredth of what the device can do."),
    ("Probe", "A measurement on a schedule, with a workload that is always the same."),
    ("Change point", "A moment at which a level changed and stayed changed."),
    ("Finding", "A setting of a host that is not as documentation advises."),
    ("Loss of the largest host", "Whether the other hosts' disks, of which one is always the fullest, could take its"
     " data and stay below the ratio at which Ceph stops backfilling."),
    ("Headroom", "What is left of the performance that the hardware was measured to have."),
)  # fmt: skip


def tell(review: Review) -> Document:
    """The document of a review."""
    clusters = [each.cluster for each in review.coverage if each.cluster]
    return Document(
        title="Storage review" + (f": {clusters[0]}" if len(clusters) == 1 else ""),
        lead=tuple(lead(review)),
        points=points(review),
        sections=(
            sections.attainment(review),
            sections.offenders(review),
            sections.changes(review),
            sections_capacity.capacity(review),
            sections_capacity.headroom(review),
            sections_events.findings(review),
            sections_events.alerts(review),
            sections_capacity.wear(review),
            sections_events.events(review),
        ),
        glossary=GLOSSARY,
    )
