"""The checks of the receive path: interrupts, receive turns, flow control, rings."""

from collections.abc import Iterable, Iterator
from itertools import compress

from plumbline.checks import fixes
from plumbline.checks.growth import Count
from plumbline.checks.model import Fix, Severity, Verdict, Worded, check
from plumbline.checks.network.facts import NetworkFacts, Nic, SoftnetCpu
from plumbline.checks.text import counted, plural
from plumbline.core.words import first_few
from plumbline.sources.net.port_settings import Coalescing, Moderation

# --- interrupts of a port with several queues: are they spread over the CPUs?

# Share of the busiest CPU: 1 in Figura 29, all on CPU 0; 0.15 in Figura 23, eight queues on eight CPUs
_ON_ONE_CPU = 0.9
_FIX = fixes.irqbalance("Not with a script or tuned profile that pins interrupts: the two undo each other.")


@check(
    "network.irqs-on-one-cpu",
    "Spread each port's interrupts over all CPUs.",
    "Ports that are up and busy, with at least two active interrupt vectors, on hosts with at least two CPUs.",
    "A CPU that takes all interrupts can't empty the rings fast enough, while the others are idle.",
    "unnoba-2020, 5.1 (Figura 23), 5.2 (Figura 29) and 10.1; Documentation/networking/scaling.rst",
    Severity.WARNING,
    fixes.DEBIAN.install("irqbalance", fixes.START_IRQBALANCE),
)
def irqs_on_one_cpu(facts: NetworkFacts) -> Iterator[Verdict]:
    cpus = len(facts.softnet)
    squeezed = any(cpu.squeezed and cpu.squeezed.grows for cpu in facts.softnet)
    for nic in facts.nics:
        if not nic.bus or not nic.up or nic.interrupts is None:
            continue
        share, queues = nic.interrupts.share_max, nic.interrupts.active_vectors
        spread = min(queues, cpus)
        if spread < 2:  # one queue has one interrupt, and one CPU takes them all
            continue
        actual = f"{share:.0%} of {queues} queues' interrupts on one of {cpus} CPUs"
        expected = f"spread over {spread} CPUs"
        if share < _ON_ONE_CPU:
            yield Verdict(nic.device, actual, expected)
        elif nic.loses or squeezed:
            yield Verdict(nic.device, actual, expected, _FIX, because="Packets wait or are lost meanwhile.")
        else:
            because = "A single busy connection looks the same."
            yield Verdict(nic.device, actual, expected, _FIX, Severity.INFO, because)


# --- the kernel's receive path behind the port: its budgets, and the queue before the protocols

BUDGET, BUDGET_TIME = "net.core.netdev_budget", "net.core.netdev_budget_usecs"
BACKLOG = "net.core.netdev_max_backlog"
_DEFAULT_BUDGET, _DEFAULT_BACKLOG = 300, 1000  # net/core/hotdata.c
_USUAL_BUDGET_US = 8000  # the default is two ticks, which is this at Debian's 250 Hz
# Beyond this many times the default, a longer turn only keeps the CPU from everything else
_ENOUGH_FACTOR = 8
# Fewer cut-off turns than one in ten seconds: a burst took two turns, which is what turns are for
_RARE_PER_S = 0.1


@check(
    "network.netdev-budget",
    "Raise net.core.netdev_budget while it cuts receive turns short.",
    "Hosts observed at least twice: the third column of /proc/net/softnet_stat must grow because of this limit. Turns "
    "cut short by the time limit need another setting (network.netdev-budget-usecs).",
    "A receive turn that uses up its budget leaves packets in the ring; the next step is loss.",
    "unnoba-2020, 5.2 (Figuras 30, 31, 32) and 10.1; Documentation/admin-guide/sysctl/net.rst",
    Severity.WARNING,
    "sysctl -w net.core.netdev_budget=<twice the current value>",
)
def squeeze_by_budget(facts: NetworkFacts) -> Iterator[Verdict]:
    return _turns_cut(facts, BUDGET, "", _DEFAULT_BUDGET, least=_DEFAULT_BUDGET)


