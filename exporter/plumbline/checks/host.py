"""What slows every OSD of a host at once: power saving, memory management, a lack of CPU, memory or I/O."""

import shlex
from collections.abc import Iterator, Mapping

from msgspec import Struct

from plumbline.checks import fixes
from plumbline.checks.growth import Growth
from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.checks.text import plural
from plumbline.core.words import first_few
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.osds import OsdsReading
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.disk.diskusers import DiskUsesReading
from plumbline.sources.kernel.cpupower import CpuPower, IdleState
from plumbline.sources.kernel.hugepages import HugePages
from plumbline.sources.kernel.pressure import PressureReading
from plumbline.sources.kernel.schedstat import RunQueueReading
from plumbline.sources.kernel.sysctl import SysctlReading

# As in alerts/config/host.libsonnet, where the reasons are; a test compares them
PRESSURE = {"cpu": 0.2, "io": 0.2, "memory": 0.05}
EXIT_LATENCY_US = 50
QUOTA_SHARE = 0.1
RUN_QUEUE_TASKS = 1.0

_CPUS = "/sys/devices/system/cpu/cpu*"
# Their powersave is the usual setting and adapts to the load; elsewhere it is the lowest frequency, always
_ADAPTIVE = frozenset({"intel_pstate", "amd-pstate-epp", "amd_pstate_epp"})
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_OSD_KINDS = frozenset({"osd", "osd-db", "osd-wal"})


class Quota(Struct, frozen=True):
    """The CPU quota of an OSD's control group, and what of its periods was throttled lately."""

    daemon: str
    group: str
    periods: int
    throttled: int


class HostFacts(Struct, frozen=True):
    """A host with OSDs. ``None``, empty: not known, or not watched for long enough."""

    power: CpuPower | None = None
    entered: Mapping[str, int] | None = None  # idle state → entries lately
    numa_balancing: int | None = None
    hugepages: str | None = None
    waiting: Mapping[str, float] | None = None  # resource → share of the time with a task that waits for it
    quotas: tuple[Quota, ...] = ()
    run_queues: Mapping[int, float] | None = None  # CPU → mean number of tasks that waited for it


def host_facts(readings: Readings, growth: Growth) -> HostFacts:
    """Nothing for a host without OSDs: what it is tuned for is not known. A container may see only their sockets."""
    pressures = {
        resource.resource: growth.count("pressure", resource.some_us, resource.resource)
        for resource in readings.or_empty(PressureReading)
    }
    run_queues = {
        queue.cpu: growth.count("run queue", queue.waited_ns, queue.cpu) for queue in readings.or_empty(RunQueueReading)
    }
    power, hugepages = readings.get(CpuPower), readings.get(HugePages)
    states = power.states if power else ()
    entries = {state.name: growth.count("idle states entered", state.entries, state.name) for state in states}
    osds, quotas = readings.or_empty(OsdsReading).osds, []
    for osd in osds:
        daemon, limits = osd.daemon, osd.limits
        if limits is not None and limits.cpu is not None:
            periods = growth.count("quota periods", limits.cpu.periods, daemon)
            throttled = growth.count("quota periods throttled", limits.cpu.throttled, daemon)
            if periods and throttled and periods.grew and throttled.grew is not None:
                quotas.append(Quota(daemon, limits.cpu.group, periods.grew, throttled.grew))
    kinds = {kind for _, kind, _ in readings.or_empty(DiskUsesReading).users.uses}
    if not (osds or any(readings.or_empty(DevicesReading).osds.values()) or kinds & _OSD_KINDS):
        return HostFacts()
    seen_us = (growth.seen_s or 0.0) * 1e6
    seen_ns = 1e3 * seen_us
    return HostFacts(
        power,
        {name: count.grew for name, count in entries.items() if count and count.grew is not None} or None,
        readings.or_empty(SysctlReading).number("kernel.numa_balancing"),
        hugepages.enabled if hugepages else None,
        {
            name: count.grew / seen_us
            for name, count in pressures.items()
            if count and count.grew is not None and seen_us
        },
        tuple(quotas),
        {
            cpu: count.grew / seen_ns
            for cpu, count in run_queues.items()
            if count and count.grew is not None and seen_ns
        },
    )


# --- CPUs that save power


