"""The exporter's metrics about itself: its build, and how each collector fared."""

import platform
from collections.abc import Sequence

from plumbline import __version__
from plumbline.metrics.snapshot import CollectorHealth, Family
from plumbline.metrics.spec import counter, gauge

BUILD_INFO = gauge("plumbline_build_info", "Which Plumbline this is, always 1.", ("version", "python_version"))
COLLECTOR_SUCCESS = gauge(
    "plumbline_collector_success",
    "1: the collector gave its metrics or had nothing to give; 0: it failed and gave none.",
    ("collector",),
)
COLLECTOR_AVAILABLE = gauge(
    "plumbline_collector_available",
    "0: the hardware, driver, file or permission the collector needs is not there, which is normal.",
    ("collector",),
)
COLLECTOR_DURATION = gauge(
    "plumbline_collector_duration_seconds", "How long the collector took in this scrape.", ("collector",)
)
COLLECTOR_SKIPPED = counter(
    "plumbline_collector_items_skipped_total",
    "Items (a port, a disk) that the collector left out, once for each scrape.",
    ("collector", "reason"),
)

SPECS = (BUILD_INFO, COLLECTOR_SUCCESS, COLLECTOR_AVAILABLE, COLLECTOR_DURATION, COLLECTOR_SKIPPED)

_BUILD = ((__version__, platform.python_version()),)


def families(healths: Sequence[CollectorHealth]) -> list[Family]:
    """The families for these collectors, in the order of :data:`SPECS`; without collectors only the build."""
    names = tuple((health.name,) for health in healths)
    reasons = tuple((health.name, reason) for health in healths for reason in health.skipped)
    parts = (
        Family(BUILD_INFO, _BUILD, [1]),
        Family(COLLECTOR_SUCCESS, names, [int(health.success) for health in healths]),
        Family(COLLECTOR_AVAILABLE, names, [int(health.available) for health in healths]),
        Family(COLLECTOR_DURATION, names, [health.duration_s for health in healths]),
        Family(COLLECTOR_SKIPPED, reasons, [n for health in healths for n in health.skipped.values()]),
    )
    return [family for family in parts if family.labels]
