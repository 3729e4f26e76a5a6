"""Disks' health: what the checks need to know of a disk, and the checks."""

import shlex
from collections.abc import Iterator

from msgspec import Struct

from plumbline.checks import fixes
from plumbline.checks.growth import Count, Growth
from plumbline.checks.model import Fix, Severity, Verdict, Worded, check
from plumbline.checks.text import counted, plural
from plumbline.core.words import first_few
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.disk.diskhealth import DiskHealth, DiskState, HealthReading, controller_disk, endurance_left_s
from plumbline.sources.kernel.installation import Need

_SILENT = DiskHealth()


class DiskWithHealth(Struct, frozen=True):
    state: DiskState
    osd: str = ""  # OSDs on it, osd.3 or osd.3,osd.4.
    media_errors: Count | None = None

    @property
    def device(self) -> str:
        return self.state.device

    @property
    def health(self) -> DiskHealth:
        """Its figures; empty for a disk that sleeps or does not answer."""
        return self.state.health or _SILENT

    @property
    def seen_before(self) -> bool:
        """Whether it has reported figures since the daemon started."""
        return self.state.last_success_at is not None

    @property
    def nvme(self) -> bool:
        return self.device.startswith("nvme")


Disks = tuple[DiskWithHealth, ...]


def health_facts(readings: Readings, growth: Growth) -> Disks:
    return tuple(_disks(readings, growth))


def _disks(readings: Readings, growth: Growth) -> Iterator[DiskWithHealth]:
    osds = readings.or_empty(DevicesReading).osds
    for state in readings.or_empty(HealthReading):
        errors = state.health.media_errors if state.health else None
        count = growth.count("disk media errors", errors, state.device)
        yield DiskWithHealth(state, osds.get(state.device, ""), count)


def look(disk: DiskWithHealth, caution: str) -> Fix:
    """Show everything the disk reports. This changes nothing; ``caution`` says what follows from it."""
    return Fix(f"smartctl -x {_node(disk)}", caution=f"This only shows. {caution} {replacement(disk)}".strip())


def long_test(disk: DiskWithHealth, caution: str) -> Fix:
    """Have a SATA or SAS disk read all of itself; of NVMe only newer ones can, and smartctl since 7.4."""
    if disk.nvme:
        return look(disk, caution)
    test = f"The test takes hours and yields to other I/O; smartctl -l selftest {_node(disk)} then shows the result."
    return Fix(f"smartctl -t long {_node(disk)}", caution=f"{test} {caution} {replacement(disk)}".strip())


def replacement(disk: DiskWithHealth) -> str:
    """How to take the disk out of service."""
    osds = [osd for osd in disk.osd.split(",") if osd.startswith("osd.")]
    if controller_disk(disk.device)[1]:
        return "Before replacing it, look in the controller's own tool which volume it belongs to."
    if not osds:
        return "Before replacing it, check with lsblk what uses it."
    words = " ".join(shlex.quote(osd) for osd in osds)
    return (
        f"{disk.osd} is on it: ceph osd out {words} moves the data away while it can still be read; "
        f"ceph osd ok-to-stop {words} shows when it may be stopped, ceph osd safe-to-destroy {words} when it may go."
    )


def _node(disk: DiskWithHealth) -> str:
    node, behind = controller_disk(disk.device)
    return shlex.join(["-d", behind, node] if behind else [node])


# --- failing disks: their own verdict, data they could not correct, sectors they could not read

_NOT_A_FAILURE = frozenset({"spare", "temperature"})  # these have checks of their own


