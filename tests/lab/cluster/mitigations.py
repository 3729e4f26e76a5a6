"""What the runbooks' steps against a slow OSD do for clients: measured side by side, the disk slow all the time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from lab.cluster import ceph
from lab.cluster.scenarios import WRITES_PER_S, Lab, slow_disk

POOL = "clients"
BENCH_S = 20
BEGIN, END = "<!-- by make lab ARGS='--cluster --mitigations' -->", "<!-- end of mitigations -->"
COLUMNS = ("step", "writes: mean", "longest", "writes/s", "reads: mean", "longest")


@dataclass(frozen=True, slots=True)
class Felt:
    """Of ``rados bench``, in seconds; ``rate``: a second."""

    mean: float
    longest: float
    rate: float


def parsed(output: str) -> Felt:
    """The summary of a ``rados bench``; LookupError if it has none."""
    lines = re.findall(r"^(Average Latency|Max latency|Average IOPS)[^:]*:\s*([\d.]+)", output, re.MULTILINE)
    found = {name: float(value) for name, value in lines}
    return Felt(found["Average Latency"], found["Max latency"], found["Average IOPS"])


def measure(lab: Lab, say: Callable[[str], None]) -> list[tuple[str, ...]]:
    """A row for each step, as ``COLUMNS``. The cluster is as before afterwards."""
    rows = []
    lab.ceph.add_pool(POOL, size=3, pg_num=32)
    with ExitStack() as stack:
        stack.callback(lab.ceph.remove_pool, POOL)
        for name, step, slow, moving in _STEPS:
            with step(lab):
                if slow:
                    slow_disk(lab)
                try:
                    rows.append(_row(name, lab, moving=moving))
                finally:
                    lab.undo.close()
            say(" | ".join(rows[-1]))
            lab.ceph.wait_healthy(ceph.WITHIN_S)
    return rows


def _row(name: str, lab: Lab, *, moving: bool) -> tuple[str, ...]:
    """LookupError where data has to move all the time and does not."""
    if not moving:
        time.sleep(5)
    words = ("-p", POOL, "bench", str(BENCH_S))
    write = parsed(lab.ceph.run("rados", *words, "write", "-b", "4K", "-t", "4", "--no-cleanup", timeout_s=300))
    read = parsed(lab.ceph.run("rados", *words, "rand", "-t", "4", timeout_s=300))
    if moving and lab.ceph.is_clean():
        raise LookupError("all data has moved before the measurement ended: write more before")
    lab.ceph.run("rados", "-p", POOL, "cleanup", timeout_s=600)
    times = [f"{seconds * 1000:.0f} ms" for seconds in (write.mean, write.longest, read.mean, read.longest)]
    return (name, *times[:2], f"{write.rate:.0f}", *times[2:])


@contextmanager
def _as_is(_lab: Lab) -> Iterator[None]:
    yield


@contextmanager
def _affinity(lab: Lab) -> Iterator[None]:
    lab.ceph.ceph("osd", "primary-affinity", "osd.2", "0")
    yield
    lab.ceph.ceph("osd", "primary-affinity", "osd.2", "1")


@contextmanager
def _out(lab: Lab) -> Iterator[None]:
    """After its data has moved."""
    lab.ceph.ceph("osd", "out", "2")
    time.sleep(5)
    lab.ceph.eventually(lab.ceph.is_clean, "its data does not move", ceph.WITHIN_S)
    yield
    lab.ceph.ceph("osd", "in", "2")


@contextmanager
def _out_now(lab: Lab) -> Iterator[None]:
    """While its data moves."""
    lab.ceph.ceph("config", "set", "osd", "osd_mclock_profile", "high_client_ops")
    lab.ceph.run("rados", "-p", POOL, "bench", "30", "write", "-b", "1M", "-t", "8", "--no-cleanup", timeout_s=300)
    lab.undo.callback(lab.ceph.ceph, "osd", "in", "2")
    slow_disk(lab)
    lab.ceph.ceph("osd", "out", "2")
    yield
    lab.ceph.ceph("config", "rm", "osd", "osd_mclock_profile")


@contextmanager
def _stop(lab: Lab) -> Iterator[None]:
    lab.ceph.ceph("osd", "set", "noout")
    lab.hosts["s2"].run("systemctl stop ceph-osd@2")
    lab.ceph.eventually(lambda: 2 not in _up(lab), "Ceph does not see that osd.2 is down", 120.0)
    yield
    lab.hosts["s2"].run("systemctl reset-failed ceph-osd@2 || true; systemctl start ceph-osd@2")
    lab.ceph.ceph("osd", "unset", "noout")


def _up(lab: Lab) -> set[int]:
    return {osd["osd"] for osd in lab.ceph.ceph_json("osd", "dump")["osds"] if osd["up"]}


# name, step, whether its disk is made slow then, whether data has to move all the time
_STEPS = (
    ("nothing is slow", _as_is, False, False),
    (f"the disk of osd.2 makes {WRITES_PER_S} writes/s", _as_is, True, False),
    ("… and `ceph osd primary-affinity 2 0`", _affinity, True, False),
    ("… and `ceph osd out 2`, while its data moves", _out_now, False, True),  # slow before it is out
    ("… and `ceph osd out 2`, when its data has moved", _out, True, False),
    ("… and osd.2 is stopped (`noout` set)", _stop, False, False),
)


def written(text: str, rows: list[tuple[str, ...]]) -> str:
    """The page with its table replaced; ValueError where it has none."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} … {END}")
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return f"{head}{BEGIN}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{END}{tail}"
