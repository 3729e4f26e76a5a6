"""``make bench-failslow DATA=<folder>``: the shipped verdicts about disks and OSDs on real traces with labels.

The folder is a clone of https://github.com/Joshua-Ludolf/FSA-benchmarking-Reproduction-Research: clusters A and B of
the PERSEUS dataset (FAST '23), for research; nothing of it is in this project. A file is a day of a host's twelve SSDs,
three hours of it, a line every 15 s and disk: ``ts, disk_id, throughput, latency``; ``NA`` where nothing was measured.
``index/slow_drive_info.csv`` names the drives that are slow. Hosts called ``host_synth…`` are made up and left out.

The rules of ``alerts/out`` are evaluated by a real Prometheus, a day of a cluster at a time. What the data do not say
is assumed: throughput is in bytes a second and latency the mean in µs; operations are of :data:`SIZE_BYTES` and reads;
all operations of a line took its mean, so the tail in the histogram is less than it was; all disks are of one model;
an OSD is on each, whose clients and store read what the disk does and wait for nothing else.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.detection_rules import Follower, Rule, needed, read_rules
from bench.history_store import Series, Store, labels_of
from plumbline.metrics.spec import le_text
from support.rules import RULES

ALERTS = ("PlumblineDiskLatencyOutlier", "PlumblineOsdSlowDisk")
SIZE_BYTES = 4096
EVERY = 4
"""Lines a scrape: a minute."""
EDGES_S = tuple(2.0**k / 1e6 for k in range(5, 18))
"""Of the exporter's edges those from 32 µs to 0.13 s."""
EVALUATION_S = 60.0
LEAST_MINUTES = 120
"""With fewer that were measured a day is left out."""

Drive = tuple[str, str, str]
"""Cluster, host, disk."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One disk on one day. Times in seconds, ascending; NaN: not measured."""

    drive: Drive
    times_s: NDArray[np.int64]
    bytes_per_second: NDArray[np.float64]
    mean_s: NDArray[np.float64]


