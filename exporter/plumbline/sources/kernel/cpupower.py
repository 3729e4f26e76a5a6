"""How the CPUs save power: the governor of their frequency, and the idle states that they may enter.

https://docs.kernel.org/admin-guide/pm/cpufreq.html, https://docs.kernel.org/admin-guide/pm/cpuidle.html, for each CPU::

    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor      powersave
    /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver        intel_pstate
    /sys/devices/system/cpu/cpu0/cpuidle/state3/name           C6
    /sys/devices/system/cpu/cpu0/cpuidle/state3/latency        133 (microseconds until the CPU runs again)
    /sys/devices/system/cpu/cpu0/cpuidle/state3/disable        0
    /sys/devices/system/cpu/cpu0/cpuidle/state3/usage          515104 (entries since boot)

Slow tier: some files for each CPU. A latency limit that a program holds (``/dev/cpu_dma_latency``, as tuned does)
leaves ``disable`` as it is, so only ``usage`` says what the CPUs really do.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel import sysfs

_CPU = re.compile(r"cpu[0-9]{1,6}")
_STATE = re.compile(r"state[0-9]{1,3}")
# CPUIDLE_STATE_MAX, include/linux/cpuidle.h
_MOST_STATES = 10
# The kernel's own limit of a governor's name is 16; more kinds than these on one host are not a host's
_MOST_GOVERNORS = 8


class IdleState(Struct, frozen=True):
    """One idle state over all CPUs that have it."""

    number: int  # as in stateN, the highest where CPUs differ
    name: str  # the driver's word: POLL, C1, C1E, C6
    exit_latency_us: int  # the longest of any CPU
    allowed_cpus: int  # CPUs on which it is not disabled
    entries: int  # since boot


class CpuPower(Struct, frozen=True):
    """CPUs by (driver, governor); empty in a guest. Idle states from the lightest to the deepest."""

    governors: Mapping[tuple[str, str], int]
    states: tuple[IdleState, ...]


def read_cpu_power(roots: Roots, *, on_skip: Callable[[str, str], None] = lambda _item, _reason: None) -> CpuPower:
    """All CPUs; a state with a malformed file is skipped. :class:`Unavailable` if the kernel shows neither."""
    base = roots.sys / "devices" / "system" / "cpu"
    governors: Counter[tuple[str, str]] = Counter()
    states: dict[str, list[IdleState]] = defaultdict(list)
    for cpu in filter(_CPU.fullmatch, sysfs.entries(base)):
        governor = sysfs.read_text(base / cpu / "cpufreq" / "scaling_governor")
        if governor is not None:
            driver = sysfs.read_text(base / cpu / "cpufreq" / "scaling_driver") or ""
            governors[driver, governor] += 1
        for state in _states(base / cpu / "cpuidle", on_skip):
            states[state.name].append(state)
    if not governors and not states:
        raise Unavailable(f"{base}: no CPU with a frequency governor or idle states; a guest's are its host's")
    together = [
        IdleState(
            max(same_state.number for same_state in same),
            name,
            max(same_state.exit_latency_us for same_state in same),
            sum(same_state.allowed_cpus for same_state in same),
            sum(same_state.entries for same_state in same),
        )
        for name, same in states.items()
    ]
    ordered = sorted(together, key=lambda state: state.number)
    return CpuPower(dict(governors.most_common(_MOST_GOVERNORS)), tuple(ordered[:_MOST_STATES]))


def _states(folder: Path, on_skip: Callable[[str, str], None]) -> Iterator[IdleState]:
    for entry in filter(_STATE.fullmatch, sysfs.entries(folder)):
        state = folder / entry
        name = sysfs.read_text(state / "name")
        try:
            numbers = [sysfs.read_number(state / file) for file in ("latency", "disable", "usage")]
        except ParseError as error:
            on_skip(str(state), str(error))
            continue
        latency_us, disabled, entries = numbers
        if name is not None and latency_us is not None and disabled is not None and entries is not None:
            yield IdleState(int(entry.removeprefix("state")), name, latency_us, 0 if disabled else 1, entries)
