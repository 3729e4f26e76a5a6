"""Compiles the BPF program into the wheel.

Without clang or libbpf's headers the wheel is built all the same, without the program, and the daemon says so; with
PLUMBLINE_REQUIRE_BPF=1 the build fails instead. ``python hatch_build.py`` compiles in place, for runs from the tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("exporter/plumbline/bpf")
SOURCE, OBJECT = "disk_latency.bpf.c", "disk_latency.bpf.o"
CLANG = ("clang", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpfel", "-mcpu=v3", "-c", SOURCE)
NOWHERE = "-fdebug-compilation-dir=."  # nothing in the object tells where it was built


class CompileError(Exception):
    """Why there is no object, in one line."""


def compile_program(folder: Path, target: Path) -> None:
    """``folder``'s program to ``target``, little-endian, with types and without the rest of the debug information."""
    if shutil.which(CLANG[0]) is None:
        raise CompileError("clang: not found; Debian packages clang and libbpf-dev bring what is needed")
    done = subprocess.run(
        [*CLANG, NOWHERE, "-o", str(target.absolute())],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr.strip()[:200])
        hint = "; Debian package libbpf-dev" if "bpf/bpf_" in first else ""
        raise CompileError(f"{first}{hint}")
    if shutil.which("llvm-strip"):  # four fifths of it are for debuggers; BTF stays
        subprocess.run(["llvm-strip", "-g", str(target)], check=False)


class CustomBuildHook(BuildHookInterface[Any]):
    """Hatchling's hook: called once for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  (hatchling's signature)
        """Compile into a temporary folder and have the result packed."""
        self._folder = tempfile.mkdtemp(prefix="plumbline-bpf-")
        target = Path(self._folder) / OBJECT
        try:
            compile_program(Path(self.root) / FOLDER, target)
        except CompileError as error:
            if os.environ.get("PLUMBLINE_REQUIRE_BPF") == "1":
                raise
            print(f"built without disk latency histograms: {error}", file=sys.stderr)
            return
        build_data["force_include"][str(target)] = f"plumbline/bpf/{OBJECT}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Nothing is left behind."""
        shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    here = Path(__file__).parent / FOLDER
    try:
        compile_program(here, here / OBJECT)
    except CompileError as problem:
        sys.exit(str(problem))
