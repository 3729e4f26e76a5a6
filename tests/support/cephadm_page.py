"""What deploy/cephadm's page and spec say, for whoever follows them: ``make test-platforms`` here, ``make lab`` in a
guest."""

from __future__ import annotations

import re
from typing import Any

import yaml

from .page_commands import ROOT, Page, flags

PAGE = Page.of("deploy/cephadm/README.md")
SPEC = "deploy/cephadm/plumbline.yaml"
GIVEN: dict[str, Any] = yaml.safe_load((ROOT / SPEC).read_text("utf-8"))
IMAGE: str = GIVEN["spec"]["image"]
SERVICE = "container.plumbline"


def uncommented(spec: dict[str, Any]) -> dict[str, Any]:
    """With the canary of RADOS, whose lines are comments until the pools are there."""
    files = spec["spec"]["files"]
    lines = [re.sub(r"^#(?=  )", "", line) for line in files["etc/plumbline.yaml"]]
    return {**spec, "spec": {**spec["spec"], "files": {**files, "etc/plumbline.yaml": lines}}}


def with_processes(spec: dict[str, Any]) -> dict[str, Any]:
    """With the flags of the row "OSDs' processes"."""
    return {**spec, "spec": {**spec["spec"], "args": [*spec["spec"]["args"], *flags(PAGE.row("OSDs' processes"))]}}
