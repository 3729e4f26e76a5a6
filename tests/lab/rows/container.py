"""The image as docs/container.md starts it, by the guest's podman on control groups of version 2: each row of the page.

The package's service makes room for it, and is back after each row. The image is built on this machine.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

from lab import product
from lab.guest import Guest, GuestError, NoAnswer
from lab.rows import disks, nvme, pressure, scsi
from lab.table import Group, NotShown, Row, Seen
from support import container_page
from support.container_page import NAME, STATE
from support.podman import podman_with_image
from support.scraped import Scrape

_PODMAN_S = 600.0
"""Emulated, one ``podman run`` takes long, and to load the image minutes."""
_ANSWERS_WITHIN_S = 600.0
_ALIKE_WITHIN_S = 300.0
_ARCHIVE, _STATE, _PROFILE = "/root/image.tar", "/var/lib/outside", "/etc/plumbline-seccomp.json"
_OUTSIDE = "127.0.0.1:10048"
_NOBODY = "65534:65534"
_HISTOGRAMS, _SMART, _DISKS = "latency histograms (eBPF)", "SMART, NVMe", "raw disks"
_DISK, _SATA = "VBLK0001", "SATA0001"
_LIMITED, _IOPS = "lab-limited", 30


def prepare(guest: Guest) -> None:
    """The guest's podman has the image that docs/container.md builds."""
    if shutil.which("podman") is None:
        raise NotShown("this machine has no podman to build the image with")
    archive = guest.folder / "image.tar"
    try:
        with tempfile.TemporaryDirectory() as folder, podman_with_image(Path(folder)) as podman:
            podman.run("save", "--output", str(archive), container_page.image())
    except (AssertionError, RuntimeError) as error:
        raise NotShown(f"the image: {error}") from None
    guest.put(archive, _ARCHIVE, timeout_s=_PODMAN_S)
    archive.unlink()
    guest.run(f"podman load --quiet --input {_ARCHIVE}; rm {_ARCHIVE}", timeout_s=2 * _PODMAN_S)


@contextmanager
def _started(guest: Guest, *more: str, state: str = STATE) -> Iterator[None]:
    """The page's container in the place of the service; the volume stays. NoAnswer with its last words."""
    exists = lambda path: guest.run(f"test -e {path} && echo yes", check=False) == "yes\n"  # noqa: E731
    argv = container_page.run(*more, exists=exists, state=state)
    try:
        guest.run(f"systemctl stop plumbline; {shlex.join(argv)}", timeout_s=_PODMAN_S)
        if not guest.until(lambda: _ready(guest), bool, within_s=_ANSWERS_WITHIN_S):
            raise NoAnswer(f"the container: {_logs(guest).strip().splitlines()[-1:]}")
        yield
    finally:
        guest.run(f"podman rm --force --time 5 {NAME}; systemctl start plumbline", timeout_s=_PODMAN_S)


def _ready(guest: Guest) -> bool:
    try:
        return bool(guest.get("/-/ready"))
    except GuestError:
        return False


def _logs(guest: Guest) -> str:
    return guest.run(f"podman logs {NAME} 2>&1", check=False)


def _fresh(guest: Guest) -> None:
    guest.run(f"podman volume rm --force {NAME}", timeout_s=_PODMAN_S)


def process(guest: Guest, container: str = NAME) -> str:
    """The number of a container's first process, in the guest."""
    return guest.run(f"podman container inspect --format '{{{{.State.Pid}}}}' {container}").strip()


def rights(guest: Guest, pid: str) -> dict[str, object]:
    """Its user and capabilities, by the kernel."""
    status = dict(line.partition(":\t")[::2] for line in guest.value(f"/proc/{pid}/status").splitlines())
    held = max(int(status[f"Cap{which}"], 16) for which in ("Eff", "Prm", "Bnd"))
    return {"user": status["Uid"].split()[0], "capabilities": held}


def _histogram_flags(guest: Guest) -> list[str]:
    """Of the row; with podman before 5 the page's profile as well."""
    flags = container_page.row(_HISTOGRAMS)
    if int(guest.run("podman --version").split()[-1].partition(".")[0]) >= 5:
        return flags
    written = subprocess.run([sys.executable, "-c", container_page.PAGE.written()], capture_output=True, check=True)
    guest.run(f"echo {shlex.quote(written.stdout.decode())} >{_PROFILE}")
    return [*flags, f"--security-opt=seccomp={_PROFILE}"]


