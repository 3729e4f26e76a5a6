"""Items by a key, and sums by a key; keys in the order in which they first appear."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def sums(pairs: Iterable[tuple[K, float]]) -> defaultdict[K, float]:
    totals: defaultdict[K, float] = defaultdict(float)
    for key, value in pairs:
        totals[key] += value
    return totals