def read_traces(cluster: str, host: str, lines: Iterable[str]) -> list[Trace]:
    """A file's lines, header first, as a trace of each disk."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for row in csv.DictReader(lines):
        measured = [np.nan if row[name] == "NA" else float(row[name]) for name in ("throughput", "latency")]
        rows.setdefault(row["disk_id"], []).append((float(row["ts"]), measured[0], measured[1] / 1e6))
    traces = []
    for disk, found in rows.items():
        times, throughput, latency = np.array(sorted(found)).T
        traces.append(Trace((cluster, host, disk), times.astype(np.int64), throughput, latency))
    return traces


def read_slow(lines: Iterable[str]) -> set[Drive]:
    """The labels."""
    return {(row["cluster"], row["host_name"], row["disk_id"]) for row in csv.DictReader(lines)}


def osd_of(drive: Drive) -> str:
    """The OSD on a drive: ``host_22/disk8`` has ``osd.2208``."""
    _, host, disk = drive
    return f"osd.{host.removeprefix('host_')}{disk.removeprefix('disk'):>02}"


def series(trace: Trace) -> Iterator[Series]:
    """What the exporters would have shown of the disk and its OSD. A line that was not measured adds nothing."""
    cluster, host, disk = trace.drive
    measured = np.isfinite(trace.bytes_per_second) & np.isfinite(trace.mean_s)
    lasted_s = np.diff(trace.times_s, prepend=trace.times_s[0] - 15)
    transferred = np.where(measured, trace.bytes_per_second, 0.0) * np.minimum(lasted_s, 15)
    operations = transferred / SIZE_BYTES
    mean_s = np.where(measured, trace.mean_s, 0.0)
    place = {"cluster": cluster, "instance": f"{host}:10047", "device": disk}
    counted = {**place, "operation": "read"}
    times_ms = trace.times_s[::EVERY] * 1000

    def counter(name: str, grown: NDArray[np.float64], labels: Mapping[str, str]) -> Series:
        return Series(labels_of(name, labels), times_ms, np.cumsum(grown)[::EVERY])

    name = "plumbline_disk_latency_seconds"
    for edge in (*EDGES_S, np.inf):
        below = operations * (mean_s <= edge)
        yield counter(name + "_bucket", below, {**counted, "le": "+Inf" if edge == np.inf else le_text(edge)})
    yield counter(name + "_count", operations, counted)
    yield counter(name + "_sum", operations * mean_s, counted)
    yield counter("plumbline_disk_ios_total", operations, counted)
    yield counter("plumbline_disk_io_bytes_total", transferred, counted)
    osd = {"cluster": cluster, "ceph_daemon": osd_of(trace.drive)}
    for name in ("ceph_bluestore_read_lat", *(f"ceph_osd_op_r_{part}latency" for part in ("", "process_", "prepare_"))):
        yield counter(name + "_count", operations, osd)
        yield counter(name + "_sum", operations * mean_s, osd)
    identity = {**place, "device_class": "ssd", "transport": "sata", "model": "perseus", "osd": osd["ceph_daemon"]}
    yield Series(labels_of("plumbline_disk_info", identity), times_ms, np.ones(len(times_ms)))
    metadata = {**osd, "device_class": "ssd", "hostname": host}
    yield Series(labels_of("ceph_osd_metadata", metadata), times_ms, np.ones(len(times_ms)))


def alerted(store: Store, rules: Sequence[Rule], traces: Sequence[Trace]) -> set[tuple[str, Drive]]:
    """The alerts of a day and their drives. Days have to come in their order."""
    for _, host in groupby(traces, lambda trace: trace.drive[1]):
        store.write(each for trace in host for each in series(trace))
    step_s = int(max(rule.interval_s for rule in rules))
    start_s = min(trace.times_s[0] for trace in traces) // step_s * step_s
    end_s = max(trace.times_s[-1] for trace in traces)
    follower = Follower(store, rules)
    follower.follow(float(start_s), float(end_s))
    drives = {osd_of(trace.drive): trace.drive for trace in traces}

    def drive(labels: Mapping[str, str]) -> Drive:
        if "ceph_daemon" in labels:
            return drives[labels["ceph_daemon"]]
        return labels["cluster"], labels["instance"].rpartition(":")[0], labels["device"]

    return {(firing.alert, drive(firing.labels)) for firing in follower.firings()}


def minutes(trace: Trace) -> NDArray[np.float64]:
    """The logarithm of each minute's mean latency; NaN: nothing was served."""
    served = np.nan_to_num(trace.bytes_per_second)
    minute = (trace.times_s - trace.times_s[0]) // 60
    operations = np.bincount(minute, served)
    seconds = np.bincount(minute, served * np.nan_to_num(trace.mean_s))
    return np.log(np.where((operations > 0) & (seconds > 0), seconds / np.maximum(operations, 1e-9), np.nan))


def print_variation(data: Path, clusters: Iterable[str], slow: set[Drive]) -> None:
    """How healthy drives vary without a fault, for the worlds of ``detection_climates.yaml``.

    Sigmas are of logarithms: of a drive's medians of its days, and of its minutes within a day (the 0.1 and 0.9
    quantiles as of a normal distribution). The autocorrelation of minutes leaves out the outermost 2 % at each end.
    """
    for cluster in clusters:
        days: dict[Drive, dict[str, float]] = {}
        within: list[float] = []
        lags: dict[int, list[float]] = {1: [], 5: [], 15: [], 30: []}
        for path in _files(data / "data" / cluster):
            for trace in read_traces(cluster, path.parent.name, path.read_text().splitlines()):
                level = minutes(trace)
                if trace.drive in slow or np.isfinite(level).sum() < LEAST_MINUTES:
                    continue
                days.setdefault(trace.drive, {})[path.stem] = float(np.nanmedian(level))
                low, high = np.nanquantile(level, [0.1, 0.9])
                within.append((high - low) / 2.563)
                level = np.clip(level, *np.nanquantile(level, [0.02, 0.98]))
                level -= np.nanmean(level)
                for lag, correlations in lags.items():
                    correlations.append(float(np.nanmean(level[lag:] * level[:-lag]) / np.nanvar(level)))
        sigmas = [np.std(list(of.values()), ddof=1) for of in days.values() if len(of) > 1]
        print(
            f"{cluster}: {len(days)} healthy drives; sigma of days {np.median(sigmas):.3f} (0.9 quantile "
            f"{np.quantile(sigmas, 0.9):.3f}), of minutes {np.median(within):.3f} ({np.quantile(within, 0.9):.3f}); "
            "autocorrelation after "
            + ", ".join(f"{lag} min {np.nanmedian(each):.2f}" for lag, each in lags.items()), flush=True,
        )  # fmt: skip