@check(
    "host.cpu-governor",
    "Let the CPUs of an OSD's host run at full speed.",
    "Hosts with OSDs whose kernel sets the CPUs' frequency; not guests. A warning is powersave where it means the "
    "lowest frequency at all times: any driver but intel_pstate and amd-pstate in their active mode.",
    "An operation on flash is a chain of short pieces of work on several threads: each begins on a CPU that has slowed "
    "down since the last one.",
    "Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst; ceph/ceph#5013",
    Severity.INFO,
    "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
)
def cpu_governor(host: HostFacts) -> Iterator[Verdict]:
    if host.power is None or not host.power.governors:
        return
    governors = host.power.governors
    actual = first_few(
        f"{governor} on {plural(cpus, 'CPU')} ({driver})" for (driver, governor), cpus in governors.items()
    )
    expected = "performance on each CPU"
    if all(governor == "performance" for _, governor in governors):
        yield Verdict("cpu", actual, expected)
        return
    lowest = any(governor == "powersave" and driver not in _ADAPTIVE for driver, governor in governors)
    path = f"{_CPUS}/cpufreq/scaling_governor"
    fix = Fix(
        f"echo performance | tee {path}",
        fixes.tmpfiles("host", (path, "performance")),
        "The host takes more power and gets warmer. A daemon such as tuned may set it again: change its profile then.",
    )
    yield Verdict("cpu", actual, expected, fix, Severity.WARNING if lowest else Severity.INFO)


@check(
    "host.cpu-idle-states",
    "Keep the CPUs of an OSD's host out of idle states that take long to leave.",
    "Hosts with OSDs whose idle states are known, watched for some time. Judged is what the CPUs entered in the last "
    f"hour, not what they may: a program can hold a latency limit. {EXIT_LATENCY_US} µs and more is as long as flash "
    "takes for an operation.",
    "Each thread that is woken waits until its CPU has left its idle state: with little to do an OSD is slower than "
    "under load. Measured with the states off: 2,000 instead of 900 operations a second of one client.",
    "Documentation/admin-guide/pm/cpuidle.rst; ceph/ceph#5013",
    Severity.INFO,
    f"cpupower idle-set -D {EXIT_LATENCY_US - 1}",
)
def cpu_idle_states(host: HostFacts) -> Iterator[Verdict]:
    if host.power is None or host.entered is None:
        return
    entered = host.entered
    used = [state for state in host.power.states if entered.get(state.name)]
    deep = [state for state in used if state.exit_latency_us >= EXIT_LATENCY_US]
    if not used:
        return
    actual = first_few(
        f"{_of(state)} entered {plural(entered[state.name], 'time')} lately" for state in deep or used[-1:]
    )
    fix = fixes.with_package(
        Fix(
            f"cpupower idle-set -D {EXIT_LATENCY_US - 1}",
            fixes.tmpfiles("host", *((f"{_CPUS}/cpuidle/state{state.number}/disable", "1") for state in deep)),
            "The host takes more power while idle, and single threads may lose some turbo frequency. The lines for"
            " tmpfiles do the same as cpupower.",
        ),
        "cpupower",
    )
    yield Verdict("cpu", actual, f"none that takes {EXIT_LATENCY_US} µs or more to leave", fix if deep else None)


def _of(state: IdleState) -> str:
    return f"{state.name} ({state.exit_latency_us} µs)"


# --- memory


@check(
    "host.numa-balancing",
    "Switch automatic NUMA balancing off on an OSD's host.",
    "Hosts with OSDs whose kernel has it; with one NUMA node it does nothing and is off.",
    "The kernel unmaps pages to learn who uses them and moves them between nodes: the OSDs' threads fault and wait. It "
    "helps programs that stay on one node, which an OSD does not.",
    "Documentation/admin-guide/sysctl/kernel.rst (numa_balancing)",
    Severity.INFO,
    "sysctl -w kernel.numa_balancing=0",
)
def numa_balancing(host: HostFacts) -> Iterator[Verdict]:
    if host.numa_balancing is not None:
        fix = fixes.sysctl("kernel.numa_balancing", [0]) if host.numa_balancing else None
        yield Verdict("kernel.numa_balancing", str(host.numa_balancing), "0", fix)


@check(
    "host.huge-pages",
    "Give transparent huge pages only to programs that ask for them.",
    "Hosts with OSDs whose kernel has them. OSDs opt out (Ceph's option thp), other programs there do not.",
    "With always, page faults wait for the kernel to clear and move memory, and a program's memory grows beyond what "
    "it uses, at the expense of the OSDs' caches.",
    "Documentation/admin-guide/mm/transhuge.rst; Ceph: common/options/global.yaml.in (thp)",
    Severity.INFO,
    f"echo madvise > {_HUGE_PAGES}",
)
def huge_pages(host: HostFacts) -> Iterator[Verdict]:
    if host.hugepages is None:
        return
    fix = Fix(f"echo madvise > {_HUGE_PAGES}", fixes.tmpfiles("host", (_HUGE_PAGES, "madvise")))
    yield Verdict(
        "transparent_hugepage", host.hugepages, "madvise or never", fix if host.hugepages == "always" else None
    )


