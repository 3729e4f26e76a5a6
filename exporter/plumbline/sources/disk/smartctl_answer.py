"""Parse smartctl's JSON: one disk's figures, that it is asleep, or why there are no figures.

smartctl(8), EXIT STATUS; JSON since smartmontools 7.0, tested with answers of 7.1 to 7.4. ::

    {"json_format_version": [1, 0], "smartctl": {"version": [7, 3], "messages": [{"string": "…", "severity": "error"}],
     "exit_status": 0}, "device": {"protocol": "ATA"}, "smart_status": {"passed": true},
     "temperature": {"current": 31}, "power_on_time": {"hours": 21213}, …}

The exit status is a bit set. Bit 0: bad command line; 1: the disk could not be opened or identified; 2: some command
failed. Bits 3 to 7 describe the disk (failing, attributes, logs) and come with a complete answer. The value 3 is ours:
``-n standby,3`` makes it mean asleep. It is otherwise impossible, because bit 0 and bit 1 each end the program.

The message gives the power mode, but SLEEP is unreliable: smartctl reports it whenever CHECK POWER MODE failed, on a
dead disk as well as on a loop device (recorded in tests/fixtures/disk-health). Only the other modes mean asleep.

Wear has no common attribute: vendors number and count it differently. The device statistics log (ACS-3, page 7) and
its SCSI counterpart (solid state media log) are standardised, so they come first. An attribute is used only if its
documentation says that its normalised value counts down from 100, and only if smartctl knows the drive.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from plumbline.errors import ParseError
from plumbline.sources.disk.diskhealth import (
    DROP_IN,
    GONE,
    NO_ANSWER,
    NO_PERMISSION,
    NOT_SUPPORTED,
    Answer,
    Asleep,
    DiskHealth,
    NoHealth,
)

ASLEEP_STATUS = 3
_NO_DISK = 0b11
_NO_POWER_MODE = "no answer to CHECK POWER MODE: the disk is dead or in SLEEP (a reset ends that); see dmesg"
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Lenient(msgspec.Struct, frozen=True):
    """Ignores unknown keys."""


class _Message(_Lenient, frozen=True):
    string: str = ""
    severity: str = ""


class _Program(_Lenient, frozen=True):
    exit_status: Whole = 0
    messages: tuple[_Message, ...] = ()


class _Device(_Lenient, frozen=True):
    protocol: str = ""


class _Status(_Lenient, frozen=True):
    passed: bool | None = None


class _Temperature(_Lenient, frozen=True):
    """Degrees Celsius."""

    current: Whole | None = None
    drive_trip: Whole | None = None
    op_limit_max: Whole | None = None


class _Hours(_Lenient, frozen=True):
    hours: Count | None = None


class _Raw(_Lenient, frozen=True):
    """``value`` is the raw 48 bits, ``string`` the drive database's interpretation: the count comes first."""

    string: str = ""


class _Attribute(_Lenient, frozen=True):
    id: Whole
    name: str = ""
    value: Whole = 0
    raw: _Raw = _Raw()


class _Attributes(_Lenient, frozen=True):
    table: tuple[_Attribute, ...] = ()


class _Flags(_Lenient, frozen=True):
    valid: bool = False


class _Statistic(_Lenient, frozen=True):
    offset: Whole
    value: Whole | None = None
    flags: _Flags = _Flags()


class _Page(_Lenient, frozen=True):
    number: Whole
    table: tuple[_Statistic, ...] = ()


class _Statistics(_Lenient, frozen=True):
    pages: tuple[_Page, ...] = ()


class _Errors(_Lenient, frozen=True):
    """One SCSI error counter page; ``gigabytes_processed`` is 10⁹ octets, with three decimals."""

    gigabytes_processed: str = ""
    total_uncorrected_errors: Count | None = None


class _Report(_Lenient, frozen=True):
    """The fields of the answer that are used."""

    smartctl: _Program
    device: _Device = _Device()
    in_smartctl_database: bool = False
    smart_status: _Status = _Status()
    temperature: _Temperature = _Temperature()
    power_on_time: _Hours = _Hours()
    power_cycle_count: Count | None = None
    logical_block_size: Annotated[int, Meta(ge=1, le=65536)] | None = None
    ata_smart_attributes: _Attributes = _Attributes()
    ata_device_statistics: _Statistics = _Statistics()
    scsi_grown_defect_list: Count | None = None
    scsi_percentage_used_endurance_indicator: Count | None = None
    scsi_error_counter_log: dict[str, _Errors] = {}


