"""An NVMe disk's health: the SMART / Health Information log page, read from the controller by ioctl; its power state.

NVM Express base specification 1.4, 5.14.1.2 (get log page, identifier 02h: SMART / health information), the identify
controller data structure (WCTEMP, CCTEMP) and 5.21.1.2 (get features, identifier 02h: power management); 2.0 has the
same layout. Kernel: include/uapi/linux/nvme_ioctl.h::

    struct nvme_admin_cmd    72 octets; NVME_IOCTL_ADMIN_CMD = _IOWR('N', 0x41, …) = 0xC0484E41

Permission: without CAP_SYS_ADMIN, the kernel allows only some identify commands (since 6.2, ``nvme_cmd_allowed`` in
drivers/nvme/host/ioctl.c) or no admin command at all (before). Opening the node read-only is enough.

``timeout_ms`` stays 0, the driver's own (``nvme_core.admin_timeout``, 60 s): when an admin command times out, the
driver resets the controller (``nvme_timeout`` in drivers/nvme/host/pci.c) with all I/O in flight. Callers must
therefore be able to abandon a call; see ``background/health.py``.
"""

import ctypes
import errno
import fcntl
import os
import re
import struct
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.disk.diskhealth import DROP_IN, DiskHealth, NoHealth, Reason
from plumbline.sources.kernel.sysfs import entries, link_text, read_text
from plumbline.sources.plausible import BYTES, CELSIUS, COUNT, HOURS, LIMIT_CELSIUS, PERCENT, WEAR_PERCENT

ADMIN_CMD = 0xC0484E41
COMMAND = struct.Struct("=BBHIIIQQII6III")
"""opcode, flags, -, nsid, cdw2, cdw3, metadata, addr, metadata_len, data_len, cdw10…cdw15, timeout_ms, result."""

_GET_LOG_PAGE, _IDENTIFY, _GET_FEATURES = 0x02, 0x06, 0x0A
_SMART_LOG, _IDENTIFY_CONTROLLER, _POWER_MANAGEMENT = 0x02, 0x01, 0x02
# bits 4:0 of the answer: the power state; 7:5 are a hint of the workload
_POWER_STATE = 0x1F
_ALL_NAMESPACES = 0xFFFFFFFF
PAGE_BYTES = 512
IDENTIFY_BYTES = 4096

WARNINGS = ("spare", "temperature", "reliability", "read-only", "backup", "memory-region")
"""Bits 0 to 5 of the critical warning: spare below its threshold, temperature beyond a threshold, NVM subsystem
reliability degraded, media read-only, volatile memory backup failed, persistent memory region unreliable."""

# critical warning, temperature, spare and its threshold, used; read, written; cycles, hours, shutdowns, media errors
_PAGE = struct.Struct("<BHBBB26x16s16s48x16s16s16s16s336x")
_LIMITS = struct.Struct("<HH")
_LIMITS_AT = 266
_DATA_UNIT_BYTES = 1000 * 512  # the counters are rounded up to it
_ZERO_CELSIUS_KELVIN = 273  # the specification has whole kelvins (0: none), and other tools use 273 too


class Limits(Struct, frozen=True):
    """Composite temperature limits in kelvin; 0: not reported."""

    warning_kelvin: int = 0
    critical_kelvin: int = 0


def parse_limits(identify: bytes, *, source: str) -> Limits:
    """Parse the 4,096 octets of identify controller; :class:`ParseError` for another length."""
    if len(identify) != IDENTIFY_BYTES:
        raise ParseError(source, f"an identify controller page has {IDENTIFY_BYTES} octets, not {len(identify)}")
    return Limits(*_LIMITS.unpack_from(identify, _LIMITS_AT))


def parse_health(page: bytes, limits: Limits, *, source: str) -> DiskHealth:
    """Parse the log page; :class:`ParseError` unless it has 512 octets, or if all are 0x00 or 0xff."""
    if len(page) != PAGE_BYTES:
        raise ParseError(source, f"a health log page has {PAGE_BYTES} octets, not {len(page)}")
    if page in (bytes(PAGE_BYTES), b"\xff" * PAGE_BYTES):
        raise ParseError(source, f"the controller did not fill the health log page: every octet is {page[0]:#04x}")
    warning, kelvin, spare, threshold, used, *wide = _PAGE.unpack(page)
    read, written, cycles, hours, shutdowns, errors = (int.from_bytes(field, "little") for field in wide)
    return DiskHealth(
        warnings={name: bool(warning >> bit & 1) for bit, name in enumerate(WARNINGS)},
        wear_percent=WEAR_PERCENT.of(used),
        spare_percent=PERCENT.of(spare),
        spare_threshold_percent=PERCENT.of(threshold),
        media_errors=COUNT.of(errors),
        unsafe_shutdowns=COUNT.of(shutdowns),
        power_cycles=COUNT.of(cycles),
        power_on_hours=HOURS.of(hours),
        written_bytes=BYTES.of(written * _DATA_UNIT_BYTES),
        read_bytes=BYTES.of(read * _DATA_UNIT_BYTES),
        temperature_celsius=CELSIUS.of(kelvin - _ZERO_CELSIUS_KELVIN),
        warning_celsius=LIMIT_CELSIUS.of(limits.warning_kelvin - _ZERO_CELSIUS_KELVIN),
        critical_celsius=LIMIT_CELSIUS.of(limits.critical_kelvin - _ZERO_CELSIUS_KELVIN),
    )


