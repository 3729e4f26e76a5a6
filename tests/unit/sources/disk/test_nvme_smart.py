"""NVMe's health log page, and the ioctl that asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.disk.diskhealth import DiskHealth, NoHealth, Reason
from plumbline.sources.disk.nvme_smart import (
    ADMIN_CMD,
    COMMAND,
    WARNINGS,
    Limits,
    controller_of,
    parse_health,
    parse_limits,
    read_nvme_health,
)
from support.nvme import OCTETS, USED, identify_page, smart_page

FIXTURES = Path(__file__).parents[3] / "fixtures"


def test_every_field_stands_where_the_specification_says() -> None:
    fields = {
        name: (number * 13 + 1) % 99 if first == last else number * 257 + 1
        for number, (name, (first, last)) in enumerate(OCTETS.items(), 1)
    }

    fields["temperature_kelvin"] = 373

    health = parse_health(smart_page(fields, tuple(range(300, 308))), Limits(), source="nvme0")

    assert health == DiskHealth(
        warnings={name: bool(fields["critical_warning"] >> bit & 1) for bit, name in enumerate(WARNINGS)},
        wear_percent=fields["used_percent"],
        spare_percent=fields["spare_percent"],
        spare_threshold_percent=fields["spare_threshold_percent"],
        media_errors=fields["media_errors"],
        unsafe_shutdowns=fields["unsafe_shutdowns"],
        power_cycles=fields["power_cycles"],
        power_on_hours=fields["power_on_hours"],
        written_bytes=fields["written_units"] * 512_000,
        read_bytes=fields["read_units"] * 512_000,
        temperature_celsius=100,
    )


@pytest.mark.parametrize("units", [2**64, 2**70, 2**128 - 1])
def test_wide_counters_are_128_bits_and_no_disk_can_fill_them(units: int) -> None:
    health = parse_health(smart_page(USED | {"read_units": units}), Limits(), source="nvme0")
    assert (health.read_bytes, health.written_bytes) == (None, 3 * 512_000)


@pytest.mark.parametrize("page", [b"", bytes(511), bytes(513), bytes(512), b"\xff" * 512])
def test_no_page(page: bytes) -> None:
    with pytest.raises(ParseError, match="nvme0"):
        parse_health(page, Limits(), source="nvme0")


def test_limits() -> None:
    assert parse_limits(identify_page(343, 353), source="nvme0") == Limits(343, 353)
    with pytest.raises(ParseError):
        parse_limits(bytes(512), source="nvme0")


def test_health_in_the_units_of_all_disks() -> None:
    health = parse_health(smart_page(USED | {"critical_warning": 0b1001}), Limits(343, 0), source="nvme0")
    assert health.warnings == {
        "spare": True,
        "temperature": False,
        "reliability": False,
        "read-only": True,
        "backup": False,
        "memory-region": False,
    }
    assert (health.wear_percent, health.spare_percent, health.spare_threshold_percent) == (104, 97, 10)
    assert (health.written_bytes, health.read_bytes) == (3 * 512_000, 2**40 * 512_000)
    assert (health.temperature_celsius, health.warning_celsius, health.critical_celsius) == (38, 70, None)
    assert (health.power_cycles, health.power_on_hours, health.unsafe_shutdowns, health.media_errors) == (
        12,
        26000,
        5,
        2,
    )
    assert health.smart_passed is None


def test_the_command_is_laid_out_as_the_kernels_header_says(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None or not Path("/usr/include/linux/nvme_ioctl.h").exists():
        pytest.skip("no C compiler, or no kernel headers (Debian packages gcc, linux-libc-dev)")
    names = ["opcode", "flags", "rsvd1", "nsid", "cdw2", "cdw3", "metadata", "addr", "metadata_len", "data_len"]
    names += [f"cdw{number}" for number in range(10, 16)] + ["timeout_ms", "result"]
    prints = "".join(f'printf("%zu ", offsetof(struct nvme_admin_cmd, {name}));' for name in names)
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stdio.h>\n#include <stddef.h>\n#include <sys/ioctl.h>\n#include <linux/nvme_ioctl.h>\n"
        f"int main(void) {{ {prints} "
        'printf("%zu %lu", sizeof(struct nvme_admin_cmd), (unsigned long)NVME_IOCTL_ADMIN_CMD); return 0; }\n'
    )
    subprocess.run([compiler, "-o", tmp_path / "layout", source], check=True, timeout=60)
    *offsets, size, number = map(
        int, subprocess.run([tmp_path / "layout"], capture_output=True, check=True, timeout=60).stdout.split()
    )

    assert (COMMAND.size, ADMIN_CMD) == (size, number)
    for index, offset in enumerate(offsets):
        packed = COMMAND.pack(*(1 if each == index else 0 for each in range(len(names))))
        assert packed.index(1) == offset, names[index]


def test_a_node_that_is_no_controller() -> None:
    with pytest.raises(NoHealth, match="not an NVMe controller") as caught:
        read_nvme_health(Path("/dev/null"), None)
    assert caught.value.reason == Reason.NOT_SUPPORTED


def test_a_node_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoHealth, match=r"disk-health\.conf") as caught:
        read_nvme_health(tmp_path / "nvme0", None)
    assert caught.value.reason == Reason.GONE


def test_a_node_that_may_not_be_opened(tmp_path: Path) -> None:
    node = tmp_path / "nvme0"
    node.write_bytes(b"")
    node.chmod(0)
    if os.access(node, os.R_OK):
        pytest.skip("root may open everything")
    with pytest.raises(NoHealth, match="CAP_SYS_ADMIN") as caught:
        read_nvme_health(node, None)
    assert caught.value.reason == Reason.NO_PERMISSION


@pytest.mark.parametrize(
    ("errno", "reason"), [(13, Reason.NO_PERMISSION), (1, Reason.NO_PERMISSION), (19, Reason.GONE), (5, "no-answer")]
)
def test_what_the_kernel_refuses(errno: int, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno, os.strerror(errno))

    monkeypatch.setattr("fcntl.ioctl", refuse)
    with pytest.raises(NoHealth) as caught:
        read_nvme_health(Path("/dev/null"), None)
    assert caught.value.reason == reason


def test_what_is_asked_and_what_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's side played: it writes to the address that the command names."""
    import ctypes

    asked = []

    def kernel(_fd: int, number: int, command: bytearray, _mutate: bool) -> int:
        fields = COMMAND.unpack(command)
        opcode, nsid, address, size, cdw10, timeout_ms = (fields[at] for at in (0, 3, 7, 9, 10, 16))
        asked.append((number, opcode, nsid, size, cdw10, timeout_ms))
        if opcode == 0x0A:
            command[-4:] = (0x43).to_bytes(4, "little")  # a hint of the workload, and power state 3
            return 0
        page = smart_page(USED) if opcode == 2 else identify_page(343, 353)
        ctypes.memmove(address, page, size)
        return 0

    monkeypatch.setattr("fcntl.ioctl", kernel)
    health, limits = read_nvme_health(Path("/dev/null"), None)
    again, _ = read_nvme_health(Path("/dev/null"), limits)

    assert health == again
    assert (health.wear_percent, health.critical_celsius, health.power_state) == (104, 80, 3)
    assert asked == [
        (0xC0484E41, 2, 0xFFFFFFFF, 512, 0x007F0002, 0),
        (0xC0484E41, 6, 0, 4096, 1, 0),
        (0xC0484E41, 0x0A, 0, 0, 2, 0),
        (0xC0484E41, 2, 0xFFFFFFFF, 512, 0x007F0002, 0),
        (0xC0484E41, 0x0A, 0, 0, 2, 0),
    ]


