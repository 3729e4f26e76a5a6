"""What to buy: the fewest hosts of each class with which it lasts a year and bears the loss that costs most."""

from bisect import bisect_left

from msgspec import Struct

from plumbline.capacity.changes import with_hosts
from plumbline.capacity.figures import ClassFigures, class_figures
from plumbline.capacity.model import Facts

YEAR_DAYS = 365.0
MOST_HOSTS = 200  # more is no purchase but another cluster


class Purchase(Struct, frozen=True):
    """``hosts``: as those of the class are; ``None``: not even :data:`MOST_HOSTS` would do. ``disks`` and ``size``: of
    all of them together. ``why``: what is missed without them, empty if nothing is. ``unknown``: what could not be
    considered."""

    device_class: str
    hosts: int | None
    disks: int
    size: float
    why: tuple[str, ...]
    unknown: tuple[str, ...]


def purchases(facts: Facts) -> tuple[Purchase, ...]:
    """One for each device class whose hosts are known."""
    return tuple(_purchase(facts, name) for name in facts.classes if any(osd.host for osd in facts.of(name)))


def _purchase(facts: Facts, device_class: str) -> Purchase:
    now = class_figures(facts, device_class)
    why = missed(now)
    unknown = () if facts.load(device_class).growth else ("growth is unknown: only the loss of a host counts",)
    if not why:
        return Purchase(device_class, 0, 0, 0.0, (), unknown)

    def with_more(number: int) -> ClassFigures:
        return class_figures(with_hosts(facts, device_class, number), device_class)

    # with more hosts nothing is missed that was not missed with less
    hosts = bisect_left(range(1, MOST_HOSTS + 1), True, key=lambda number: not missed(with_more(number))) + 1
    if hosts > MOST_HOSTS:
        return Purchase(device_class, None, 0, 0.0, why, unknown)
    then = with_more(hosts)
    return Purchase(device_class, hosts, then.osds - now.osds, then.size - now.size, why, unknown)


def missed(figures: ClassFigures) -> tuple[str, ...]:
    """Which of the two goals a class misses, in words; the fastest of the known growths counts."""
    why = []
    if any(days < YEAR_DAYS for days in figures.days_to_full.values()):
        why.append(f"full in {min(figures.days_to_full.values()):,.0f} days")
    if figures.host_loss is not None and figures.host_loss > 1:
        why.append("the others could not take the data of the host or rack that costs most")
    elif any(days < YEAR_DAYS for days in figures.days_to_unsafe.values()):
        why.append(f"such a loss is unsafe in {min(figures.days_to_unsafe.values()):,.0f} days")
    return tuple(why)
