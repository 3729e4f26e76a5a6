"""Opening and naming, without a kernel that would let us."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core.capabilities import Capability, parse_effective
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.disk.blocklatency import (
    BlockLatency,
    explain,
    notes_issues,
    possible_cpus,
    read_image,
    request_names,
)
from plumbline.sources.kernel.libbpf import BpfError, Library

CALLS = {"x86_64": 321, "aarch64": 280}
"""The number of bpf(2)."""


def roots(tmp_path: Path, *, btf: bool = True, effective: str = "") -> Roots:
    made = Roots.under(tmp_path)
    for name in ("sda", "nvme1n1", "nvme1c0n1", "nvme1c1n1", "dm-0", "cciss!c0d0", "loop0"):
        (made.sys / "block" / name / "slaves").mkdir(parents=True)
    (made.sys / "block/dm-0/slaves/sda").touch()
    (made.sys / "kernel/btf").mkdir(parents=True)
    if btf:
        (made.sys / "kernel/btf/vmlinux").touch()
    (made.proc / "thread-self").mkdir(parents=True)
    (made.proc / "thread-self/status").write_text(f"Name:\tx\nCapEff:\t{effective or '0' * 16}\n")
    return made


def why_not(latency: BlockLatency) -> str:
    latency.open()
    with pytest.raises(Unavailable) as caught:
        _ = latency.value
    return str(caught.value)


def test_disks_that_have_requests(tmp_path: Path) -> None:
    names = request_names(roots(tmp_path), keep=lambda name: name != "loop0")
    assert names == {
        "cciss/c0d0": "cciss/c0d0",
        "nvme1c0n1": "nvme1n1",
        "nvme1c1n1": "nvme1n1",
        "nvme1n1": "nvme1n1",
        "sda": "sda",
    }


@pytest.mark.parametrize(
    ("throttle", "scheduler", "requests", "notes"),
    [
        ("75000\n", "[none] mq-deadline\n", True, True),
        ("0\n", "[none] mq-deadline\n", True, False),
        ("0\n", "none mq-deadline [kyber]\n", True, True),
        (None, "[none]\n", True, False),  # no CONFIG_BLK_WBT
        (None, None, False, True),  # zram: bios only
    ],
)
def test_whether_the_kernel_notes_issues(
    tmp_path: Path, throttle: str | None, scheduler: str | None, requests: bool, notes: bool
) -> None:
    here = roots(tmp_path)
    disk = here.sys / "block/cciss!c0d0"
    (disk / "queue").mkdir()
    if requests:
        (disk / "mq").mkdir()
    for name, text in (("wbt_lat_usec", throttle), ("scheduler", scheduler)):
        if text is not None:
            (disk / "queue" / name).write_text(text)
    assert notes_issues(here, "cciss/c0d0") is notes


def test_no_btf(tmp_path: Path) -> None:
    here = roots(tmp_path, btf=False)
    assert "built without CONFIG_DEBUG_INFO_BTF" in why_not(BlockLatency(here, keep=bool))


def test_no_program_in_this_build(tmp_path: Path) -> None:
    def none() -> bytes:
        raise Unavailable("this build has no BPF program")

    assert "no BPF program" in why_not(BlockLatency(roots(tmp_path), keep=bool, image=none))


def test_no_libbpf(tmp_path: Path) -> None:
    latency = BlockLatency(
        roots(tmp_path), keep=bool, image=lambda: b"", library=lambda: Library("libplumbline-none.so.1")
    )
    said = why_not(latency)
    assert "libplumbline-none.so.1 can't be loaded" in said
    assert "install the package libbpf1, libbpf (RHEL)" in said


def test_another_library_is_no_libbpf(tmp_path: Path) -> None:
    latency = BlockLatency(roots(tmp_path), keep=bool, image=lambda: b"", library=lambda: Library("libc.so.6"))
    assert "libc.so.6 can't be loaded" in why_not(latency)


@pytest.mark.parametrize(
    ("mask", "said"),
    [("0" * 16, "CAP_BPF and CAP_PERFMON missing"), (f"{1 << 39:016x}", "CAP_PERFMON missing")],
)
def test_no_capabilities(tmp_path: Path, mask: str, said: str) -> None:
    def untouched() -> Library:
        return object.__new__(Library)

    latency = BlockLatency(roots(tmp_path, effective=mask), keep=bool, image=lambda: b"", library=untouched)
    found = why_not(latency)
    assert found.startswith(said)
    assert "systemd/drop-ins/disk-latency.conf" in found


def test_what_is_not_an_object_is_refused_by_libbpf() -> None:
    try:
        library = Library()
    except Unavailable as error:
        pytest.skip(str(error))
    with pytest.raises(BpfError) as caught:
        library.call("bpf_object__open_mem", b"no object", 9, None)
    assert caught.value.errno > 0
    assert str(caught.value).startswith("bpf_object__open_mem: ")


def test_switched_off_says_that_it_takes_a_restart(tmp_path: Path) -> None:
    latency = BlockLatency(roots(tmp_path), keep=bool)
    latency.close()
    with pytest.raises(Unavailable, match="restart it"):
        _ = latency.value


def test_a_kernel_that_forbids_it() -> None:
    refused = BpfError("bpf_object__load", errno.EPERM, ("prog 'issue': BPF program load failed",))
    assert str(refused) == ("bpf_object__load: Operation not permitted (prog 'issue': BPF program load failed)")
    locked = explain(refused, "none integrity [confidentiality]")
    assert isinstance(locked, Unavailable)
    assert "locked down (confidentiality)" in str(locked)
    other = explain(refused, "[none] integrity confidentiality")
    assert isinstance(other, Unavailable)
    assert "LimitMEMLOCK=infinity" in str(other)


def test_a_seccomp_profile_is_named() -> None:
    refused = explain(BpfError("bpf_object__load", errno.EPERM), "", may_call=False)
    assert isinstance(refused, Unavailable)
    assert "seccomp profile" in str(refused)
    assert "podman before 5 and Docker before 23" in str(refused)


@pytest.mark.skipif(os.geteuid() != 0, reason="bpf(2) needs root")
@pytest.mark.skipif(platform.machine() not in CALLS, reason="the number of bpf(2) is not known here")
def test_what_a_filter_refuses_is_told_from_what_the_kernel_refuses() -> None:
    """In a process of its own, as a filter stays: what podman's profile of 4.3 does to a container with CAP_BPF."""
    code = f"""
import ctypes, struct
from plumbline.sources.kernel.libbpf import Library
library = Library()
before = library.may_call()
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, {CALLS.get(platform.machine())}), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
program = b"".join(struct.pack("HBBI", *step) for step in steps)
room = ctypes.create_string_buffer(program)
header = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(room))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == libc.prctl(22, 2, header, 0, 0) == 0
print(before, library.may_call())
"""
    try:
        Library()
    except Unavailable as error:
        pytest.skip(str(error))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True False\n", "")


def test_a_program_that_the_verifier_does_not_want_is_our_fault() -> None:
    error = explain(BpfError("bpf_object__load", errno.EINVAL), "")
    assert isinstance(error, PlumblineError)
    assert not isinstance(error, Unavailable)


@pytest.mark.parametrize(("text", "cpus"), [("0-63\n", 64), ("0\n", 1), ("0,2-5\n", 6), ("", 1)])
def test_possible_cpus(tmp_path: Path, text: str, cpus: int) -> None:
    here = Roots.under(tmp_path)
    (here.sys / "devices/system/cpu").mkdir(parents=True)
    (here.sys / "devices/system/cpu/possible").write_text(text)
    assert possible_cpus(here) == cpus


def test_capabilities_in_force() -> None:
    held = parse_effective("CapPrm:\t000001ffffffffff\nCapEff:\t000000c000200000\n")
    assert held == {Capability.BPF, Capability.PERFMON, Capability.SYS_ADMIN}
    assert parse_effective("CapEff:\tgarbage\n") == frozenset()


def test_the_image_is_an_object() -> None:
    try:
        image = read_image()
    except Unavailable as error:
        pytest.skip(str(error))
    assert image[:4] == b"\x7fELF"