def test_a_controller_that_does_not_say_its_power_state(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    def kernel(_fd: int, _number: int, command: bytearray, _mutate: bool) -> int:
        fields = COMMAND.unpack(command)
        if fields[0] == 0x0A:
            return 0x2002
        ctypes.memmove(fields[7], smart_page(USED), fields[9])
        return 0

    monkeypatch.setattr("fcntl.ioctl", kernel)
    health, _ = read_nvme_health(Path("/dev/null"), Limits())
    assert (health.wear_percent, health.power_state) == (104, None)


def test_a_controller_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.ioctl", lambda *_: 0x2002)
    with pytest.raises(NoHealth, match="0x2002"):
        read_nvme_health(Path("/dev/null"), None)


def test_the_controller_below_a_disk(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    (roots.sys / "block").mkdir(parents=True)
    (roots.sys / "block" / "nvme0n1").symlink_to("../devices/pci0000:00/0000:00:1d.0/nvme/nvme0/nvme0n1")
    (roots.sys / "block" / "nvme3n1").symlink_to("../devices/virtual/nvme-subsystem/nvme-subsys3/nvme3n1")
    (roots.sys / "block" / "nvme9n1").symlink_to("../devices/virtual/nvme-subsystem/nvme-subsys9/nvme9n1")
    subsystem = roots.sys / "class" / "nvme-subsystem" / "nvme-subsys3"
    for name, state in (("nvme4", "deleting"), ("nvme7", "live")):
        (subsystem / name).mkdir(parents=True)
        (roots.sys / "class" / "nvme" / name).mkdir(parents=True)
        (roots.sys / "class" / "nvme" / name / "state").write_text(f"{state}\n")
    (subsystem / "nvme3n1").mkdir()

    assert controller_of("nvme0n1", roots) == "nvme0"
    assert controller_of("nvme3n1", roots) == "nvme7"
    assert controller_of("nvme9n1", roots) is None
    assert controller_of("sda", roots) is None
