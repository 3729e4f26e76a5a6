"""``docs/lab.md``: the table of all rows so far. A run replaces the rows that it took and keeps the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

from lab.table import RIGHT, UNSHOWN, WRONG

PATH = Path(__file__).parents[2] / "docs/lab.md"
_HEAD = """\
# The lab

This page is for those who want to know on which devices and faults Plumbline was tested, and with what result. The
devices are those of virtual machines with Debian's own kernels.

`make lab` writes this page. It boots a guest under QEMU with the Debian package as a systemd service. The guest is
emulated, so its timings are meaningless. Each row shows what the kernel's own tools report, what the daemon reports at
the same time, and the verdict computed from both. To run parts of it, see
[CONTRIBUTING.md](../CONTRIBUTING.md#what-runs-when).

"""
_TAIL = """
QEMU cannot emulate PCI Express latency tolerance (LTR), links below their maximum, forward error correction,
transceivers, damaged frames (CRC), igb's own drop counters, wear, media errors and pending sectors, unplugging of SATA
disks, and errors (AER) of endpoints without this capability. These are covered by recorded and published data. Its hub
gives a virtio port one queue, and a guest that was suspended to idle did not wake.

The rows of 2026-11-24 were recorded group by group, while the machine had much other work. 19 of them were restored
from the log of a run that was ended early. 22 first results are not included. Twenty were errors of the test itself: a
guest in another state, a program that was not installed. Two were real. With the clock set forward by 400 days, 15
collectors failed on the next page of a guest short of CPU (6.12). A non-fatal AER error was visible only after the
daemon's next check of PCI Express, within 60 s (6.1). Both tests now wait longer; the first was repeated on 2026-11-26,
the second was not.

On 2026-11-26 six first results are not included, either: two rows asked before the daemon's next look at the disks, two
asked for a metric by a wrong name, one miscounted what multipath says of a path set offline, and the demonstration
ended because the guest was stopped for some minutes.

Later that day `make lab` took all groups on 6.12 in one run from a fresh clone, in 51 minutes beside other work: 116
rows, three of them wrong by errors of the test. One asked before the daemon had read a new RoCE device, one read the
array's count of a rebuild before its check had begun (both were mended and repeated), and one expected requests that
dm-delay holds to be counted, which this kernel does not do (left out; an iSCSI disk that falls silent shows the same).
The power was cut anew, too, while the daemon's store writes without pause: before, no cut met a write.

Two rows were wrong then and are mended. The state's disk that is full and then read-only: on a full disk a probe's run
ended with a traceback before its result was saved, so that nothing noticed (an error of the daemon, with a test now);
and the row let the other probes' files fill the small disk before it began. The iSCSI disk that falls silent: the
kernel was asked after the page, and more had come to wait.
"""
_COLUMNS = ("group", "device", "feature", "kernel", "truth", "the daemon", "verdict", "date")


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report."""

    group: str
    device: str
    feature: str
    kernel: str
    truth: str
    figure: str
    verdict: str
    date: str

    def key(self) -> tuple[str, ...]:
        """What a later run replaces: a kernel's patch level does not matter."""
        return self.group, self.device, self.feature, ".".join(self.kernel.split(".")[:2])


def parse(text: str) -> list[Result]:
    """The rows of a report."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| group"))]
    fields = [tuple(field.strip() for field in line.strip("| ").split(" | ")) for line in lines]
    return [Result(*row) for row in fields if len(row) == len(_COLUMNS)]


def merged(before: Iterable[Result], after: Iterable[Result]) -> list[Result]:
    """All rows, by group, device and feature, the kernels of one beside each other."""
    rows = {row.key(): row for row in (*before, *after)}
    return [rows[key] for key in sorted(rows)]


def render(results: Iterable[Result]) -> str:
    """The whole page."""
    results = list(results)
    counted = {word: sum(row.verdict.startswith(word) for row in results) for word in (RIGHT, WRONG, UNSHOWN)}
    kernels = sorted({row.kernel for row in results})
    summary = f"{len(results)} rows on {', '.join(kernels)}: " + ", ".join(f"{n} {word}" for word, n in counted.items())
    lines = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *(_line(astuple(row)) for row in results)]
    return f"{_HEAD}{summary}.\n\n" + "\n".join(lines) + "\n" + _TAIL


def _line(fields: Iterable[str]) -> str:
    return f"| {' | '.join(field.replace('|', '/') or '-' for field in fields)} |"