@check(
    "network.netdev-budget-usecs",
    "Raise net.core.netdev_budget_usecs while it cuts receive turns short.",
    "Hosts observed at least twice whose receive turns hit the time limit (Linux 4.12 and later).",
    "Here a larger netdev_budget changes nothing: the turn ends when its time is up, with packets left in the ring.",
    "Documentation/admin-guide/sysctl/net.rst; unnoba-2020, 5.2 for the counter",
    Severity.WARNING,
    "sysctl -w net.core.netdev_budget_usecs=<twice the current value>",
)
def squeeze_by_time(facts: NetworkFacts) -> Iterator[Verdict]:
    return _turns_cut(facts, BUDGET_TIME, " µs", _USUAL_BUDGET_US)


def _turns_cut(facts: NetworkFacts, name: str, unit: str, default: int, *, least: int = 0) -> Iterator[Verdict]:
    limit, squeezed = facts.sysctl.number(name), _attributed(facts, name)
    if limit is None or squeezed is None:
        return
    grew, unsure = squeezed
    actual, expected = (
        f"{limit}{unit}, {plural(grew, 'turn')} recently cut short",
        "almost no turn cut short with packets left",
    )
    if grew <= _RARE_PER_S * (facts.window_s or 0.0):
        yield Verdict(name, f"{actual} by it", expected)
        return
    actual += f"{'' if unsure else ' by it'} on {_cpus(facts.softnet, map(_squeezed, facts.softnet))}"
    # a cut-off turn costs latency; it becomes a warning when frames are lost too
    severity = Severity.WARNING if facts.loses else Severity.INFO
    yield Verdict(name, actual, expected, _longer(name, limit, default, least), severity, unsure)


def _attributed(facts: NetworkFacts, name: str) -> tuple[int, str] | None:
    """Time squeezes of the window due to this limit, and why that is uncertain; ``None``: unknown.

    Where the limits are not counted apart, arithmetic may decide: a turn that the budget ended has processed that many
    packets, so there can't have been more such turns than packets ÷ budget.
    """
    by_time = name == BUDGET_TIME
    counts = [cpu.squeezed_by_time if by_time else cpu.squeezed_by_budget for cpu in facts.softnet]
    grown = [count.grew for count in counts if count is not None and count.grew is not None]
    if grown:
        return sum(grown), ""
    squeezes = [cpu.squeezed.grew for cpu in facts.softnet if cpu.squeezed and cpu.squeezed.grew is not None]
    if not squeezes:
        return None
    total, budget = sum(squeezes), facts.sysctl.number(BUDGET)
    processed = [cpu.processed.grew for cpu in facts.softnet if cpu.processed and cpu.processed.grew is not None]
    if total and budget and len(processed) == len(squeezes) and sum(processed) / budget * 2 < total:
        return (total if by_time else 0), ""
    if not total:
        return 0, ""
    if by_time:
        return None
    return total, f"{BUDGET_TIME} may be the cause instead: this kernel's counter does not distinguish the two."


def _longer(name: str, limit: int, default: int, least: int) -> Fix | Worded:
    """Double the turn, as the author did (300 → 600), as long as that helps; at least ``least``."""
    if limit < default * _ENOUGH_FACTOR:
        return fixes.sysctl(
            name, [max(limit * 2, least)], caution="Check the counters again after some days under load."
        )
    return fixes.irqbalance("Do not raise the budget further; spread the interrupts over more CPUs.")


def _squeezed(cpu: SoftnetCpu) -> bool:
    return cpu.squeezed is not None and cpu.squeezed.grows


def _cpus(cpus: Iterable[SoftnetCpu], chosen: Iterable[bool]) -> str:
    return "CPU " + first_few(str(cpu.cpu) for cpu in compress(cpus, chosen))


