"""The walk of a recording: layers bottom-up, the probes of a layer taking turns, each finished run kept at once.

Several short runs are made instead of a long one: their spread shows how far the baseline can be trusted, and a run
that coincided with other I/O stands out. They take turns, so that a busy moment affects one run of each probe and not
all runs of one. A failure of one probe does not affect the others; a lower layer never waits for an upper one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from plumbline.baseline.model import Target
from plumbline.baseline.record.statistics import EntryRecord, Quantile, RunFigures, likenesses, summarise
from plumbline.baseline.record.work_file import KeptRun
from plumbline.baseline.site import SiteFile
from plumbline.config.workloads import LAYERS
from plumbline.core.grouping import grouped
from plumbline.errors import BaselineError, PlumblineError, ProbeRefused

# runs of each probe: the fewest whose median two disturbed runs cannot move
RUNS = 5
# the reason of a ProbeRefused that ends the walk; any other reason ends only the step
STOPPED = "stopped"
# called by a run with its stage and its live figures
Tell = Callable[[str, str], None]


class Step(msgspec.Struct, frozen=True):
    """One thing to run several times: a probe, canaries side by side, or a search for a latency. ``parameters``: hash
    of everything that defines the experiment; ``lasts_s``: estimated duration of one run; ``measure`` makes one run and
    raises :class:`PlumblineError`; ``last``: it runs after all other steps of its layer, because it loads the device to
    its limit."""

    name: str
    layer: str
    parameters: str
    runs: int
    lasts_s: float
    measure: Callable[[Tell], Measured]
    last: bool = False


class Measured(msgspec.Struct, frozen=True):
    figures: tuple[RunFigures, ...]
    tool: str = ""
    tool_version: str = ""


class Progress(msgspec.Struct, frozen=True):
    """Reported before and during each run, and once at the end (``done == total``). ``run`` counts from 1; ``left_s``
    is the estimated time until the end."""

    done: int
    total: int
    layer: str
    step: str
    run: int
    runs: int
    left_s: float
    stage: str = ""
    figures: str = ""


class Walked(msgspec.Struct, frozen=True):
    """All finished runs, by step in the order of the walk; and the failed steps with their errors."""

    runs: tuple[KeptRun, ...]
    failed: Mapping[str, PlumblineError]


def walk(
    steps: Sequence[Step],
    *,
    kept: Sequence[KeptRun] = (),
    keep: Callable[[KeptRun], None] = lambda _: None,
    clock: Callable[[], float],
    progress: Callable[[Progress], None] = lambda _: None,
) -> Walked:
    """Make every run that is not yet ``kept``; ``keep`` is called with each run as soon as it is finished. ``clock``
    returns Unix seconds. Raises :class:`ProbeRefused` (``stopped``) if the walk is ended from outside."""
    done = {step.name: [run for run in kept if run.step == step.name][: step.runs] for step in steps}
    lasts = {step.name: step.lasts_s for step in steps}
    failed: dict[str, PlumblineError] = {}
    total = sum(step.runs for step in steps)

    for step, run in _turns(steps):
        if step.name in failed or len(done[step.name]) >= run:
            continue
        count = sum(map(len, done.values()))
        left = sum(lasts[step.name] * (step.runs - len(done[step.name])) for step in steps if step.name not in failed)
        now = Progress(count, total, step.layer, step.name, run, step.runs, left)
        progress(now)
        began = clock()
        try:
            measured = step.measure(_teller(now, progress))
        except PlumblineError as error:
            if isinstance(error, ProbeRefused) and error.reason == STOPPED:
                raise
            failed[step.name] = error
            continue
        finished = clock()
        lasts[step.name] = max(0.0, finished - began)
        made = KeptRun(
            step=step.name,
            parameters=step.parameters,
            finished=finished,
            figures=measured.figures,
            tool=measured.tool,
            tool_version=measured.tool_version,
        )
        keep(made)
        done[step.name].append(made)
    count = sum(map(len, done.values()))
    progress(Progress(count, count, "", "", 0, 0, 0.0))
    return Walked(tuple(run for step in in_order(steps) for run in done[step.name]), failed)


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Lowest layer first; within a layer in the given order, with ``last`` steps at the end."""
    return sorted(steps, key=lambda step: (LAYERS.index(step.layer), step.last))


def _turns(steps: Sequence[Step]) -> Iterator[tuple[Step, int]]:
    """Each step with the number of its run, starting at 1."""
    ordered = in_order(steps)
    for place in dict.fromkeys((step.layer, step.last) for step in ordered):
        here = [step for step in ordered if (step.layer, step.last) == place]
        for run in range(1, max(step.runs for step in here) + 1):
            yield from ((step, run) for step in here if run <= step.runs)


def _teller(now: Progress, progress: Callable[[Progress], None]) -> Tell:
    return lambda stage, figures: progress(replace(now, stage=stage, figures=figures))


def entries_of(targets: Sequence[Target], runs: Sequence[KeptRun], quantile: Quantile) -> tuple[EntryRecord, ...]:
    """The entries of ``targets``, lowest layer first. Raises :class:`BaselineError` if a run lacks a figure."""
    of_runs = (figure for run in runs for figure in run.figures)
    by_target = grouped(of_runs, lambda figure: (figure.probe, figure.workload, figure.operation))
    figures = {target: by_target.get((target.probe, target.workload, target.operation), []) for target in targets}
    groups = likenesses(target for target in targets if figures[target])
    records = [summarise(group, figures, quantile) for group in groups]
    return tuple(sorted(records, key=lambda record: LAYERS.index(record.layer)))


def file_of(head: SiteFile, records: Sequence[EntryRecord], notes: Sequence[str]) -> SiteFile:
    """The file; ``head`` says where, when, by whom and with what. :class:`BaselineError` without ``records``."""
    if not records:
        raise BaselineError("record", "no probe measures anything on this host; enable one in the configuration")
    return replace(head, notes=tuple(notes), entries=tuple(record.entry for record in records))
