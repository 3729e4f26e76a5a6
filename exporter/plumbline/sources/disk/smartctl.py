"""Health of SATA and SAS disks: ``smartctl --json``, called so that a sleeping disk stays asleep.

smartctl(8), ``-n``, ``-d``, ``-l``, EXIT STATUS; JSON since smartmontools 7.0, tested with answers of 7.1 to 7.4. ::

    {"json_format_version": [1, 0], "smartctl": {"version": [7, 3], "messages": [{"string": "…", "severity": "error"}],
     "exit_status": 0}, "device": {"protocol": "ATA"}, "smart_status": {"passed": true},
     "temperature": {"current": 31}, "power_on_time": {"hours": 21213}, …}

Not waking: ATA's CHECK POWER MODE is sent first and wakes nothing. On SAS disks, ``-n`` works since 7.2; before that
they are queried as if awake, with commands that do not touch the medium. ``-d`` is always given, because detecting the
type could wake the disk. For the same reason, smartctl opens the node read-only.

The exit status is a bit set. Bit 0: bad command line; 1: the disk could not be opened or identified; 2: some command
failed. Bits 3 to 7 describe the disk (failing, attributes, logs) and come with a complete answer. The value 3 is ours:
``-n standby,3`` makes it mean asleep. It is otherwise impossible, because bit 0 and bit 1 each end the program.

The message gives the power mode, but SLEEP is unreliable: smartctl reports it whenever CHECK POWER MODE failed, on a
dead disk as well as on a loop device (recorded in tests/fixtures/disk-health). Only the other modes mean asleep.

Wear has no common attribute: vendors number and count it differently. The device statistics log (ACS-3, page 7) and
its SCSI counterpart (solid state media log) are standardised, so they come first. An attribute is used only if its
documentation says that its normalised value counts down from 100, and only if smartctl knows the drive.

Disks behind a RAID controller that presents volumes instead are asked if the configuration names them (``-d
megaraid,N``, ``cciss,N`` …): looking for the valid N would open every device. smartctl itself finds out whether one is
a SATA disk, and then says ``sat+megaraid,N``. MegaRAID's volumes are not asked, because their answers differ:
``megaraid_sas`` has disks on channels 0 and 1, volumes above (MEGASAS_MAX_PD_CHANNELS in its header).
"""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from plumbline.core.foreign import decode_json
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.sources.disk.diskhealth import DROP_IN, Answer, Asleep, DiskHealth, NoHealth, Reason
from plumbline.sources.distribution import advice
from plumbline.sources.kernel import sysfs
from plumbline.sources.plausible import BYTES, CELSIUS, COUNT, HOURS, LIMIT_CELSIUS, WEAR_PERCENT, Range

TIMEOUT_S = 10.0  # a healthy disk answers in a tenth of a second, one that corrects errors in a few seconds
MAX_OUTPUT_BYTES = 1 << 19  # a long answer, with full logs, is 60 KB
ASLEEP_STATUS = 3
_NO_DISK = 0b11
_PLACE = re.compile(r"/(?P<host>[0-9]+):(?P<channel>[0-9]+):[0-9]+:[0-9]+/block/")
_MEGARAID_DISK_CHANNELS = 2
_BLOCK = Range(1, 65536)
_WEAR_LEFT_PERCENT = Range(1, 100)
_NO_POWER_MODE = "no answer to CHECK POWER MODE: the disk is dead or in SLEEP (a reset ends that); see dmesg"
# What finds a figure in the answer. The figures themselves are ``object``: see :mod:`plumbline.sources.plausible`.
Place = Annotated[int, Meta(ge=0, le=2**31)]


class _Message(msgspec.Struct, frozen=True):
    string: str = ""
    severity: str = ""


class _Program(msgspec.Struct, frozen=True):
    exit_status: Place = 0
    messages: tuple[_Message, ...] = ()


class _Device(msgspec.Struct, frozen=True):
    protocol: str = ""


class _Status(msgspec.Struct, frozen=True):
    passed: bool | None = None