def main() -> int:
    """Exit code 0: no false alert, and every slow drive found on each of its days."""
    options = _parser().parse_args()
    slow = read_slow((options.data / "index" / "slow_drive_info.csv").read_text().splitlines())
    if options.variation:
        print_variation(options.data, options.clusters.split(","), slow)
        return 0
    rules = needed(read_rules(sorted(options.rules.glob("plumbline-*.yaml"), reverse=True), EVALUATION_S), ALERTS)
    began, good = time.monotonic(), True
    for cluster in options.clusters.split(","):
        counted: dict[str, Counter[str]] = {alert: Counter() for alert in ALERTS}
        days: dict[tuple[str, Drive], Counter[str]] = {}
        for date in sorted({path.name for path in _files(options.data / "data" / cluster)}):
            with Store() as store:
                traces = [
                    trace
                    for path in _files(options.data / "data" / cluster)
                    if path.name == date
                    for trace in read_traces(cluster, path.parent.name, path.read_text().splitlines())
                ]
                found = alerted(store, rules, traces)
            if sys.stderr.isatty():
                print(f"{cluster} {date}", file=sys.stderr, flush=True)
            for each in product(ALERTS, (trace.drive for trace in traces)):
                alert, drive = each
                counted[alert][("TN", "FP", "FN", "TP")[2 * (drive in slow) + (each in found)]] += 1
                if drive in slow:
                    days.setdefault(each, Counter())[str(each in found)] += 1
                elif each in found:
                    print(f"  false: {alert} {'/'.join(drive)} on {date.removesuffix('.csv')}", flush=True)
        for alert in ALERTS:
            of_alert = {drive: seen for (of, drive), seen in days.items() if of == alert}
            _print(f"{cluster}, {alert}", counted[alert], of_alert)
            good = good and not counted[alert]["FP"] and not counted[alert]["FN"]
    print(f"took {(time.monotonic() - began) / 60:.0f} min")
    return 0 if good else 1


def _files(folder: Path) -> list[Path]:
    """Without what macOS adds to an archive (``._…``)."""
    every = sorted(folder.glob("host_*/[0-9]*.csv"))
    return [path for path in every if not path.parent.name.startswith("host_synth")]


def _print(title: str, counted: Mapping[str, int], days: Mapping[Drive, Mapping[str, int]]) -> None:
    right, wrong, missed = (counted[key] for key in ("TP", "FP", "FN"))
    precision = right / (right + wrong) if right + wrong else 0.0
    recall = right / (right + missed) if right + missed else 0.0
    print(
        f"{title}: {sum(counted.values())} drive-days; found {right}, false {wrong}, missed {missed};"
        f" precision {precision:.3f}, recall {recall:.3f}", flush=True,
    )  # fmt: skip
    for (_, host, disk), seen in sorted(days.items()):
        print(f"  {host}/{disk}: on {seen.get('True', 0)} of {sum(seen.values())} days", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench-failslow DATA=…", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="the clone")
    parser.add_argument("--clusters", default="cluster_A,cluster_B", help="the alerts were tuned on cluster_A")
    parser.add_argument("--variation", action="store_true", help="how healthy drives vary, and no alerts")
    parser.add_argument("--rules", type=Path, default=RULES.parent, help="folder of rendered rules (default: ours)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
