"""A fio run with its guard, in a separate process: opening a directory on a dead mount may hang for ever.

``main([task])`` takes a JSON :class:`Task` and prints a JSON :data:`Answer`. fio dies with this process
(``launch.py``), and this process with the daemon.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TypeAlias

import msgspec

from plumbline.config.workloads import BlockWorkload
from plumbline.core.process import ProcessRunner
from plumbline.errors import PlumblineError, ProbeRefused
from plumbline.probes.apart import Failed, Refused
from plumbline.probes.disk.fio import remove_surplus, run_fio
from plumbline.probes.disk.fio_job import FioPlan
from plumbline.probes.result import ProbeResult
from plumbline.probes.tool import FIO


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A :class:`FioPlan` and the descriptors of the locks; ``clean_up``: no run, only
    :func:`~plumbline.probes.disk.fio.remove_surplus`."""

    probe: str
    workload: BlockWorkload
    directory: str
    device_class: str
    runtime_s: float
    timeout_s: float
    file_size: int
    rate_iops: int | None
    keep_fds: tuple[int, ...]
    clean_up: bool = False

    @classmethod
    def of(cls, plan: FioPlan, keep_fds: tuple[int, ...], *, clean_up: bool = False) -> Task:
        """Encode a probe's plan."""
        return cls(
            probe=plan.probe,
            workload=plan.workload,
            directory=str(plan.directory),
            device_class=plan.device_class,
            runtime_s=plan.runtime_s,
            timeout_s=plan.timeout_s,
            file_size=plan.file_size,
            rate_iops=plan.rate_iops,
            keep_fds=keep_fds,
            clean_up=clean_up,
        )

    def plan(self) -> FioPlan:
        """Decode the plan."""
        return FioPlan(
            probe=self.probe,
            workload=self.workload,
            directory=Path(self.directory),
            device_class=self.device_class,
            runtime_s=self.runtime_s,
            timeout_s=self.timeout_s,
            file_size=self.file_size,
            rate_iops=self.rate_iops,
        )


class Done(msgspec.Struct, frozen=True, tag_field="kind", tag="done"):
    """fio was run; its result says how that went. ``None`` after a clean-up."""

    result: ProbeResult | None = None


Answer: TypeAlias = Done | Refused | Failed


def main(argv: list[str]) -> int:
    """See the module; always 0."""
    task = msgspec.json.decode(argv[0], type=Task)
    answer: Answer
    try:
        if task.clean_up:
            remove_surplus(task.plan())
            answer = Done()
        else:
            runner = ProcessRunner(os.environ)
            result = run_fio(task.plan(), runner=runner, tool=FIO, clock=time.time, keep_fds=task.keep_fds)
            answer = Done(result)
    except ProbeRefused as refusal:
        answer = Refused(refusal.reason, str(refusal))
    except PlumblineError as error:
        answer = Failed(str(error))
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0