class _Temperature(msgspec.Struct, frozen=True):
    """Degrees Celsius."""

    current: object = None
    drive_trip: object = None
    op_limit_max: object = None


class _Hours(msgspec.Struct, frozen=True):
    hours: object = None


class _Raw(msgspec.Struct, frozen=True):
    """``value`` is the raw 48 bits, ``string`` the drive database's interpretation: the count comes first."""

    string: str = ""


class _Attribute(msgspec.Struct, frozen=True):
    id: Place
    name: str = ""
    value: object = None
    raw: _Raw = _Raw()


class _Attributes(msgspec.Struct, frozen=True):
    table: tuple[_Attribute, ...] = ()


class _Flags(msgspec.Struct, frozen=True):
    valid: bool = False


class _Statistic(msgspec.Struct, frozen=True):
    offset: Place
    value: object = None
    flags: _Flags = _Flags()


class _Page(msgspec.Struct, frozen=True):
    number: Place
    table: tuple[_Statistic, ...] = ()


class _Statistics(msgspec.Struct, frozen=True):
    pages: tuple[_Page, ...] = ()


class _Errors(msgspec.Struct, frozen=True):
    """One SCSI error counter page; ``gigabytes_processed`` is 10⁹ octets, with three decimals."""

    gigabytes_processed: str = ""
    total_uncorrected_errors: object = None


class _Report(msgspec.Struct, frozen=True):
    """The fields of the answer that are used."""

    smartctl: _Program
    device: _Device = _Device()
    in_smartctl_database: bool = False
    smart_status: _Status = _Status()
    temperature: _Temperature = _Temperature()
    power_on_time: _Hours = _Hours()
    power_cycle_count: object = None
    logical_block_size: object = None
    ata_smart_attributes: _Attributes = _Attributes()
    ata_device_statistics: _Statistics = _Statistics()
    scsi_grown_defect_list: object = None
    scsi_percentage_used_endurance_indicator: object = None
    scsi_error_counter_log: dict[str, _Errors] = {}


def command(program: str, node: Path, transport: str | None, behind: str = "") -> tuple[str, ...]:
    """The command line. ``sat,auto`` distinguishes a SATA disk behind a SAS port from a SAS disk by INQUIRY alone.
    ``behind``: the type of a disk behind a controller."""
    kind = behind or ("sat" if transport == "sata" else "sat,auto")
    logs = (f"--log={name}" for name in ("error", "ssd", "devstat,1", "devstat,4", "devstat,5"))
    return (program, "--json=c", "-n", f"standby,{ASLEEP_STATUS}", "-d", kind, "-i", "-H", "-A", *logs, str(node))


def check_askable(disk: str, roots: Roots) -> None:
    """:class:`NoHealth` for a MegaRAID volume: it answers something, but not about a disk."""
    place = _PLACE.search(sysfs.link_text(roots.sys / "block" / disk) or "")
    if place is None or int(place["channel"]) < _MEGARAID_DISK_CHANNELS:
        return
    host = roots.sys / "class" / "scsi_host" / f"host{place['host']}"
    if sysfs.read_text(host / "proc_name") == "megaraid_sas":
        raise NoHealth(Reason.NOT_SUPPORTED, f"{disk}: a volume of a MegaRAID controller, which hides its disks")


