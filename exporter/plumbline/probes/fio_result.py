"""From fio's report to a result's operations, wherever fio ran."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.probes.fio_output import Figures, FioReport
from plumbline.probes.result import OperationResult
from plumbline.workloads import BlockWorkload


def operations(workload: BlockWorkload, report: FioReport) -> Iterator[OperationResult]:
    """Those of the workload's operations of which at least one finished."""
    for name in workload.operations:
        figures = figures_of(report, name)
        if figures is not None:
            latency = figures.latency.statistics if figures.latency else {}
            bins = figures.latency.bins if figures.latency else ()
            yield OperationResult(
                operation=name, iops=figures.iops, throughput=figures.throughput, latency=latency, bins=bins
            )


def figures_of(report: FioReport, operation: str) -> Figures | None:
    """``read`` or ``write`` of the report."""
    return report.read if operation == "read" else report.write
