"""A review as a document: the summary, the sections in the order of a meeting's questions, and the glossary."""

from plumbline.pages.document import Document, Section
from plumbline.report import sections, sections_capacity, sections_compared
from plumbline.report.model import Review
from plumbline.report.summary import capacity, change, lead, performance

TWO_PERIODS = "beside"  # only where there are two periods
# what a section is about, and the function that makes its blocks
SECTIONS = (
    (TWO_PERIODS, "Beside the other period", sections_compared.two_periods,
     "The same figures of two periods. Each period is judged by the baselines that were in force then."),
    ("attainment", "Attainment", sections.attainment,
     "The share of the measured time in which each layer was within the tolerance of its baseline, the figures"
     " recorded when the cluster was accepted. Time without data is not counted."),
    ("offenders", "Worst offenders", sections.offenders,
     "What was out of tolerance for longest, and how far. Figures are judged by their baseline; disks and OSDs by"
     " the alerts that named them, which compare them with their peers and with their own past."),
    ("changes", "Change points", sections.changes,
     "Moments at which a latency or a degradation ratio changed by at least a tenth, and by more than days usually"
     " differ, and stayed at the new level for three days or more. Daily and weekly cycles are removed."),
    ("capacity", "Capacity", sections_capacity.capacity,
     "How full the cluster is, when it will be full at the growth of the last 3, 14 and 30 days (hence a range, not"
     " a date), and whether the other hosts could take the data of the largest host if it failed."),
    ("headroom", "Headroom", sections_capacity.headroom,
     "The share of the measured capability in use: operations or bytes per second of a device class, compared with"
     " its baseline. Near 100 %, latency rises even if the disks are healthy."),
    ("what-if", "What if", sections_capacity.what_if,
     "The same figures after a change: faster growth, one more host of a class, or a loss. Everything moves in"
     " proportion; plumbline capacity what-if computes other changes, and docs/what-if.md has the formulas."),
    ("findings", "Findings", sections.findings,
     "Documented recommendations that a host does not meet (plumbline check says how to fix them), sampled every six"
     " hours; a finding that appeared and disappeared between two samples is missing. Severity info is left out."),
    ("alerts", "Alerts", sections.alerts,
     "Alerts that fired, to the minute, critical ones first. “Total” adds up all subjects. Alerts that Alertmanager"
     " inhibited are counted too; an alert that fires before and after a gap in the data counts twice; severity"
     " info is left out."),
    ("wear", "Wear-out", sections_capacity.wear,
     "Solid-state disks whose rated endurance is being used up, the soonest first: at the rate of their whole life,"
     " or of the last two weeks if that was faster. Rated endurance is the vendor's guarantee; a disk may last"
     " longer."),
    ("events", "Baselines and upgrades", sections.events,
     "Baselines that were measured or written in the period, and new versions: possible explanations of a change."),
)  # fmt: skip
GLOSSARY = (
    ("Baseline", "Figures measured or written down when the cluster was accepted: how fast it must be."),
    ("Figure", "One number that is measured again and again on one host and compared with its baseline: the median"
     " latency of one kind of operation, operations or bytes per second."),
    ("Degradation ratio", "Measured ÷ baseline for latency, baseline ÷ measured for operations and bytes per second:"
     " 1 is as accepted, 2 is twice as bad, on every layer."),
    ("Tolerance", "How far a figure may be from its baseline: the spread that the baseline itself showed, at least a"
     " quarter unless the site sets another number. Beyond it, a figure is out of tolerance."),
    ("Within tolerance", "The share of the measured time of all figures in which they were within their"
     " tolerance. Ten figures measured for one hour are ten hours."),
    ("Out of tolerance", "Minutes with at least one figure of the layer beyond its tolerance, however many."),
    ("Observed", "The share of the period with at least one judged figure. Time that was not observed counts neither as"
     " good nor as bad."),
    ("Measured", "The share of the period in which the figures were measured, on average. If it is much less than"
     " observed, some hosts, disks or probes were missing for a long time."),
    ("Layer", "The stack from the bottom up: network, disks, OSDs, RADOS pools, RBD images, file systems, object"
     " storage, clients. A slow lower layer slows all above it."),
    ("OSD", "The Ceph daemon that stores data on one disk."),
    ("Pool", "A part of a Ceph cluster with its own replication rules."),
    ("Canary", "One small operation at a time, always running, with at most a hundredth of the device's capability."),
    ("Probe", "A scheduled measurement with a fixed workload."),
    ("Change point", "A moment at which a level changed and stayed changed."),
    ("Finding", "A setting of a host that differs from documented recommendations."),
    ("Loss of the largest host", "Whether the other hosts' disks could take its data with even the fullest of them"
     " staying below the ratio at which Ceph stops backfilling."),
    ("Headroom", "What is left of the performance that the hardware was measured to have."),
)  # fmt: skip


def as_document(review: Review) -> Document:
    clusters = [row.cluster for row in review.coverage if row.cluster]
    return Document(
        title="Storage review" + (f": {clusters[0]}" if len(clusters) == 1 else ""),
        lead=tuple(lead(review)),
        points=(performance(review), change(review), capacity(review)),
        sections=tuple(
            Section(ident, title, about, list(blocks(review)))
            for ident, title, blocks, about in SECTIONS
            if review.earlier is not None or ident != TWO_PERIODS
        ),
        glossary=GLOSSARY,
    )