def read_smartctl(
    node: Path,
    transport: str | None,
    program: str | None,
    runner: ProcessRunner,
    *,
    behind: str = "",
    timeout_s: float = TIMEOUT_S,
    pause: Callable[[float], None] = time.sleep,
) -> Answer:
    """Query one disk; ``program`` is smartctl's path. :class:`NoHealth` or :class:`ParseError` without an answer.
    Returns within ``timeout_s`` plus some seconds to kill the program; if it survives that (the disk holds it in the
    kernel), waits until it ends, so that no second command is started meanwhile."""
    if program is None:
        text = f"smartctl is not installed, so SATA and SAS disks can't be queried: {advice('smartctl')}"
        raise NoHealth(Reason.NO_PROGRAM, text)
    argv = command(program, node, transport, behind)
    done = runner.run(argv, timeout_s=timeout_s, max_output_bytes=MAX_OUTPUT_BYTES)
    while done.returncode is None and not done.cancelled and runner.holds(argv):
        pause(1.0)
    if done.timed_out or done.returncode is None:
        raise NoHealth(Reason.NO_ANSWER, f"{node}: smartctl: no answer within {timeout_s:g} s; see dmesg")
    if done.truncated:
        raise NoHealth(Reason.MALFORMED, f"{node}: smartctl wrote more than {MAX_OUTPUT_BYTES} octets")
    if not done.stdout:
        message = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
        reason = Reason.NO_PROGRAM if done.returncode == 127 else Reason.NO_ANSWER
        raise NoHealth(reason, f"{node}: smartctl printed nothing, exit {done.returncode}: {message or '-'}")
    return parse_answer(done.stdout, source=f"smartctl {node} {behind}".rstrip())


def parse_answer(text: bytes, *, source: str) -> Answer:
    """Parse one disk's answer. :class:`NoHealth` when it says why there is none, :class:`ParseError` if malformed."""
    report = decode_json(text, _Report, source=source, what="not smartctl's JSON")
    status = report.smartctl.exit_status
    reported = "; ".join(message.string for message in report.smartctl.messages)[:300]
    mode = re.search(r"Device is in ([A-Z_ ]{1,40}) mode", reported)
    if status == ASLEEP_STATUS or (mode and status & _NO_DISK):
        if mode and mode[1] == "SLEEP":
            raise NoHealth(Reason.NO_ANSWER, f"{source}: {_NO_POWER_MODE}")
        return Asleep()  # for SAS disks, some versions omit the message from the JSON
    if status & _NO_DISK:
        raise _refused(reported, source)
    health = _scsi(report) if report.device.protocol == "SCSI" else _ata(report)
    if health == DiskHealth():
        raise NoHealth(
            Reason.NOT_SUPPORTED, f"{source}: the disk has no SMART: {reported or 'no figures in the answer'}"
        )
    return health


def _refused(reported: str, source: str) -> NoHealth:
    if re.search(r"Permission denied|Operation not permitted", reported):
        return NoHealth(Reason.NO_PERMISSION, f"{source}: {reported}; querying it needs CAP_SYS_RAWIO, see {DROP_IN}")
    if "cannot open /dev/megaraid" in reported:
        text = f"{source}: {reported}; there is no such controller, or its node needs a line in {DROP_IN}"
        return NoHealth(Reason.NO_PERMISSION, text)
    if re.search(r"No such (file|device)", reported):
        return NoHealth(
            Reason.GONE, f"{source}: {reported}; hidden by the sandbox (see {DROP_IN}), or the disk is gone"
        )
    if re.search(r"Unable to detect|Unknown|does not support|[Nn]ot supported|lacks SMART|megaraid|cciss", reported):
        return NoHealth(Reason.NOT_SUPPORTED, f"{source}: {reported}")
    return NoHealth(Reason.NO_ANSWER, f"{source}: {reported or 'it could not be opened or identified'}; see dmesg")


