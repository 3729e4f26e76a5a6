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
the same time, and the verdict computed from both. The rows of `boot` do what `plumbline check` says and reboot the
guest: with its commands alone, then with what it says to keep. To run parts of it, see
[tests.md](tests.md#what-runs-when).

"""
_TAIL = """
QEMU cannot emulate PCI Express latency tolerance (LTR), links below their maximum, forward error correction,
transceivers, damaged frames (CRC), igb's own drop counters, wear, media errors and pending sectors, unplugging of SATA
disks, and errors (AER) of endpoints without this capability. These are covered by recorded and published data. Its hub
gives a virtio port one queue, and a guest that was suspended to idle did not wake.

A row is what its last run gave. On 2026-11-26 `make lab` took all groups on 6.12 in one run from a fresh clone, in 41
minutes on a quiet machine: 115 rows, none of them wrong, six not shown. The rows of the other kernels were recorded
group by group, while the machine had much other work; 19 of 2026-11-24 were restored from the log of a run that was
ended early.

First results that are not included: 30 were errors of the test itself (a guest in another state, a program that was not
installed, the kernel asked at another moment than the daemon, power cuts of which none met a write of the state). Three
were real. With the clock set forward by 400 days, 15 collectors failed on the next page of a guest short of CPU (6.12;
right when repeated). A non-fatal AER error was visible only after the daemon's next check of PCI Express, within 60 s
(6.1; the test waits longer now, and was not repeated). On a full disk a probe's run ended with a traceback before its
result was saved, so that nothing noticed (mended, with a test). A row about requests that dm-delay holds was left out:
the kernel itself does not count them. An iSCSI disk that falls silent shows the same.

Before the rows of `boot` were taken, two fixes that findings advised were seen not to outlast a reboot (mended, with
tests): with ifupdown where the stanza has the option already, which kept the port down, and where NetworkManager runs
beside networkd, whose ports were taken for its own.

The rows of `container` were taken in one guest, in one command (podman 5.4.2 with crun). Two first results were real,
and the pages have the flag since: a container saw no limits of another control group without `--cgroupns=host`, and the
`chown` of the way back wanted a network, which podman can't make without nftables.

The rows of `cephadm` take about twenty minutes and fetch a release of Ceph, so they are taken only by name
(`make lab ARGS='--only cephadm'`).
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