@check(
    "health.smart-failed",
    "Replace a disk that reports its own failure.",
    "SATA and SAS disks with a SMART verdict; NVMe by its critical warnings, except spare and temperature, which have "
    "checks of their own.",
    "The disk itself expects to fail, is read-only, or can no longer keep acknowledged data.",
    "smartctl(8) -H; NVM Express base specification 1.4, 5.14.1.2 (critical warning)",
    Severity.CRITICAL,
    "smartctl -x /dev/<device>",
)
def smart_failed(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        bad = [name for name, on in disk.health.warnings.items() if on and name not in _NOT_A_FAILURE]
        if disk.health.smart_passed is None and not disk.health.warnings:
            continue
        expected = "no critical warning" if disk.health.warnings else "passed"
        if disk.health.smart_passed is False or bad:
            actual = f"critical warning: {first_few(bad)}" if bad else "failed: the disk expects to fail"
            yield Verdict(disk.device, actual, expected, look(disk, "Replace the disk."))
        else:
            yield Verdict(disk.device, expected, expected)


@check(
    "health.media-errors",
    "Investigate a disk that loses data.",
    "Disks that count errors they could not correct (NVMe: media and data integrity errors; SATA: reported "
    "uncorrectable; SAS: total uncorrected errors). Not met while the count grows.",
    "Each one is data that a client requested and the disk could not return; more errors tend to follow.",
    "NVM Express base specification 1.4, 5.14.1.2; ACS-4, device statistics, page 04h; smartctl(8) -l error",
    Severity.WARNING,
    "smartctl -t long /dev/<device>",
)
def media_errors(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        errors = disk.media_errors
        if errors is not None:
            actual = counted(errors, "error").replace("since boot", "in the disk's life")
            caution = "If more appear every day, replace it."
            yield Verdict(disk.device, actual, "no new ones", long_test(disk, caution) if errors.grows else None)


@check(
    "health.pending-sectors",
    "Have no sectors that the disk could not read.",
    "SATA disks that count pending or uncorrectable sectors.",
    "Their data is lost on this disk, and every attempt to read it delays all other I/O for seconds.",
    "smartctl(8) -A (attributes 197, 198), -t long",
    Severity.WARNING,
    "smartctl -t long /dev/<device>",
)
def pending_sectors(disks: Disks) -> Iterator[Verdict]:
    caution = "A sector that is written again is no longer pending: Ceph repairs the object that a scrub finds."
    for disk in disks:
        pending, counts = disk.health.pending_sectors, disk.health.offline_uncorrectable_sectors
        if pending is None and counts is None:
            continue
        faults = (
            f"{plural(pending, 'sector')} pending" if pending else "",
            f"{plural(counts, 'sector')} unreadable by the disk's own scan" if counts else "",
        )
        fix = long_test(disk, caution) if pending or counts else None
        yield Verdict(disk.device, " and ".join(filter(None, faults)) or "none", "none", fix)


# --- disks that wear out or run hot

_SOON_PERCENT = 90  # of the rated endurance: from here on it is time to order a new disk
_DAY_S = 86400.0


@check(
    "health.spare-low",
    "Replace a disk whose spare blocks run out.",
    "NVMe disks, by their own threshold.",
    "When the spare blocks are used up, the disk becomes read-only.",
    "NVM Express base specification 1.4, 5.14.1.2 (available spare, available spare threshold)",
    Severity.CRITICAL,
    "smartctl -x /dev/<device>",
)
def spare_low(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        spare, threshold = disk.health.spare_percent, disk.health.spare_threshold_percent
        if spare is not None and threshold is not None:
            low = spare < threshold or disk.health.warnings.get("spare")
            fix = look(disk, "Replace the disk.") if low else None
            yield Verdict(disk.device, f"{spare}% left", f"at least {threshold}%", fix)


@check(
    "health.worn-out",
    "Replace a disk before its rated endurance is used up.",
    "Disks that estimate the share used: NVMe; SATA and SAS by the endurance indicator, some SATA by an attribute. "
    "Info from 90 %, a warning from 100 %.",
    "Beyond it the manufacturer guarantees nothing: neither error rates nor how long data is kept without power.",
    "NVM Express base specification 1.4, 5.14.1.2 (percentage used); ACS-4, device statistics, page 07h",
    Severity.WARNING,
    "smartctl -x /dev/<device>",
)
def worn_out(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        worn = disk.health.wear_percent
        if worn is None:
            continue
        actual, expected = f"{worn}% used", f"below {_SOON_PERCENT}%"
        if worn < _SOON_PERCENT:
            yield Verdict(disk.device, actual, expected)
            continue
        left = "" if worn >= 100 else _time_left(disk)
        fix = look(disk, f"{left}Plan its replacement; disks of one delivery wear out together.")
        yield Verdict(disk.device, actual, expected, fix, Severity.WARNING if worn >= 100 else Severity.INFO)


def _time_left(disk: DiskWithHealth) -> str:
    left_s = endurance_left_s(disk.health)
    return "" if left_s is None else f"At its pace so far it lasts about {left_s / _DAY_S:,.0f} more days. "


@check(
    "health.too-hot",
    "Keep a disk below its own temperature limits.",
    "Disks that report both a temperature and a limit: NVMe's warning and critical composite temperature, SATA's "
    "specified maximum, SAS's trip temperature.",
    "A hot NVMe disk throttles itself: all of its operations become slow; at the critical limit it may shut down.",
    "NVM Express base specification 1.4, identify controller (WCTEMP, CCTEMP); ACS-4, device statistics, page 05h",
    Severity.WARNING,
    "smartctl -x /dev/<device>",
)
def too_hot(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        heat, critical = disk.health.temperature_celsius, disk.health.critical_celsius
        limits = [limit for limit in (disk.health.warning_celsius, critical) if limit is not None]
        if heat is None or not limits:
            continue
        actual, expected = f"{heat:g} °C", f"below {min(limits):g} °C, the disk's own limit"
        if heat < min(limits):
            yield Verdict(disk.device, actual, expected)
            continue
        fix = look(disk, "Check the airflow: fans, filters, blanks in empty slots. Are its neighbours as hot?")
        severity = Severity.CRITICAL if critical is not None and heat >= critical else Severity.WARNING
        yield Verdict(disk.device, actual, expected, fix, severity)


# --- disks that save power


@check(
    "health.nvme-power-state",
    "Run an OSD's NVMe disk at full power.",
    "NVMe disks with an OSD on them that say their power state.",
    "Each further state of a disk takes less power and is slower, or has to be left before the next operation. A state "
    "outlives reboots where somebody saved it; a disk may also change it by itself while it is idle (APST).",
    "NVM Express base specification 1.4, 5.21.1.2 and 8.4 (power management)",
    Severity.INFO,
    "nvme set-feature /dev/<controller> --feature-id=2 --value=0",
)
def power_state(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        state = disk.health.power_state
        if state is None or not disk.osd:
            continue
        controller = shlex.quote(f"/dev/{disk.device.rpartition('n')[0]}")
        fix = Fix(
            f"nvme set-feature {controller} --feature-id=2 --value=0",
            caution="It takes more power and gets warmer. If the disk changes it again by itself, switch APST off: "
            f"nvme set-feature {controller} --feature-id=0x0c --value=0.",
        )
        yield Verdict(disk.device, str(state), "0: full power", fix if state else None)


# --- disks whose health can't be read, and how to make it readable

DROP_IN_DIRECTORY = "/etc/systemd/system/plumbline.service.d"
PERMIT = (
    f"install -D -m 644 systemd/drop-ins/disk-health.conf {DROP_IN_DIRECTORY}/disk-health.conf && "
    "systemctl daemon-reload && systemctl restart plumbline"
)
_REASONS = {
    "no-permission": "the daemon may not query it",
    "no-smartctl": "smartctl is not installed",
    "not-supported": "the disk, or the controller in front of it, does not support the query",
    "no-answer": "it does not answer",
    "malformed": "its answer can't be parsed; see the daemon's log",
    "gone": "it can't be opened: it is gone, or hidden from the daemon",
}


@check(
    "health.not-readable",
    "Make every disk's health readable.",
    "SATA, SAS and NVMe disks. Virtual and software devices have no health of their own. A warning if a disk has "
    "stopped answering.",
    "Only its own figures show in advance that a disk wears out, fails or runs hot.",
    "smartctl(8); drivers/nvme/host/ioctl.c (nvme_cmd_allowed); systemd/README.md",
    Severity.INFO,
    fixes.DEBIAN.install("smartctl"),
)
def not_readable(disks: Disks) -> Iterator[Verdict]:
    expected = "its health is known"
    for disk in disks:
        reason = disk.state.reason
        if disk.state.available:
            yield Verdict(disk.device, "answers", expected)
        else:
            silent = disk.seen_before and reason in ("no-answer", "gone")
            actual = _REASONS.get(reason, reason or "it does not answer")
            yield Verdict(
                disk.device, actual, expected, _make_readable(disk), Severity.WARNING if silent else Severity.INFO
            )


def _make_readable(disk: DiskWithHealth) -> Fix | Worded:
    if disk.state.reason == "no-smartctl":
        return fixes.install("smartctl", need=Need.HEALTH)
    if disk.state.reason == "no-permission" or (disk.state.reason == "gone" and not disk.seen_before):
        caution = (
            "Run it in Plumbline's source tree. It extends the daemon's privileges: systemd/README.md says how far. "
            "Without systemd, run the daemon as root."
        )
        return Fix(PERMIT, caution=caution, need=Need.HEALTH)
    if disk.state.reason == "not-supported":
        caution = (
            "This only shows. Disks behind a RAID controller are listed with -d megaraid,N or similar; Plumbline does "
            "not query those."
        )
        return Fix("smartctl --scan-open", caution=caution)
    return look(disk, "dmesg shows what the kernel reports about it. A disk that does not answer delays I/O.")


CHECKS = (smart_failed, media_errors, pending_sectors, spare_low, worn_out, too_hot, power_state, not_readable)
"""In order: failing disks, worn or hot disks, disks that save power, disks whose health cannot be read."""