def _ata(report: _Report) -> DiskHealth:
    attributes = {attribute.id: attribute for attribute in report.ata_smart_attributes.table}
    block = _BLOCK.of(report.logical_block_size)

    def statistic(page: int, offset: int) -> object:
        for log_page in report.ata_device_statistics.pages:
            if log_page.number == page:
                for entry in log_page.table:
                    if entry.offset == offset and entry.flags.valid:
                        return entry.value
        return None

    def raw(number: int, names: str) -> int | None:
        attribute = attributes.get(number)
        if attribute is None or not re.fullmatch(names, attribute.name):
            return None
        match = re.match(r"[0-9]{1,19}(?![0-9A-Za-z.])", attribute.raw.string)
        return COUNT.of(int(match[0])) if match else None

    def octets(offset: int, number: int) -> int | None:
        sectors = BYTES.of(statistic(1, offset))
        if sectors is not None:
            return None if block is None else BYTES.of(sectors * block)
        for suffix, unit in _UNITS.items():
            count = raw(number, f"(Host|Lifetime)_(Reads|Writes){suffix}")
            if count is not None:
                return BYTES.of(count * unit)
        return None

    wear = WEAR_PERCENT.of(statistic(7, 0x008))
    if wear is None and report.in_smartctl_database:
        named = (attributes[number] for number, name in _WEAR_LEFT if _has_name(attributes.get(number), name))
        left = [value for attribute in named if (value := _WEAR_LEFT_PERCENT.of(attribute.value)) is not None]
        wear = 100 - left[0] if left else None
    uncorrected = COUNT.of(statistic(4, 0x008))
    heat = report.temperature
    return DiskHealth(
        smart_passed=report.smart_status.passed,
        wear_percent=wear,
        media_errors=raw(187, "Reported_Uncorrect|Uncorrectable_Error_Cnt") if uncorrected is None else uncorrected,
        unsafe_shutdowns=raw(174, "Unsafe_Shutdown_Count|Unexpect_Power_Loss_Ct")
        if 174 in attributes
        else raw(192, "Unsafe_Shutdown_Count"),
        power_cycles=COUNT.of(report.power_cycle_count),
        power_on_hours=HOURS.of(report.power_on_time.hours),
        written_bytes=octets(0x018, 241),
        read_bytes=octets(0x028, 242),
        temperature_celsius=CELSIUS.of(heat.current),
        warning_celsius=LIMIT_CELSIUS.of(statistic(5, 0x058) if heat.op_limit_max is None else heat.op_limit_max),
        reallocated_sectors=raw(5, "Reallocated_Sector_Ct|Retired_Block_Count|Reallocate_NAND_Blk_Cnt"),
        pending_sectors=raw(197, r".*Pending.*"),
        offline_uncorrectable_sectors=raw(198, r"Offline_Uncorrectable.*"),
        interface_errors=raw(199, r".*CRC_Error.*"),
    )


# Names that include the unit in the drive database. Not ``Total_LBAs_Written``, which the database also uses for
# counters in other units: by it, an SSD of 21,000 hours in public records would have been written 66 MB.
_UNITS = {"_32MiB": 2**25, "_GiB": 2**30}
# Attributes whose normalised value is the percentage of endurance left, by their name in the drive database. Not
# 173 (average erase count): its rating is unknown. 0 is not a percentage: several drives use it for "not counted".
_WEAR_LEFT = (
    (233, "Media_Wearout_Indicator"),
    (231, "SSD_Life_Left"),
    (202, "Percent_Lifetime_Remain"),
    (177, "Wear_Leveling_Count"),
)


def _scsi(report: _Report) -> DiskHealth:
    pages = report.scsi_error_counter_log
    counts = [COUNT.of(page.total_uncorrected_errors) for page in pages.values()]
    uncorrected = [count for count in counts if count is not None]

    def octets(page: str) -> int | None:
        match = re.fullmatch(r"([0-9]{1,12})\.([0-9]{3})", pages[page].gigabytes_processed) if page in pages else None
        return BYTES.of(int(match[1] + match[2]) * 10**6) if match else None

    heat = report.temperature
    return DiskHealth(
        smart_passed=report.smart_status.passed,
        wear_percent=WEAR_PERCENT.of(report.scsi_percentage_used_endurance_indicator),
        media_errors=sum(uncorrected) if uncorrected else None,
        power_cycles=COUNT.of(report.power_cycle_count),
        power_on_hours=HOURS.of(report.power_on_time.hours),
        written_bytes=octets("write"),
        read_bytes=octets("read"),
        temperature_celsius=CELSIUS.of(heat.current),
        critical_celsius=LIMIT_CELSIUS.of(heat.drive_trip),
        reallocated_sectors=COUNT.of(report.scsi_grown_defect_list),
    )


def _has_name(attribute: _Attribute | None, name: str) -> bool:
    return attribute is not None and attribute.name == name
