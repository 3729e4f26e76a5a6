"""From where a node looks: host, virtual machine or container."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.roots import Roots
from plumbline.sources.kernel.vantage import (
    Signs,
    Vantage,
    judge,
    parse_dom0,
    parse_groups,
    parse_hypervisor_flag,
    read_vantage,
)

FLAGS = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme{} rdrand lahf_lm\n"


@pytest.mark.parametrize(
    ("signs", "vantage", "by"),
    [
        (Signs(), Vantage.HOST, "no sign of anything else"),
        (Signs(firmware=("PowerEdge R730xd", "Dell Inc.")), Vantage.HOST, "no sign of anything else"),
        (Signs(firmware=("Surface Laptop 4", "Microsoft Corporation")), Vantage.HOST, "no sign of anything else"),
        (Signs(firmware=("c5.metal", "Amazon EC2")), Vantage.HOST, "firmware c5.metal"),
        (Signs(firmware=("m5.large", "Amazon EC2")), Vantage.VM, "firmware Amazon EC2"),
        (Signs(firmware=("Standard PC (Q35 + ICH9, 2009)", "QEMU")), Vantage.VM, "firmware QEMU"),
        (Signs(hypervisor_flag=True), Vantage.VM, "the CPU's hypervisor flag"),
        (Signs(hypervisor_node=True), Vantage.VM, "a hypervisor in the device tree"),
        (Signs(hypervisor="xen", hypervisor_flag=True), Vantage.VM, "hypervisor xen"),
        (Signs(hypervisor="xen", dom0=True, hypervisor_flag=True), Vantage.HOST, "Xen's dom0"),
        (Signs(container_word="lxc", hypervisor_flag=True), Vantage.CONTAINER, "$container is lxc"),
        (Signs(container_files=("/.dockerenv",)), Vantage.CONTAINER, "/.dockerenv exists"),
        (Signs(kubernetes=True), Vantage.CONTAINER, "Kubernetes' variables are set"),
        (Signs(openvz=True), Vantage.CONTAINER, "OpenVZ"),
        (Signs(groups=("/docker/4e6f",)), Vantage.CONTAINER, "control group /docker/4e6f"),
        (
            Signs(groups=("/", "/kubepods.slice/kubepods-burstable.slice/cri-containerd-0a1b.scope")),
            Vantage.CONTAINER,
            "control group /kubepods.slice/kubepods-burstable.slice/cri-containerd-0a1b.scope",
        ),
        # the runtime's own service is on the host
        (Signs(groups=("/system.slice/docker.service", "/init.scope")), Vantage.HOST, "no sign of anything else"),
    ],
)
def test_the_innermost_answer_holds(signs: Signs, vantage: Vantage, by: str) -> None:
    assert judge(signs) == (vantage, by)


def test_groups_of_both_versions() -> None:
    assert parse_groups("12:devices:/docker/4e6f\n1:name=systemd:/a:b\n0::/init.scope\nrubbish\n") == (
        "/docker/4e6f",
        "/a:b",
        "/init.scope",
    )


def test_the_hypervisor_flag_is_a_whole_word() -> None:
    assert parse_hypervisor_flag(FLAGS.format(" hypervisor"))
    assert not parse_hypervisor_flag(FLAGS.format(" hypervisorx"))
    assert not parse_hypervisor_flag("")


@pytest.mark.parametrize(
    ("capabilities", "features", "dom0"),
    [
        ("control_d\n", "", True),
        ("", "00000fff\n", True),
        ("", "000002fd\n", False),
        ("", "", False),
        ("", "zz", False),
    ],
)
def test_xens_own_host(capabilities: str, features: str, dom0: bool) -> None:
    assert parse_dom0(capabilities, features) is dom0


@given(st.text(), st.text())
def test_parsers_are_total(one: str, other: str) -> None:
    parse_groups(one)
    parse_hypervisor_flag(one)
    parse_dom0(one, other)


def test_the_files_of_a_guest(tmp_path: Path) -> None:
    def host(environment: dict[str, str]) -> tuple[Vantage, str]:
        return read_vantage(Roots.under(tmp_path), root=tmp_path, environment=environment)

    assert host({}) == (Vantage.HOST, "no sign of anything else")
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/cpuinfo").write_text(FLAGS.format(" hypervisor"))
    assert host({}) == (Vantage.VM, "the CPU's hypervisor flag")
    (tmp_path / "sys/class/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/class/dmi/id/sys_vendor").write_text("QEMU\n")
    assert host({}) == (Vantage.VM, "firmware QEMU")
    (tmp_path / "proc/1/environ").write_bytes(b"PATH=/bin\0container=systemd-nspawn\0")
    assert host({}) == (Vantage.CONTAINER, "$container is systemd-nspawn")
    (tmp_path / "proc/1/environ").unlink()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.containerenv").touch()
    assert host({}) == (Vantage.CONTAINER, "/run/.containerenv exists")
    assert host({"container": "podman"}) == (Vantage.CONTAINER, "$container is podman")