@check(
    "network.netdev-max-backlog",
    "Raise net.core.netdev_max_backlog when the second column of /proc/net/softnet_stat is not zero.",
    "Every host. Met again once the setting is above its default and nothing more is dropped: the counter itself is "
    "never reset.",
    "Each CPU has a queue before the protocols; a packet that finds it full is dropped. Drivers with NAPI bypass it: "
    "only packets of RPS, loopback, veth, tunnels and drivers without NAPI are in it. The counter also holds what the "
    "flow limit dropped (net.core.flow_limit_cpu_bitmap, off by default), which a longer queue does not end.",
    "unnoba-2020, 5.2.3 (Figuras 31, 36) and 10.1; Documentation/admin-guide/sysctl/net.rst; "
    "net/core/dev.c: netif_rx, enqueue_to_backlog, skb_flow_limit",
    Severity.WARNING,
    "sysctl -w net.core.netdev_max_backlog=<twice the current value>",
)
def backlog_overflow(facts: NetworkFacts) -> Iterator[Verdict]:
    limit = facts.sysctl.number(BACKLOG)
    counts = [cpu.dropped for cpu in facts.softnet]
    known = [count for count in counts if count is not None]
    if limit is None or not known:
        return
    total = sum(count.total for count in known)
    grew = sum(count.grew or 0 for count in known)
    only_totals = all(count.grew is None for count in known)
    expected = "no packet dropped before the protocols"
    if not total:
        yield Verdict(BACKLOG, f"{limit:,}, nothing dropped since boot", expected)
        return
    cpus = _cpus(facts.softnet, [bool(count and (count.grew if grew else count.total)) for count in counts])
    dropped = f"{limit:,}, {plural(total, 'packet')} dropped since boot"
    fix = fixes.sysctl(BACKLOG, [max(limit * 2, _DEFAULT_BACKLOG)])
    if grew:
        yield Verdict(BACKLOG, f"{limit:,}, {plural(grew, 'packet')} dropped recently on {cpus}", expected, fix)
    elif only_totals or limit <= _DEFAULT_BACKLOG:
        yield Verdict(BACKLOG, f"{dropped} on {cpus}", expected, fix, Severity.INFO)
    else:  # raised already, and quiet: the counter keeps earlier drops
        yield Verdict(BACKLOG, f"{dropped}, none recently", expected)


# --- flow control (802.3x pause frames) and interrupt moderation: both are on by default and should stay on

_AUTHOR_DELAY_US = 8  # Figura 35: rx-usecs 8, rx-frames 128
_AUTHOR_FRAMES = 128
_PAUSE_CAUTION = (
    "The switch's port needs flow control too. Not with RoCE and priority flow control, which excludes it. "
    + fixes.RESETS_LINK
)


@check(
    "network.pause-off",
    "Have flow control (pause frames) on, on the port and on the switch.",
    "Physical ports that are up and have 802.3x flow control; not while the other end keeps pausing this one.",
    "When the buffers are full, the switch holds packets back for some milliseconds instead of the port losing them.",
    "unnoba-2020, 5.2.1 (Figura 33) and 10.1; ethtool(8) -a, -A",
    Severity.INFO,
    "ethtool -A <device> rx on tx on",
)
def pause_off(facts: NetworkFacts) -> Iterator[Verdict]:
    for nic in facts.nics:
        if not nic.physical or not nic.up or nic.pause is None:
            continue
        receive, transmit = nic.pause.receive, nic.pause.transmit
        if receive is None or transmit is None:
            continue
        actual, expected = f"receive {_on(receive)}, transmit {_on(transmit)}", "receive on, transmit on"
        paused = nic.pause_frames_received is not None and nic.pause_frames_received.grows
        if receive and transmit:
            yield Verdict(nic.device, actual, expected)
        elif not paused:  # a port that is being paused must not be advised to send pause frames too
            fix = fixes.ethtool(nic, "-A", "rx on tx on", caution=_PAUSE_CAUTION)
            severity = Severity.WARNING if nic.loses else None
            because = "Frames are being lost here because buffers are full." if nic.loses else ""
            yield Verdict(nic.device, actual, expected, fix, severity, because)


