"""What Grafana's own code makes of panels: ``@grafana/data`` in Node, without its server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .answers import PreviewError
from .bundle import bundle

NOTHING: Mapping[str, Any] = {"resultType": "vector", "result": []}
"""An answer without a series."""


@dataclass(frozen=True, slots=True)
class Made:
    """Of one panel; ``grafana/job.ts`` says what the fields are."""

    title: str
    unknown: list[str]
    unmatched: list[str]
    headings: list[str]
    rows: list[list[str | float | None]]
    texts: list[list[str]]
    tiles: list[list[str]]


def made(
    panels: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]], *, step_s: float = 60.0
) -> list[Made]:
    """Of each ``(panel, what Prometheus answered to each of its queries)``."""
    jobs = [
        {"panel": panel, "answers": list(answers), "variables": {}, "step": step_s * 1000} for panel, answers in panels
    ]
    argv = ["node", str(bundle())]
    done = subprocess.run(argv, input=json.dumps(jobs), capture_output=True, text=True, check=False)
    if done.returncode:
        raise PreviewError(f"Grafana's code: {done.stderr.strip()[:2000]}")
    return [Made(**each) for each in json.loads(done.stdout)]
