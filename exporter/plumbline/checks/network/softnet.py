"""The kernel's receive path behind the port: its budgets, and the queue before the protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress

from plumbline.checks import fixes
from plumbline.checks.model import Check, Fix, Severity, Verdict
from plumbline.checks.network.facts import NetworkFacts, SoftnetCpu
from plumbline.checks.text import listed, plural

BUDGET, BUDGET_TIME = "net.core.netdev_budget", "net.core.netdev_budget_usecs"
BACKLOG = "net.core.netdev_max_backlog"
_DEFAULT_BUDGET, _DEFAULT_BACKLOG = 300, 1000  # net/core/hotdata.c
_USUAL_BUDGET_US = 8000  # the default is two ticks, which is this at Debian's 250 Hz
_SHOULD = "hardly a turn cut off with packets left"
# Beyond this many times the default, a longer turn only keeps the CPU from everything else
_ENOUGH_FACTOR = 8
# Fewer cut-off turns than one in ten seconds: a burst took two turns, which is what turns are for
_RARE_PER_S = 0.1
_SPREAD = "Not a larger budget any more: spread the interrupts over more CPUs"


def _budget(facts: NetworkFacts) -> Iterator[Verdict]:
    budget = facts.sysctl.number(BUDGET)
    squeezed = _attributed(facts, "budget")
    if budget is None or squeezed is None:
        return
    grew, unsure = squeezed
    if _rare(facts, grew):
        yield Verdict(BUDGET, f"{budget}, {plural(grew, 'turn')} cut off by it lately", _SHOULD)
        return
    is_ = f"{budget}, {plural(grew, 'turn')} cut off lately{'' if unsure else ' by it'} on {_cpus(facts)}"
    yield Verdict(
        BUDGET,
        is_,
        _SHOULD,
        _longer(BUDGET, budget, _DEFAULT_BUDGET, least=_DEFAULT_BUDGET),
        _squeeze_severity(facts),
        unsure,
    )


def _budget_time(facts: NetworkFacts) -> Iterator[Verdict]:
    limit = facts.sysctl.number(BUDGET_TIME)
    squeezed = _attributed(facts, "time")
    if limit is None or squeezed is None or squeezed[1]:
        return
    grew, _ = squeezed
    if _rare(facts, grew):
        yield Verdict(BUDGET_TIME, f"{limit} µs, {plural(grew, 'turn')} cut off by it lately", _SHOULD)
        return
    is_ = f"{limit} µs, {plural(grew, 'turn')} cut off lately by it on {_cpus(facts)}"
    fix = _longer(BUDGET_TIME, limit, _USUAL_BUDGET_US)
    yield Verdict(BUDGET_TIME, is_, _SHOULD, fix, _squeeze_severity(facts))


def _attributed(facts: NetworkFacts, limit: str) -> tuple[int, str] | None:
    """Time squeezes of the window due to this limit, and why that is uncertain; ``None``: unknown.

    Where the limits are not counted apart, arithmetic may decide: a turn that the budget ended has processed that many
    packets, so there can't have been more such turns than packets ÷ budget.
    """
    known = [each.squeezed_by_budget if limit == "budget" else each.squeezed_by_time for each in facts.softnet]
    grown = [count.grew for count in known if count is not None and count.grew is not None]
    if grown:
        return sum(grown), ""
    squeezes = [each.squeezed.grew for each in facts.softnet if each.squeezed and each.squeezed.grew is not None]
    if not squeezes:
        return None
    total, budget = sum(squeezes), facts.sysctl.number(BUDGET)
    processed = [each.processed.grew for each in facts.softnet if each.processed and each.processed.grew is not None]
    if total and budget and len(processed) == len(squeezes) and sum(processed) / budget * 2 < total:
        return (total, "") if limit == "time" else (0, "")
    if not total:
        return 0, ""
    return (total, f"It may have been {BUDGET_TIME} instead: this kernel's counter does not say.")


def _rare(facts: NetworkFacts, grew: int) -> bool:
    return grew <= _RARE_PER_S * (facts.window_s or 0.0)


def _longer(name: str, now: int, default: int, *, least: int = 0) -> Fix:
    """Double the turn, as the author did (300 → 600), as long as that helps; at least ``least``."""
    if now < default * _ENOUGH_FACTOR:
        return fixes.sysctl(
            name, [max(now * 2, least)], caution="Look at the counters again after some days under load."
        )
    return Fix("apt-get install -y irqbalance && systemctl enable --now irqbalance", caution=_SPREAD)


def _squeeze_severity(facts: NetworkFacts) -> Severity:
    """A cut-off turn costs latency; it becomes a warning when frames are lost too."""
    return Severity.WARNING if facts.loses else Severity.INFO


def _cpus(facts: NetworkFacts) -> str:
    return _names(facts.softnet, [bool(each.squeezed and each.squeezed.grows) for each in facts.softnet])


def _names(cpus: Iterable[SoftnetCpu], chosen: Iterable[bool]) -> str:
    return "CPU " + listed(str(each.cpu) for each in compress(cpus, chosen))


SQUEEZE_BY_BUDGET = Check(
    "network.netdev-budget",
    "Raise net.core.netdev_budget while receive turns are cut off by it.",
    "Hosts looked at twice: the third column of /proc/net/softnet_stat must be growing, and by this limit. Turns cut "
    "off by their time ask for another setting (network.netdev-budget-usecs).",
    "A receive turn that uses its budget up leaves packets in the ring; the next step is loss.",
    "unnoba-2020, 5.2 (Figuras 30, 31, 32) and 10.1; Documentation/admin-guide/sysctl/net.rst",
    Severity.WARNING,
    _budget,
    "sysctl -w net.core.netdev_budget=<twice what it is>",
)

SQUEEZE_BY_TIME = Check(
    "network.netdev-budget-usecs",
    "Raise net.core.netdev_budget_usecs while receive turns are cut off by their time.",
    "Hosts looked at twice, whose receive turns were cut off by the time limit (Linux 4.12 and later).",
    "There a larger netdev_budget changes nothing: the turn ends by the clock, with packets left in the ring.",
    "Documentation/admin-guide/sysctl/net.rst; unnoba-2020, 5.2 for the counter",
    Severity.WARNING,
    _budget_time,
    "sysctl -w net.core.netdev_budget_usecs=<twice what it is>",
)


def _backlog(facts: NetworkFacts) -> Iterator[Verdict]:
    limit = facts.sysctl.number(BACKLOG)
    counts = [each.dropped for each in facts.softnet]
    known = [count for count in counts if count is not None]
    if limit is None or not known:
        return
    total = sum(count.total for count in known)
    grew = sum(count.grew or 0 for count in known)
    only_totals = all(count.grew is None for count in known)
    should = "no packet dropped before the protocols"
    if not total:
        yield Verdict(BACKLOG, f"{limit:,}, nothing dropped since boot", should)
        return
    chosen = [bool(count and (count.grew if grew else count.total)) for count in counts]
    where = _names(facts.softnet, chosen)
    fix = fixes.sysctl(BACKLOG, [max(limit * 2, _DEFAULT_BACKLOG)])
    if grew:
        yield Verdict(BACKLOG, f"{limit:,}, {plural(grew, 'packet')} dropped lately on {where}", should, fix)
    elif only_totals or limit <= _DEFAULT_BACKLOG:
        yield Verdict(
            BACKLOG, f"{limit:,}, {plural(total, 'packet')} dropped since boot on {where}", should, fix, Severity.INFO
        )
    else:  # raised already, and quiet: the counter keeps earlier drops
        yield Verdict(BACKLOG, f"{limit:,}, {plural(total, 'packet')} dropped since boot, none lately", should)


BACKLOG_OVERFLOW = Check(
    "network.netdev-max-backlog",
    "Raise net.core.netdev_max_backlog when the second column of /proc/net/softnet_stat is not zero.",
    "Every host. Met again, once the setting has been raised above its default and nothing is dropped any more: the "
    "counter itself is never reset.",
    "Each CPU has a queue before the protocols; what finds it full is dropped.",
    "unnoba-2020, 5.2.3 (Figuras 31, 36) and 10.1; Documentation/admin-guide/sysctl/net.rst",
    Severity.WARNING,
    _backlog,
    "sysctl -w net.core.netdev_max_backlog=<twice what it is>",
)

CHECKS = (SQUEEZE_BY_BUDGET, SQUEEZE_BY_TIME, BACKLOG_OVERFLOW)