def engine(guest: Guest) -> Seen:
    """The kernel's hierarchy and dpkg's version, beside what podman says."""
    kind = {"cgroup2fs": "v2"}.get(guest.run("stat --file-system --format %T /sys/fs/cgroup").strip(), "v1")
    package = guest.run("dpkg-query --show --showformat '${Version}' podman").partition("+")[0]
    found = guest.json("podman info --format json")
    figure = {"control groups": found["host"]["cgroupVersion"], "podman": found["version"]["Version"]}
    return Seen({"control groups": "v2" if kind == "v2" else None, "podman": package}, figure)


@contextmanager
def _outside(guest: Guest) -> Iterator[None]:
    """The image's own daemon, in its own tree and as user 65534 without capabilities, but in no container."""
    tree = guest.run(f"podman image mount {container_page.image()}").strip()
    properties = (
        f"RootDirectory={tree}", "MountAPIVFS=yes", "User=65534", "Group=65534", "CapabilityBoundingSet=",
        "NoNewPrivileges=yes", "PrivateTmp=yes", "PrivateDevices=yes", "BindReadOnlyPaths=/run/udev",
        f"BindPaths={_STATE}:/var/lib/plumbline",
    )  # fmt: skip
    rights = [word for each in properties for word in ("--property", each)]
    serve = ["/opt/plumbline/bin/plumbline", "serve", f"--web.listen-address={_OUTSIDE}"]
    argv = ["systemd-run", "--quiet", "--unit=outside", *rights, *serve, "--storage.path=/var/lib/plumbline"]
    guest.run(f"rm -rf {_STATE}; install -d -o 65534 -g 65534 -m 700 {_STATE}; {shlex.join(argv)}")
    try:
        yield
    finally:
        guest.run(f"systemctl stop outside; podman image unmount {container_page.image()}", check=False)


def _names(page: Scrape) -> set[str]:
    """Every series but those of probes: one daemon's has run, another's not yet, and they say where it runs."""
    kept = (each for each in page.samples if not each.name.startswith("plumbline_probe_"))
    return {f"{each.name} {json.dumps(each.labels, sort_keys=True)}" for each in kept}


def _series(guest: Guest) -> Seen:
    """In the container, and of the same daemon beside it; some come with the first minute."""
    with _outside(guest):

        def both() -> tuple[set[str], set[str]]:
            try:
                return _names(guest.scrape(_OUTSIDE)), _names(guest.scrape())
            except NoAnswer:
                return set(), set()

        outside, inside = guest.until(both, lambda seen: seen[0] == seen[1] != set(), within_s=_ALIKE_WITHIN_S)
    truth = {"series": len(outside), "outside alone": [], "in it alone": [], "failed": []}
    figure = {
        "series": len(inside),
        "outside alone": sorted(outside - inside)[:5],
        "in it alone": sorted(inside - outside)[:5],
        "failed": product.failed(guest.scrape()),
    }
    return Seen(truth if outside else None, figure)


def _rights(guest: Guest) -> Seen:
    return Seen({"user": "65534", "capabilities": 0}, rights(guest, process(guest)))


def _vantage(guest: Guest) -> Seen:
    """By the variable that podman gives to what it starts."""
    given = guest.run(f"tr '\\0' '\\n' </proc/{process(guest)}/environ").split()
    found = guest.scrape().labels("plumbline_probe_info", "vantage")
    return Seen("container" if "container=podman" in given else None, ", ".join(found))


def _memory(guest: Guest) -> Seen:
    """MiB of its process, by the kernel outside."""
    truth = int(guest.run(f"awk '/^VmRSS/ {{print $2}}' /proc/{process(guest)}/status")) / 1024
    return Seen(truth, (guest.scrape().get("process_resident_memory_bytes") or 0) / (1 << 20), tolerance=3)


@cache
def _plain(guest: Guest) -> Mapping[str, Seen]:
    """All that is seen without more rights, of one container."""
    _fresh(guest)
    looks: dict[str, Callable[[Guest], Seen]] = {
        "series": _series, "user": _rights, "where it runs": _vantage, "memory": _memory, "pressure": pressure.pressure,
    }  # fmt: skip
    with _started(guest):
        return {name: look(guest) for name, look in looks.items()}


def _of_plain(name: str, guest: Guest) -> Seen:
    return _plain(guest)[name]


_READ = """
from pathlib import Path
from plumbline.core.roots import Roots
from plumbline.sources.kernel.cgroup import read_limits
found = read_limits(Roots.under(Path("/host")), %s)
print([(each.device, each.operation, each.unit, each.limit) for each in found.io] if found else None)
print(bool(found and found.cpu))
"""


