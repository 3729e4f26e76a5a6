"""Ansible, run for real against hosts, and what it says it did."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

RUN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run's outcome on one host."""

    code: int
    ok: int
    changed: int
    failed: int
    changed_tasks: tuple[str, ...]
    output: str


class Ansible:
    """The programs in ``programs``, the collection as it is built and installed, an inventory of hosts."""

    def __init__(self, programs: Path, collection: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PIPELINING": "1",
            # one real SSH connection a run; it ends by itself
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=20s",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "c"),
            "ANSIBLE_RETRY_FILES_ENABLED": "0",
            "LC_ALL": "C.UTF-8",
        }
        (folder / "ansible.cfg").touch()  # not this machine's own
        self.call("ansible-galaxy", "collection", "build", str(collection), "--output-path", str(folder))
        built = next(folder.glob("plumbline-deploy-*.tar.gz"))
        self.call("ansible-galaxy", "collection", "install", str(built), "--offline", "-p", str(folder / "collections"))

    def call(self, program: str, *arguments: str, cwd: Path | None = None) -> str:
        """Run one of Ansible's programs; AssertionError with its words unless it exits with 0."""
        done = self._run(program, *arguments, cwd=cwd)
        assert done.returncode == 0, f"{program} {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def play(self, playbook: str, host: Mapping[str, object], variables: Mapping[str, Any], *flags: str) -> Run:
        """One of the collection's playbooks (``node``, ``monitoring``) on one host, without questions asked."""
        inventory = {"all": {"hosts": {"stor01": dict(host)}}}
        (self._folder / "inventory.yaml").write_text(yaml.safe_dump(inventory))
        where = {"plumbline_hosts": "all", "plumbline_monitoring_hosts": "all"}
        (self._folder / "variables.json").write_text(json.dumps({**where, **variables}))
        done = self._run(
            "ansible-playbook", "-i", str(self._folder / "inventory.yaml"), f"plumbline.deploy.{playbook}",
            "--extra-vars", f"@{self._folder / 'variables.json'}", *flags,
        )  # fmt: skip
        return _read(done.returncode, done.stdout + done.stderr)

    def _run(self, program: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._programs / program), *arguments], cwd=cwd or self._folder, env=self._environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=RUN_SECONDS, check=False,
        )  # fmt: skip


def _read(code: int, output: str) -> Run:
    recap = re.search(r"^stor01\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=\d+\s+failed=(\d+)", output, re.MULTILINE)
    tasks: list[str] = []
    current = ""
    for line in output.splitlines():
        if heading := re.match(r"(?:TASK|RUNNING HANDLER) \[(.*)\]", line):
            current = heading[1].rpartition(" : ")[2]
        elif line.startswith("changed: [") and (not tasks or tasks[-1] != current):
            tasks.append(current)
    ok, changed, failed = (int(figure) for figure in recap.groups()) if recap else (0, 0, 1)
    return Run(code=code, ok=ok, changed=changed, failed=failed, changed_tasks=tuple(tasks), output=output)
