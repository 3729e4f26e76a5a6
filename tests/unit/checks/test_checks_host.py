"""What slows every OSD of a host: each check met and unmet, below and at its limit, and where it does not apply."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from plumbline.checks import host
from plumbline.checks.model import Finding, Severity
from plumbline.checks.run import Judge
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.osds import OsdReading, OsdsReading, OsdState
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.disk.diskhealth import DiskHealth, DiskState, HealthReading
from plumbline.sources.kernel.cgroup import CpuQuota, GroupLimits
from plumbline.sources.kernel.cpupower import CpuPower, IdleState
from plumbline.sources.kernel.hugepages import HugePages
from plumbline.sources.kernel.pressure import Pressure, PressureReading
from support.facts import sysctls

CONFIG = Path(__file__).parents[3] / "alerts" / "config"
OSDS = {"sda": "osd.1"}
INTEL, ACPI = "intel_pstate", "acpi-cpufreq"


def idle(entries: int, latency_us: int = 133) -> CpuPower:
    return CpuPower({}, (IdleState(1, "C1", 2, 8, 1000 * entries), IdleState(3, "C6", latency_us, 8, entries)))


def found(check: str, *looks: Readings, seconds: float = 100.0, osds: dict[str, str] | None = None) -> list[Finding]:
    """What the last of these looks says, so many seconds apart, on a host with an OSD."""
    judge, findings = Judge(), ()
    for number, readings in enumerate(looks):
        here = DevicesReading((), OSDS if osds is None else osds)
        findings = judge.look(Readings({**readings.by_type, DevicesReading: here}), number * seconds)
    return [each for each in findings if each.check == check]


@pytest.mark.parametrize(
    ("governors", "met", "severity"),
    [
        ({(INTEL, "performance"): 8}, True, Severity.INFO),
        ({(INTEL, "powersave"): 8}, False, Severity.INFO),
        ({(ACPI, "schedutil"): 8}, False, Severity.INFO),
        ({(ACPI, "performance"): 7, (ACPI, "powersave"): 1}, False, Severity.WARNING),
    ],
)
def test_governor(governors: dict[tuple[str, str], int], met: bool, severity: Severity) -> None:
    (finding,) = found("host.cpu-governor", Readings.of(CpuPower(governors, ())))
    assert (finding.met, finding.severity) == (met, severity)
    if not met:
        assert finding.fix is not None
        assert finding.fix.now == "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"


def test_no_governor_and_no_osd_say_nothing() -> None:
    assert found("host.cpu-governor", Readings.of(CpuPower({}, ()))) == []
    assert found("host.cpu-governor", Readings.of(CpuPower({(ACPI, "powersave"): 8}, ())), osds={}) == []


def test_an_osd_whose_socket_alone_is_seen_is_one() -> None:
    """As in a container."""
    sockets = OsdsReading((OsdReading("osd.1", "/run/ceph/f/ceph-osd.1.asok", OsdState.ANSWERS),))
    (finding,) = found("host.cpu-governor", Readings.of(CpuPower({(ACPI, "powersave"): 8}, ()), sockets), osds={})
    assert not finding.met


def test_idle_states_that_are_entered() -> None:
    (finding,) = found("host.cpu-idle-states", Readings.of(idle(10)), Readings.of(idle(5010)))
    assert finding.actual == "C6 (133 µs) entered 5,000 times lately"
    assert finding.fix is not None
    assert finding.fix.now == "cpupower idle-set -D 49"
    assert finding.fix.keep is not None
    assert finding.fix.keep.content == "w /sys/devices/system/cpu/cpu*/cpuidle/state3/disable - - - - 1"


@pytest.mark.parametrize("last", [idle(5010, latency_us=49), CpuPower({}, (*idle(11).states[:1], idle(10).states[1]))])
def test_light_idle_states_and_those_that_a_latency_limit_forbids(last: CpuPower) -> None:
    first = msgspec.structs.replace(last, states=idle(10, last.states[1].exit_latency_us).states)
    (finding,) = found("host.cpu-idle-states", Readings.of(first), Readings.of(last))
    assert finding.met


def test_one_look_knows_no_entries() -> None:
    assert found("host.cpu-idle-states", Readings.of(idle(10))) == []


@pytest.mark.parametrize(("value", "met"), [(0, True), (1, False), (2, False)])
def test_numa_balancing(value: int, met: bool) -> None:
    (finding,) = found("host.numa-balancing", Readings.of(sysctls({"kernel.numa_balancing": (value,)})))
    assert finding.met is met


@pytest.mark.parametrize(("word", "met"), [("always", False), ("madvise", True), ("never", True)])
def test_huge_pages(word: str, met: bool) -> None:
    (finding,) = found("host.huge-pages", Readings.of(HugePages(word)))
    assert finding.met is met


@pytest.mark.parametrize(("resource", "share"), [("cpu", 0.2), ("io", 0.2), ("memory", 0.05)])
def test_pressure(resource: str, share: float) -> None:
    def look(us: float) -> Readings:
        return Readings.of(PressureReading((Pressure(resource, int(us)), Pressure("irq", None, 7))))

    (at,) = found("host.pressure", look(5), look(5 + share * 100e6))
    assert (at.met, at.subject, at.actual.rpartition("in ")[2]) == (False, resource, f"{share:.0%} of the time")
    (below,) = found("host.pressure", look(5), look(share * 100e6))
    assert below.met
    assert found("host.pressure", look(5)) == []


def quota(throttled: int, group: str = "/system.slice/ceph-osd@1.service") -> Readings:
    return limited(CpuQuota(group, 10 * throttled + 100, throttled))


def limited(cpu: CpuQuota) -> Readings:
    osds = (
        OsdReading("osd.1", "", OsdState.ANSWERS, limits=GroupLimits((), cpu)),
        OsdReading("osd.2", "", OsdState.ANSWERS),
    )
    return Readings.of(OsdsReading((*osds, OsdReading("osd.3", "", OsdState.ANSWERS, limits=GroupLimits()))))


def test_a_quota_that_stops_an_osd() -> None:
    (finding,) = found("host.osd-cpu-quota", quota(0), quota(10))
    assert (finding.subject, finding.met, finding.severity) == ("osd.1", False, Severity.WARNING)
    assert finding.fix is not None
    assert finding.fix.now == "systemctl set-property ceph-osd@1.service CPUQuota="


def test_a_quota_of_a_container() -> None:
    (finding,) = found("host.osd-cpu-quota", quota(0, "/kubepods/pod1"), quota(10, "/kubepods/pod1"))
    assert finding.fix is not None
    assert finding.fix.now == "systemd-cgls --all"


def test_a_quota_that_is_enough() -> None:
    more = limited(CpuQuota("/a", 201, 10))
    (finding,) = found("host.osd-cpu-quota", limited(CpuQuota("/a", 100, 0)), more)
    assert finding.met
    assert found("host.osd-cpu-quota", quota(0), quota(0)) == []  # no period since: it did nothing


@pytest.mark.parametrize(("state", "met"), [(0, True), (2, False)])
def test_power_state_of_a_disk(state: int, met: bool) -> None:
    disk = DiskState("nvme0n1", DiskHealth(power_state=state), False, "", "", 1.0, 0.0)
    (finding,) = found("health.nvme-power-state", Readings.of(HealthReading((disk,))), osds={"nvme0n1": "osd.1"})
    assert finding.met is met
    assert finding.fix is None or finding.fix.now == "nvme set-feature /dev/nvme0 --feature-id=2 --value=0"
    assert found("health.nvme-power-state", Readings.of(HealthReading((disk,)))) == []


def test_the_numbers_are_the_rules() -> None:
    floors = dict(re.findall(r"(\w+): ([0-9.e-]+),", (CONFIG / "host.libsonnet").read_text("utf-8")))
    assert {name: float(floors[f"{name}_pressure"]) for name in host.PRESSURE} == host.PRESSURE
    assert float(floors["cpu_idle"]) * 1e6 == host.EXIT_LATENCY_US
    waiting = re.search(r"PlumblineRunQueueLong: .* tasks: ([0-9.]+) ", (CONFIG / "osd.libsonnet").read_text("utf-8"))
    assert waiting is not None
    assert float(waiting[1]) == host.RUN_QUEUE_TASKS
    throttled = re.search(r"throttledShare: ([0-9.]+),", (CONFIG / "osd.libsonnet").read_text("utf-8"))
    assert throttled is not None
    assert float(throttled[1]) == host.QUOTA_SHARE
