"""Which nodes are measured at the same time: pure planning.

Never two nodes of one failure domain, never more than a share of a class, never more than a number at once. A node
without a known domain is a domain of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from plumbline.core.grouping import grouped
from plumbline.errors import ConfigError


class Member(Struct, frozen=True):
    """A node of the fleet as it is planned."""

    name: str
    fleet_class: str
    domain: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Equal for two nodes of one failure domain."""
        return ("domain", self.domain) if self.domain else ("node", self.name)


class Limits(Struct, frozen=True):
    """``share``: of a class at once, above 0 and up to 1, but always one node; ``at_once``: nodes in all."""

    share: float = 0.1
    at_once: int = 8

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigError("--share", "must be above 0 and at most 1", value=self.share)
        if self.at_once < 1:
            raise ConfigError("--at-once", "must be at least 1", value=self.at_once)

    def of_class(self, size: int) -> int:
        """How many nodes of a class with this many nodes may be measured at once."""
        return max(1, int(self.share * size + 1e-9))


def waves(
    members: Sequence[Member], limits: Limits, *, class_sizes: Mapping[str, int]
) -> tuple[tuple[Member, ...], ...]:
    """``members`` in waves. ``class_sizes``: of the whole fleet, not only of those that are measured. The domains with
    most nodes left come first, because they need the most waves."""
    left = grouped(members, lambda member: member.place)
    made = []
    while left:
        wave: list[Member] = []
        taken: Counter[str] = Counter()
        for place in sorted(left, key=lambda place: (-len(left[place]), place)):
            if len(wave) == limits.at_once:
                break
            free = (
                host for host in left[place] if taken[host.fleet_class] < limits.of_class(class_sizes[host.fleet_class])
            )
            if (chosen := next(free, None)) is not None:
                wave.append(chosen)
                taken[chosen.fleet_class] += 1
                left[place].remove(chosen)
        left = {place: rest for place, rest in left.items() if rest}
        made.append(tuple(wave))
    return tuple(made)
