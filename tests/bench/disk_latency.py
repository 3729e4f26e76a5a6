"""What the latency histograms cost: one fio run at the device's highest rate, with the program attached in every other
stretch of it, many short stretches, the median of neighbours' ratios.

A loop device over a file in memory, because the rate has to be bound by the CPU: zram takes bios and emits no requests,
so there is nothing to time on it. CPU-bound is the worst case; a disk that is waited for loses nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.sources.disk import latencymaps
from plumbline.sources.disk.blocklatency import SETTINGS_WITHIN_S, BlockLatency
from plumbline.sources.disk.latencymaps import SLOT_BYTES, Sizes, parse_slot, sum_lanes

MIB = 2**20
FIO = ("--name=bench", "--direct=1", "--rw=randread", "--bs=4k", "--iodepth=32", "--numjobs=2", "--time_based")
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


def main() -> int:
    """Exit code 0: measured, or said why not. Nothing is judged here."""
    parser = argparse.ArgumentParser(prog="python -m bench.disk_latency", description=__doc__)
    parser.add_argument("--pairs", type=int, default=60, help="of stretches with and without (60)")
    parser.add_argument("--stretch", type=float, default=0.25, help="seconds each (0.25)")
    parser.add_argument("--own-notes", action="store_true", help="as where the kernel does not note the issue")
    parser.add_argument("--rate", type=int, default=0, help="IOPS that fio is held to; compares CPU time instead")
    options = parser.parse_args()
    print("\ndisk latency histograms", flush=True)
    missing = [program for program in ("fio", "losetup", "mount") if shutil.which(program) is None]
    if os.geteuid() != 0 or missing:
        print(f"(left out: {'missing ' + ', '.join(missing) if missing else 'not root'})")
        return 0
    with ExitStack() as undo:
        device = undo.enter_context(memory_disk())
        own = options.own_notes
        latency = BlockLatency(Roots.under(Path("/")), keep=lambda _name: True, notes=lambda *_: not own, own_notes=own)
        latency.open()
        undo.callback(latency.close)
        if latency._attached is None:
            print("(left out: the program can't be loaded; `plumbline serve` says why)")
            return 0
        _compare(device, latency, options.pairs, options.stretch, options.rate)
        _nanoseconds(device, latency)
    _reading()
    return 0


@contextmanager
def memory_disk() -> Iterator[Path]:
    """A loop device over 512 MiB of memory."""
    with ExitStack() as undo:
        folder = tempfile.mkdtemp(prefix="plumbline-bench-")
        undo.callback(os.rmdir, folder)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "tmpfs", folder], check=True)
        undo.callback(subprocess.run, ["umount", folder], check=True)
        image = Path(folder) / "image"
        with image.open("wb") as file:
            for _ in range(512):
                file.write(b"\1" * MIB)
        found = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
        undo.callback(subprocess.run, ["losetup", "--detach", found.stdout.strip()], check=True)
        yield Path(found.stdout.strip())


@contextmanager
def fio(device: Path, rate: int = 0) -> Iterator[None]:
    """fio as fast as it goes, or at so many requests a second, until the block ends."""
    held = [f"--rate_iops={rate // 2}"] if rate else []  # a job
    argv = ["fio", *FIO, *held, f"--filename={device}", "--ioengine=libaio", "--runtime=3600"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        yield
    finally:
        process.terminate()
        process.wait(30)


def _pause(latency: BlockLatency) -> None:
    """Time no requests."""
    assert latency._attached is not None
    latencymaps.begin(latency._attached.state, 0)
    latency._attached.object.detach()


def _resume(latency: BlockLatency) -> None:
    """Continue after a pause."""
    assert latency._attached is not None
    latency._refresh(SETTINGS_WITHIN_S)
    latency._attached.object.attach(["complete"])


def _compare(device: Path, latency: BlockLatency, pairs: int, stretch_s: float, rate: int) -> None:
    """At the highest rate: requests a second. At a rate that is held: CPU time a request, of the whole machine."""
    ratios, rates = [], []
    with fio(device, rate):
        for pair in range(pairs):
            measured = {}
            for on in (True, False) if pair % 2 else (False, True):
                (_resume if on else _pause)(latency)
                requests_s, busy_s = _stretch(device, stretch_s)
                measured[on] = busy_s / max(1.0, requests_s) if rate else requests_s
                if not on:
                    rates.append(requests_s)
            if all(measured.values()):  # else fio did not get a CPU, or there was not a tick
                ratios.append(measured[True] / measured[False])
        _resume(latency)
    ratios.sort()
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    print(f"IOPS without: {statistics.median(rates):,.0f} (median); fio randread 4 KiB, 2 jobs × 32, {device.name}")
    quartiles = f"{ratios[len(ratios) // 4]:.3f} {ratios[3 * len(ratios) // 4]:.3f}"
    median = f"{statistics.median(ratios):.4f} ± {1.25 * error:.4f} (median of {len(ratios)} pairs)"
    what = "CPU time a request" if rate else "IOPS"
    mean = f"{statistics.mean(ratios):.4f} ± {error:.4f}"
    print(f"{what} with ÷ without: {median}, mean {mean}, quartiles {quartiles}", flush=True)


def _stretch(device: Path, stretch_s: float) -> tuple[float, float]:
    """Requests a second, and seconds of CPU a second."""
    began, before, busy = time.monotonic(), _reads(device), _busy_s()
    time.sleep(stretch_s)
    took = time.monotonic() - began
    return (_reads(device) - before) / took, (_busy_s() - busy) / took


def _busy_s() -> float:
    """All CPUs' time that was not idle, counted in ticks."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _reads(device: Path) -> int:
    return int((Path("/sys/block") / device.name / "stat").read_text().split()[0])


def _nanoseconds(device: Path, latency: BlockLatency) -> None:
    """The kernel's own clock around the program; one reading of it (tens of ns in a guest) is in the figure."""
    before = STATS.read_text()
    STATS.write_text("1")
    try:
        with fio(device):
            time.sleep(2)
    finally:
        STATS.write_text(before)
    attached = latency._attached
    assert attached is not None
    for name in attached.programs:
        text = Path(f"/proc/self/fdinfo/{attached.object.program_fd(name)}").read_text()
        numbers = {key: int(value) for key, value in re.findall(r"^(\w+):\s*(\d+)$", text, re.MULTILINE)}
        print(f"{name}: {numbers['run_time_ns'] / max(1, numbers['run_cnt']):.0f} ns an event", flush=True)


def _reading() -> None:
    """What a scrape of a large node costs: 64 lanes, 60 disks."""
    sizes = Sizes(lanes=64, slots=136, sets=1024)
    memory = memoryview(bytearray(sizes.histogram_entries * SLOT_BYTES))
    began = time.perf_counter()
    for _ in range(5):
        words = sum_lanes(memory, sizes, 60)
        for slot in range(60):
            parse_slot(words, slot)
    print(f"reading 60 disks of 64 lanes: {(time.perf_counter() - began) / 5 * 1e3:.1f} ms a scrape", flush=True)


if __name__ == "__main__":
    sys.exit(main())