def controller_of(disk: str, roots: Roots) -> str | None:
    """``nvme0n1`` → ``nvme0``. With native multipath, the disk's parent is a subsystem: its first live controller."""
    parent = (link_text(roots.sys / "block" / disk) or "").rpartition("/")[0].rpartition("/")[2]
    if re.fullmatch(r"nvme[0-9]+", parent):
        return parent
    if not re.fullmatch(r"nvme-subsys[0-9]+", parent):
        return None
    below = entries(roots.sys / "class" / "nvme-subsystem" / parent)
    controllers = [name for name in below if re.fullmatch(r"nvme[0-9]+", name)]
    live = [name for name in controllers if read_text(roots.sys / "class" / "nvme" / name / "state") == "live"]
    return next(iter(live or controllers), None)


def read_nvme_health(node: Path, limits: Limits | None) -> tuple[DiskHealth, Limits]:
    """Query a controller through its node; ``limits`` of an earlier call save the second query. :class:`NoHealth` or
    :class:`ParseError` without a usable answer. May take as long as the kernel waits for the controller (a minute,
    longer during its reset), and can't be interrupted."""
    try:
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _no_health(node, error) from error
    try:
        log_page = (PAGE_BYTES // 4 - 1) << 16 | _SMART_LOG  # number of double words minus one, identifier
        page = _ask(fd, node, _GET_LOG_PAGE, nsid=_ALL_NAMESPACES, size=PAGE_BYTES, cdw10=log_page)
        if limits is None:
            identify = _ask(fd, node, _IDENTIFY, nsid=0, size=IDENTIFY_BYTES, cdw10=_IDENTIFY_CONTROLLER)
            limits = parse_limits(identify, source=str(node))
        power_state = _power_state(fd, node)
    finally:
        os.close(fd)
    return replace(parse_health(page, limits, source=str(node)), power_state=power_state), limits


def _power_state(fd: int, node: Path) -> int | None:
    """``None`` when the controller refuses: its health is known all the same."""
    try:
        answer = _command(fd, node, _GET_FEATURES, nsid=0, cdw10=_POWER_MANAGEMENT)
    except NoHealth:
        return None
    return answer & _POWER_STATE


def _ask(fd: int, node: Path, opcode: int, *, nsid: int, size: int, cdw10: int) -> bytes:
    # the kernel writes here even when it answers late, so the buffer must live as long as the call
    data = ctypes.create_string_buffer(size)
    _command(fd, node, opcode, nsid=nsid, cdw10=cdw10, address=ctypes.addressof(data), size=size)
    return data.raw


def _command(fd: int, node: Path, opcode: int, *, nsid: int, cdw10: int, address: int = 0, size: int = 0) -> int:
    """The command's result (the completion's first double word); :class:`NoHealth` when it fails."""
    command = bytearray(COMMAND.pack(opcode, 0, 0, nsid, 0, 0, 0, address, 0, size, cdw10, 0, 0, 0, 0, 0, 0, 0))
    try:
        status = fcntl.ioctl(fd, ADMIN_CMD, command, True)
    except OSError as error:
        raise _no_health(node, error) from error
    if status:  # the controller's status: status code 8 bits, its type 3 bits
        raise NoHealth(Reason.NOT_SUPPORTED, f"{node}: the controller refused with NVMe status {status:#06x}")
    result: int = COMMAND.unpack(command)[-1]
    return result


def _no_health(node: Path, error: OSError) -> NoHealth:
    failed = f"{node}: {error.strerror}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return NoHealth(Reason.NO_PERMISSION, f"{failed}; querying it needs CAP_SYS_ADMIN, see {DROP_IN}")
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return NoHealth(Reason.GONE, f"{failed}; hidden by the sandbox (see {DROP_IN}), or the disk is gone")
    if error.errno in (errno.ENOTTY, errno.EINVAL, errno.EISDIR):
        return NoHealth(Reason.NOT_SUPPORTED, f"{failed}; not an NVMe controller")
    return NoHealth(Reason.NO_ANSWER, f"{failed}; see dmesg")