def limits(guest: Guest) -> Seen:
    """What the daemon reads of another unit's control group, as of an OSD's: its limits on I/O and CPU time."""
    guest.run(
        f"mkdir -p /run/ceph; systemd-run --quiet --unit={_LIMITED} --property='IOWriteIOPSMax=/dev/vda {_IOPS}' "
        "--property=CPUQuota=50% sleep infinity"
    )
    group = f"/sys/fs/cgroup/system.slice/{_LIMITED}.service"
    try:
        set_ = f"wiops={_IOPS}" in guest.value(f"{group}/io.max")
        quota_ = guest.value(f"{group}/cpu.max").split()[0] != "max"
        truth = {"io": str([("vda", "write", "iops", _IOPS)] if set_ else None), "quota": str(quota_)}
        pid = guest.run(f"systemctl show -P MainPID {_LIMITED}").strip()
        with _started(guest, *container_page.row("OSDs' sockets")):
            read = shlex.join(["podman", "exec", NAME, "/opt/plumbline/bin/python", "-c", _READ % pid])
            io, quota = guest.run(read, timeout_s=_PODMAN_S).splitlines()
        return Seen(truth, {"io": io, "quota": quota})
    finally:
        guest.run(f"systemctl stop {_LIMITED}")


def histograms(guest: Guest) -> Seen:
    """Reads of a disk, in the kernel's counters and in the BPF program's; whether the finding is met."""
    _fresh(guest)
    flags = _histogram_flags(guest)
    with _started(guest, *flags):
        finding = lambda: guest.scrape().get("plumbline_finding", check="disk.latency-histograms")  # noqa: E731
        met = guest.until(finding, lambda value: value == 0, within_s=120)
        seen = disks.reads(_DISK, guest)
    assert isinstance(seen.truth, dict)
    assert isinstance(seen.figure, dict)
    return Seen({**seen.truth, "finding": 0.0}, {**seen.figure, "finding": met})


def smart(look: Callable[[Guest], Seen], guest: Guest) -> Seen:
    """As the service has it, by the same look."""
    with _started(guest, *container_page.row(_SMART)):
        return look(guest)


def raw(guest: Guest) -> Seen:
    """What reads a disk that udev gave to group 6, in a container with the row's flags; and with its group, but not its
    rule for the control group, which is a BPF program in version 2."""
    disk = f"/dev/{guest.disk(_SATA)}"
    program = f"print(len(open('{disk}', 'rb').read(512)))"
    read = f"{shlex.join(['podman', 'exec', NAME, 'python3', '-c', program])} 2>&1 | tail -n 1"
    flags = container_page.row(_DISKS)
    _fresh(guest)
    figure = {}
    for name, given in (("flags", flags), ("no rule", [each for each in flags if "rule" not in each])):
        with _started(guest, *given):
            figure[name] = guest.run(read, timeout_s=_PODMAN_S).strip()
    owner = guest.run(f"stat --format '%g %a' {disk}").strip()
    truth = {"flags": "512", "no rule": f"PermissionError: [Errno 1] Operation not permitted: '{disk}'"}
    return Seen(truth if owner == "6 660" else None, figure)


def back(guest: Guest) -> Seen:
    """The user that answers, over root's state: by the ``chown`` of the page, then by ``U``."""
    figure = {}
    for way, state in (("chown", STATE.removesuffix(":U")), ("U", STATE)):
        with _started(guest, "--user=0"):
            figure[f"{way}: before"] = _user(guest)
        if way == "chown":
            guest.run(shlex.join(container_page.owned(_NOBODY)), timeout_s=_PODMAN_S)
        with _started(guest, state=state):
            figure[f"{way}: after"] = _user(guest)
    return Seen({"chown: before": "0", "chown: after": "65534", "U: before": "0", "U: after": "65534"}, figure)


def _user(guest: Guest) -> str:
    """The answering daemon's."""
    return guest.run(f"awk '/^Uid/ {{print $2}}' /proc/{process(guest)}/status").strip()


GROUP = Group(
    "container",
    (
        Row("podman", "control groups and version", engine),
        *(
            Row("podman", f"the page's container: {name}", partial(_of_plain, name))
            for name in ("series", "user", "where it runs", "memory", "pressure")
        ),
        Row("podman", "limits of another control group", limits),
        Row("podman", "histograms, 200 reads", histograms),
        Row("podman", "SMART of a SATA hard disk", partial(smart, partial(scsi.health, _SATA))),
        Row("podman", "health of an NVMe drive", partial(smart, nvme.health)),
        Row("podman", "raw disks", raw),
        Row("podman", "back to user 65534", back),
    ),
    prepare,
)
