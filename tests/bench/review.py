"""What a review of a month costs: 20 nodes on a Prometheus of its own, by ``python -m bench.review`` in ``tests``.

Wall time depends on who else uses the machine; the CPU seconds of Prometheus and of the report don't.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial

from bench.history_store import Series, Store
from plumbline.report.document import as_document
from plumbline.report.gather import gather
from plumbline.report.period import parse_period
from plumbline.sources.prometheus.queries import Server
from support.history import History, at

BATCH = 400
"""Series of one remote write."""


def main() -> None:
    """Writes the history, asks for the review twice (cold and warm), prints a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--disks", type=int, default=12)
    parser.add_argument("--first", default="2024-08-01")
    parser.add_argument("--last", default="2024-08-31")
    options = parser.parse_args()
    history = History(options.hosts, options.disks, findings=30, first=options.first, last=options.last)
    period = parse_period(first=options.first, last=options.last, days=None, now_s=at("2025-01-01"))
    with Store() as store:
        written = 0
        for piece in history.pieces():
            written += sum(len(values) for _, _, values in piece)
            for begin in range(0, len(piece), BATCH):
                store.write(Series(*each) for each in piece[begin : begin + BATCH])
        print(f"{options.hosts} hosts, {len(history.series):,} series, {written:,} samples", flush=True)
        for run in ("cold", "warm"):
            asked: list[int] = []
            server = Server(store.url, 600, partial(count, asked))
            before, own, began = store.cpu_s(), resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
            review = gather(server, period, cluster=None, made_s=time.time(), version="bench")
            page = written(as_document(review), "html")
            after = resource.getrusage(resource.RUSAGE_SELF)
            print(
                f"{run}: {time.monotonic() - began:.1f} s wall, Prometheus {store.cpu_s() - before:.1f} s CPU,"
                f" report {after.ru_utime - own.ru_utime:.1f} s CPU, {sum(asked)} queries, {len(page) / 1024:.0f} KiB,"
                f" {review.changes_looked_at:,} series looked through, {len(review.changes)} changes",
                flush=True,
            )


def count(asked: list[int], done: int, of: int, _what: str) -> None:
    """Each wave of queries once."""
    if not done:
        asked.append(of)


if __name__ == "__main__":
    main()