# --- a lack of something

_WORDS = {"cpu": "CPU time", "io": "I/O", "memory": "memory"}


@check(
    "host.pressure",
    "Give an OSD's host enough CPU time, memory and I/O.",
    "Hosts with OSDs, watched for some time; the last hour is judged: the share of it in which some task waited, of "
    f"CPU time and I/O {PRESSURE['cpu']:.0%}, of memory {PRESSURE['memory']:.0%}.",
    "OSDs wait as any other task does, in the middle of clients' operations.",
    "Documentation/accounting/psi.rst",
    Severity.INFO,
    "systemd-cgtop --batch --iterations=2 --order=<cpu, io or memory>",
)
def pressure(host: HostFacts) -> Iterator[Verdict]:
    for resource, limit in PRESSURE.items():
        share = (host.waiting or {}).get(resource)
        if share is None:
            continue
        fix = Fix(
            f"systemd-cgtop --batch --iterations=2 --order={resource}",
            caution="This only shows which service takes most. Move it away, or limit it: systemctl set-property UNIT"
            " CPUWeight=20, IOWeight=20 or MemoryHigh=8G. If it is the OSDs, the host is too small.",
        )
        actual = f"tasks waited for {_WORDS[resource]} in {share:.0%} of the time"
        yield Verdict(resource, actual, f"less than {limit:.0%}", fix if share >= limit else None)


@check(
    "host.run-queue",
    "Let no task wait long for one CPU of an OSD's host.",
    "Hosts with OSDs whose kernel counts it, watched for some time; the last hour is judged: CPUs in whose run queue "
    f"{RUN_QUEUE_TASKS:g} task or more waited on average, in every moment.",
    "A thread that has to wait for its CPU delays the operation that it carries by milliseconds, on a host whose other "
    "CPUs may be idle: tasks or interrupts are bound to this one.",
    "Documentation/scheduler/sched-stats.rst",
    Severity.INFO,
    "ps -eLo psr,tid,ni,pcpu,comm --sort=psr,-pcpu",
)
def run_queue(host: HostFacts) -> Iterator[Verdict]:
    if not host.run_queues:
        return
    busy = {cpu: tasks for cpu, tasks in host.run_queues.items() if tasks >= RUN_QUEUE_TASKS}
    longest = sorted(busy, key=lambda cpu: (-busy[cpu], cpu))
    actual = "tasks waited long for " + (
        f"{len(busy)} of {plural(len(host.run_queues), 'CPU')}: "
        + first_few(f"CPU {cpu} ({busy[cpu]:.1f} at a time)" for cpu in longest)
        if busy
        else "no CPU"
    )
    fix = Fix(
        "ps -eLo psr,tid,ni,pcpu,comm --sort=psr,-pcpu",
        caution="This only shows what ran last on which CPU. Spread interrupts (irqbalance), let tasks use more CPUs"
        " (taskset, CPUAffinity=), move the load away, or take a larger host.",
    )
    yield Verdict("cpu", actual, f"less than {RUN_QUEUE_TASKS:g} waiting task on each CPU", fix if busy else None)


@check(
    "host.osd-cpu-quota",
    "Let no CPU quota stop an OSD.",
    "OSDs whose control group, or one above it, has a CPU quota that can be seen; the last hour is judged: "
    f"{QUOTA_SHARE:.0%} of the quota's periods.",
    "A process that has used up its quota stands still until the next period, a tenth of a second by default, with all "
    "operations in it.",
    "Documentation/scheduler/sched-bwc.rst",
    Severity.WARNING,
    "systemctl set-property <unit> CPUQuota=",
)
def osd_cpu_quota(host: HostFacts) -> Iterator[Verdict]:
    for quota in host.quotas:
        share = quota.throttled / quota.periods
        unit = quota.group.rpartition("/")[2]
        by_systemd = unit.endswith((".service", ".slice", ".scope"))
        fix = Fix(
            f"systemctl set-property {shlex.quote(unit)} CPUQuota=" if by_systemd else "systemd-cgls --all",
            caution=""
            if by_systemd
            else f"This only shows. Whoever made {quota.group} (a container's runtime) has to "
            "raise its quota: in Kubernetes the CPU limit of the OSD's pod.",
        )
        actual = f"throttled in {share:.0%} of the periods of {quota.group}"
        yield Verdict(quota.daemon, actual, f"less than {QUOTA_SHARE:.0%}", fix if share >= QUOTA_SHARE else None)


CHECKS = (cpu_governor, cpu_idle_states, numa_balancing, huge_pages, pressure, run_queue, osd_cpu_quota)
