"""Programs that tests need and a machine may lack: named, so that a skip says what to install; and every program that
a test starts is held against the lists, so that a fresh machine has it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from requirements.programs import GIVEN, essential, listed

OTHERS = frozenset({"go", "helm", "kubectl", "kustomize"})
"""In no Debian package: who looks for one says so and does without."""

SYSTEM = frozenset(Path(top, kind) for top in ("/", "/usr", "/usr/local") for kind in ("bin", "sbin"))


def need(program: str) -> str:
    """The path of ``program``; without it the test is skipped with the package's name as the reason."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian package {listed().get(program, 'unknown')})")
    return found


def known() -> frozenset[str] | None:
    """Every program that a fresh machine has once the listed packages are installed; None: this is no Debian."""
    if shutil.which("dpkg-query") is None:
        return None
    return essential() | GIVEN | OTHERS | listed().keys()


class Started:
    """An audit hook (sys.addaudithook) that notes which of the system's programs this process starts."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __call__(self, event: str, arguments: Sequence[object]) -> None:
        if event in {"subprocess.Popen", "os.exec", "os.posix_spawn"}:
            program, *_, environment = arguments
            self.note(os.fsdecode(program), environment)  # type: ignore[arg-type]

    def note(self, program: str, environment: object) -> None:
        """Nothing of a program that is not the system's own: a test's, or the environment's it runs in."""
        given: dict[Any, Any] = environment if isinstance(environment, dict) else dict(os.environ)
        path = given.get("PATH") or given.get(b"PATH")
        found = shutil.which(program, path=None if path is None else os.fsdecode(path))
        if found and Path(found).parent in SYSTEM:
            self.names.add(Path(found).name)

    def strange(self, known: Iterable[str]) -> set[str]:
        """What was started since the last call and is not known."""
        names, self.names = self.names, set()
        return names - set(known)
