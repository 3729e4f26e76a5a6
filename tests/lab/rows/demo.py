"""``make demo-slow`` as root on a host with systemd and cgroup v2: the first thing that a newcomer tries."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path

from lab import product
from lab.guest import Guest
from lab.table import Group, Row, Seen
from support.rules import ROOT

_SEEN = "the whole cycle was seen"


def cycle(guest: Guest) -> Seen:
    """With the package's interpreter in place of ``.venv``: the guest reaches no registry. The canary's disk is slowed
    by ``io.max``; an alert fires and resolves."""
    files = subprocess.run(["git", "ls-files", "-z", "deploy", "alerts"], cwd=ROOT, capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "demo.tar")
        with tarfile.open(archive, "w") as tar:
            for name in files.stdout.decode().split("\0")[:-1]:
                tar.add(ROOT / name, name)
        guest.put(archive, "/root/demo.tar")
    guest.run("systemctl stop plumbline; mkdir -p /root/demo && tar -xf /root/demo.tar -C /root/demo")
    command = f"cd /root/demo && {product.PYTHON} -m deploy.demo --slow --exit --quick --minutes 30 2>&1"
    said = guest.run(command, check=False, timeout_s=3600).strip().splitlines()
    guest.run("systemctl start plumbline")
    (guest.folder / "demo.log").write_text("\n".join(said))
    controllers = guest.run("stat -fc %T /sys/fs/cgroup").strip()
    last = [line for line in said if "stopped;" not in line][-1:]
    done = next((_SEEN for line in said if _SEEN in line), " ".join(last))
    return Seen({"cgroup": "cgroup2fs", "end": _SEEN}, {"cgroup": controllers, "end": done})


GROUP = Group("demo", (Row("cgroup v2", "make demo-slow", cycle),))