@check(
    "network.coalescing-off",
    "Have interrupt moderation (coalescing) on.",
    "Physical ports that are up and whose driver reports its moderation.",
    "An interrupt for every packet costs CPU time that is needed to empty the ring. It may be off on purpose for "
    "latency probes; then leave it.",
    "unnoba-2020, 5.2.2 (Figura 35) and 10.1; ethtool(8) -c, -C",
    Severity.INFO,
    "ethtool -C <device> adaptive-rx on",
)
def coalescing_off(facts: NetworkFacts) -> Iterator[Verdict]:
    expected = "adaptive, or several microseconds or frames per interrupt"
    for nic in facts.nics:
        if not nic.physical or not nic.up or nic.coalescing is None:
            continue
        rx = nic.coalescing.receive
        moderates = bool(rx.adaptive or rx.delay_us or (rx.frames or 0) > 1)
        if not moderates and rx.delay_us is None:
            continue  # the driver reports too little
        # no delay and at most one frame is an interrupt for every frame
        fix = None if moderates else fixes.ethtool(nic, "-C", _moderation(nic.coalescing))
        yield Verdict(nic.device, _shown(rx), expected, fix)


def _moderation(coalescing: Coalescing) -> str:
    """Adaptive mode where the driver has one, else the author's figures."""
    rx = coalescing.receive
    if rx.adaptive is not None:
        return "adaptive-rx on" + (" adaptive-tx on" if coalescing.transmit.adaptive is False else "")
    return f"rx-usecs {_AUTHOR_DELAY_US}" + (f" rx-frames {_AUTHOR_FRAMES}" if rx.frames is not None else "")


def _shown(rx: Moderation) -> str:
    parts = (
        "" if rx.adaptive is None else f"adaptive {_on(rx.adaptive)}",
        "" if rx.delay_us is None else f"rx-usecs {rx.delay_us:g}",
        "" if rx.frames is None else f"rx-frames {rx.frames}",
    )
    return ", ".join(filter(None, parts))


def _on(enabled: bool) -> str:
    return "on" if enabled else "off"


# --- receive rings and the port's own buffer: is there room for a burst while the host is busy?


@check(
    "network.ring-below-maximum",
    "Give the receive ring as many descriptors as the driver allows.",
    "Physical ports that have dropped frames for lack of a descriptor or carry Ceph's traffic. Not a hypervisor's "
    "ports: the host side sizes those.",
    "A larger ring gives the kernel more time to process packets before new ones are lost.",
    "unnoba-2020, 5.2.3 (Figuras 37, 38) and 10.1; ethtool(8) -g, -G",
    Severity.WARNING,
    "ethtool -G <device> rx <maximum>",
)
def ring_below_maximum(facts: NetworkFacts) -> Iterator[Verdict]:
    for nic in facts.nics:
        entries, most = nic.rings.rx, nic.rings.rx_max
        if not nic.physical or entries is None or not most:
            continue
        actual = f"{entries:,} of {most:,}"
        expected = f"{most:,}, the driver's maximum"
        severity = _severity(nic)
        if entries >= most:
            yield Verdict(nic.device, actual, expected)
        elif severity is not None:
            if nic.ring_drops is not None and nic.ring_drops.total:
                actual += f"; dropped for lack of a descriptor: {counted(nic.ring_drops, 'frame')}"
            fix = fixes.ethtool(nic, "-G", f"rx {most}", caution=fixes.RESETS_LINK)
            yield Verdict(nic.device, actual, expected, fix, severity)


def _severity(nic: Nic) -> Severity | None:
    """``None``: no reason for a larger ring, which costs cache and latency: no lost frames, no storage traffic."""
    drops = nic.ring_drops or Count(0, 0)
    if drops.grows or (drops.grew is None and drops.total):
        return Severity.WARNING
    return Severity.INFO if drops.total or nic.storage else None


CHECKS = (
    irqs_on_one_cpu,
    squeeze_by_budget,
    squeeze_by_time,
    backlog_overflow,
    pause_off,
    coalescing_off,
    ring_below_maximum,
)
