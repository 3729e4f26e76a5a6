"""Are there latency histograms of the disks, and for all of them?"""

from plumbline.checks.disk_latency import latency_histograms
from plumbline.checks.model import Fix
from plumbline.sources.disk.blocklatency import LatencyReading


def test_disks_without_room_are_counted_and_the_first_are_named() -> None:
    names = tuple(f"sd{letter}" for letter in "abcdefgh")
    (verdict,) = latency_histograms.judge(LatencyReading((), {}, without_room=names))
    assert verdict.actual == "8 disks are not timed, there is no room for them in the kernel's table: sda, sdb, sdc …"
    assert isinstance(verdict.fix, Fix)
    assert "up to 1,000 disks" in verdict.fix.caution
    (verdict,) = latency_histograms.judge(LatencyReading((), {}))
    assert verdict.actual == "measured in the kernel"