def parse_answer(text: bytes, *, source: str) -> Answer:
    """Parse one disk's answer. :class:`NoHealth` when it says why there is none, :class:`ParseError` if malformed."""
    try:
        report = msgspec.json.decode(text, type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(source, f"not smartctl's JSON: {' '.join(str(error).split())[:120]}") from error
    status = report.smartctl.exit_status
    said = "; ".join(message.string for message in report.smartctl.messages)[:300]
    mode = re.search(r"Device is in ([A-Z_ ]{1,40}) mode", said)
    if status == ASLEEP_STATUS or (mode and status & _NO_DISK):
        if mode and mode[1] == "SLEEP":
            raise NoHealth(NO_ANSWER, f"{source}: {_NO_POWER_MODE}")
        return Asleep()  # for SAS disks, some versions omit the message from the JSON
    if status & _NO_DISK:
        raise _refused(said, source)
    health = _scsi(report) if report.device.protocol == "SCSI" else _ata(report)
    if health == DiskHealth():
        raise NoHealth(NOT_SUPPORTED, f"{source}: the disk has no SMART: {said or 'no figures in the answer'}")
    return health


def _refused(said: str, source: str) -> NoHealth:
    if re.search(r"Permission denied|Operation not permitted", said):
        return NoHealth(NO_PERMISSION, f"{source}: {said}; asking it takes CAP_SYS_RAWIO, see {DROP_IN}")
    if re.search(r"No such (file|device)", said):
        return NoHealth(GONE, f"{source}: {said}; hidden by the sandbox (see {DROP_IN}), or the disk is gone")
    if re.search(r"Unable to detect|Unknown|does not support|[Nn]ot supported|lacks SMART|megaraid|cciss", said):
        return NoHealth(NOT_SUPPORTED, f"{source}: {said}")
    return NoHealth(NO_ANSWER, f"{source}: {said or 'it could not be opened or identified'}; see dmesg")


def _ata(report: _Report) -> DiskHealth:
    attributes = {each.id: each for each in report.ata_smart_attributes.table}
    block = report.logical_block_size

    def statistic(page: int, offset: int) -> int | None:
        for each in report.ata_device_statistics.pages:
            if each.number == page:
                for entry in each.table:
                    if entry.offset == offset and entry.flags.valid:
                        return entry.value
        return None

    def raw(number: int, names: str) -> int | None:
        attribute = attributes.get(number)
        if attribute is None or not re.fullmatch(names, attribute.name):
            return None
        match = re.match(r"[0-9]{1,19}(?![0-9A-Za-z.])", attribute.raw.string)
        return int(match[0]) if match else None

    def octets(offset: int, number: int) -> int | None:
        sectors = _counted(statistic(1, offset))
        if sectors is not None:
            return None if block is None else sectors * block
        for suffix, unit in _UNITS.items():
            count = raw(number, f"(Host|Lifetime)_(Reads|Writes){suffix}")
            if count is not None:
                return count * unit
        return None

    wear = _counted(statistic(7, 0x008))
    if wear is None and report.in_smartctl_database:
        left = [
            attributes[number].value
            for number, name in _WEAR_LEFT
            if number in attributes and attributes[number].name == name and 1 <= attributes[number].value <= 100
        ]
        wear = 100 - left[0] if left else None
    uncorrected = _counted(statistic(4, 0x008))
    heat = report.temperature
    return DiskHealth(
        smart_passed=report.smart_status.passed,
        wear_percent=wear,
        media_errors=raw(187, "Reported_Uncorrect|Uncorrectable_Error_Cnt") if uncorrected is None else uncorrected,
        unsafe_shutdowns=raw(174, "Unsafe_Shutdown_Count|Unexpect_Power_Loss_Ct")
        if 174 in attributes
        else raw(192, "Unsafe_Shutdown_Count"),
        power_cycles=report.power_cycle_count,
        power_on_hours=report.power_on_time.hours,
        written_bytes=octets(0x018, 241),
        read_bytes=octets(0x028, 242),
        temperature_celsius=_celsius(heat.current),
        warning_celsius=_celsius(statistic(5, 0x058) if heat.op_limit_max is None else heat.op_limit_max),
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
    uncorrected = [each.total_uncorrected_errors for each in pages.values()]
    known = [count for count in uncorrected if count is not None]

    def octets(page: str) -> int | None:
        match = re.fullmatch(r"([0-9]{1,12})\.([0-9]{3})", pages[page].gigabytes_processed) if page in pages else None
        return int(match[1] + match[2]) * 10**6 if match else None

    heat = report.temperature
    return DiskHealth(
        smart_passed=report.smart_status.passed,
        wear_percent=report.scsi_percentage_used_endurance_indicator,
        media_errors=sum(known) if known else None,
        power_cycles=report.power_cycle_count,
        power_on_hours=report.power_on_time.hours,
        written_bytes=octets("write"),
        read_bytes=octets("read"),
        temperature_celsius=_celsius(heat.current),
        critical_celsius=_celsius(heat.drive_trip or None),  # 0: not set
        reallocated_sectors=report.scsi_grown_defect_list,
    )


def _counted(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None


def _celsius(degrees: int | None) -> int | None:
    """A plausible disk temperature; some firmware reports -1 or 255 for none."""
    return degrees if degrees is not None and -60 <= degrees <= 150 else None
