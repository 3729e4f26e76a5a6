"""A fio run with its guard, in a separate process: opening a directory on a dead mount may hang for ever.

``main([task])`` takes a JSON :class:`Task` and prints a JSON :data:`Answer`. fio dies with this process
(``launch.py``), and this process with the daemon.
"""

import os
import sys
import threading
import time
from typing import TypeAlias

import msgspec

from plumbline.core.foreign import decode_json
from plumbline.core.process import ProcessRunner
from plumbline.errors import PlumblineError, ProbeRefused
from plumbline.probes.fio.fio import remove_surplus, run_fio
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.run.child_task import Failed, Refused
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import ProbeResult


class Task(msgspec.Struct, frozen=True):
    """``keep_fds``: the locks. ``clean_up``: no run, only :func:`~plumbline.probes.fio.fio.remove_surplus`."""

    plan: FioPlan
    keep_fds: tuple[int, ...]
    clean_up: bool = False

    def encode(self) -> str:
        """As JSON, which has no paths."""
        return msgspec.json.encode(self, enc_hook=str).decode()


class Done(msgspec.Struct, frozen=True, tag_field="kind", tag="done"):
    """fio was run; its result says how that went. ``None`` after a clean-up."""

    result: ProbeResult | None = None


Answer: TypeAlias = Done | Refused | Failed


def main(argv: list[str]) -> int:
    task = decode_json(argv[0], Task, source="the task", hook=lambda kind, text: kind(text))
    answer: Answer
    try:
        if task.clean_up:
            remove_surplus(task.plan)
            answer = Done()
        else:
            run = Run(ProcessRunner(os.environ), time.time, threading.Event(), task.keep_fds)
            answer = Done(run_fio(task.plan, run))
    except ProbeRefused as refusal:
        answer = Refused(refusal.reason, str(refusal))
    except PlumblineError as error:
        answer = Failed(str(error))
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0
