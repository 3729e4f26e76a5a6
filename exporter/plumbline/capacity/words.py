"""What-if in words and tables: cells of text, for the terminal and for the report. No I/O."""

import math
from collections.abc import Iterator, Mapping, Sequence

from plumbline.capacity.figures import ClassFigures, PoolFigures, class_figures, pool_figures
from plumbline.capacity.model import OSD, DataPool, Facts, Load, Loss, lost_with
from plumbline.capacity.purchases import MOST_HOSTS, Purchase, purchases
from plumbline.capacity.scenarios import Scenario
from plumbline.core import words as say
from plumbline.core.grouping import sums
from plumbline.core.units import size_text

UNKNOWN = "unknown"
SCENARIO_HEADS = ("What if", "Class", "Used", "Full in", "Fullest after loss of a host", "Operations", "Restored in")
PURCHASE_HEADS = ("Class", "Hosts as it has", "Together", "Because without them")
POOL_HEADS = ("Pool", "Copies", "Domains", "Heals", "Stored", "Objects", "Used by", "Quota")
_BENCHES = {"osd-bench": "osd-bench", "mclock": "mClock"}

Row = tuple[str, ...]


def class_rows(now: Facts, then: Facts, device_class: str) -> list[Row]:
    """(Figure, now, then) of a device class; a class that is not there has empty cells."""
    before, after = (dict(_lines(facts, device_class)) for facts in (now, then))
    return [(name, before.get(name, ""), after.get(name, "")) for name in {**before, **after}]


def _lines(facts: Facts, device_class: str) -> Iterator[tuple[str, str]]:
    if not facts.of(device_class):
        return
    figures, load = class_figures(facts, device_class), facts.load(device_class)
    yield "OSDs, hosts", f"{figures.osds:,} on {say.count(figures.hosts, 'host')}"
    yield "Size", size_text(figures.size)
    yield "Used", f"{size_text(figures.used)} ({say.share(figures.used / figures.size)})"
    yield "Fullest OSD", say.share(figures.fullest)
    yield "Room until an OSD is full", UNKNOWN if figures.left is None else size_text(figures.left)
    yield "Full in", days(figures.days_to_full, load)
    yield "Fullest OSD after the worst loss", after_loss(facts, figures)
    if figures.host_loss_left is not None:
        yield "Room until that is unsafe", size_text(max(0.0, figures.host_loss_left))
        yield "Unsafe in", "now" if figures.host_loss_left <= 0 else days(figures.days_to_unsafe, load)
    yield "Operations used of measured", operations(figures)
    yield "Largest host rebuilt in", _duration(figures.rebuild_s)
    yield "Placement groups of an OSD", placement_groups(facts, figures)
    if figures.loss is not None:
        hosts = f" of {say.listed(figures.loss.hosts, 3)}" if figures.loss.hosts else ""
        yield "Lost", f"{say.count(figures.loss.osds, 'OSD')}{hosts}, {size_text(figures.loss.used)}"
        yield "Restored in", restored(figures.loss)


def scenario_rows(facts: Facts, scenarios: Sequence[Scenario]) -> list[Row]:
    """A row for each device class that differs from now, with the heads :data:`SCENARIO_HEADS`."""
    rows = [_scenario("as it is", facts, name) for name in facts.classes]
    shown = {row[1:] for row in rows}
    for scenario in scenarios:
        then = scenario.of(facts)
        rows += [row for name in then.classes if (row := _scenario(scenario.name, then, name))[1:] not in shown]
    return rows


def _scenario(name: str, facts: Facts, device_class: str) -> Row:
    figures, load = class_figures(facts, device_class), facts.load(device_class)
    return (
        name,
        device_class or "all devices",
        say.share(figures.used / figures.size),
        days(figures.days_to_full, load),
        after_loss(facts, figures),
        operations(figures),
        "" if figures.loss is None else restored(figures.loss),
    )


def purchase_rows(facts: Facts) -> list[Row]:
    return [_purchase(purchase) for purchase in purchases(facts)]


def _purchase(purchase: Purchase) -> Row:
    name = purchase.device_class or "all devices"
    because = "; ".join((*purchase.why, *purchase.unknown)) or "lasts a year and bears a loss as it is"
    if purchase.hosts is None:
        return name, f"more than {MOST_HOSTS} hosts", "", because
    if not purchase.hosts:
        return name, "nothing", "", because
    return (
        name,
        say.count(purchase.hosts, "host"),
        f"{say.count(purchase.disks, 'disk')}, {size_text(purchase.size)}",
        because,
    )


def pool_rows(facts: Facts) -> list[Row]:
    return [_pool(pool, pool_figures(facts, pool)) for pool in facts.pools]


def _pool(pool: DataPool, figures: PoolFigures) -> Row:
    quota = "" if figures.quota is None else f"{say.share(figures.quota)} used"
    if figures.days_to_quota:
        quota += f", full in {say.days_range(figures.days_to_quota.items())}"
    needed = f"{figures.domains} {figures.failure_domain}s" if figures.domains is not None else UNKNOWN
    return (
        pool.name,
        profile(pool),
        needed if figures.placed is not False else f"{needed}, needs {figures.copies}",
        {True: "yes", False: "no", None: UNKNOWN}[figures.heals],
        UNKNOWN if figures.stored is None else size_text(figures.stored),
        "" if figures.objects is None else f"{figures.objects:,.0f}",
        figures.application,
        quota,
    )


def profile(pool: DataPool) -> str:
    """``3`` copies, or ``4+2``."""
    data = pool.copies / pool.raw_ratio if pool.raw_ratio else 1.0
    return f"{data:.0f}+{pool.copies - round(data)}" if data > 1.01 else str(pool.copies)


def changed(now: Facts, then: Facts) -> list[str]:
    """The device classes of which a figure differs, or all."""
    every = list(dict.fromkeys((*now.classes, *then.classes)))
    return [name for name in every if any(row[1] != row[2] for row in class_rows(now, then, name))] or every


def notes(facts: Facts, classes: Sequence[str]) -> list[str]:
    """What limits the answer: what can't be placed, what Ceph would refuse, what is assumed, what is unknown."""
    texts = []
    for pool in facts.pools:
        figures = pool_figures(facts, pool)
        if figures.placed is False:
            texts.append(
                f"pool {pool.name}: profile {profile(pool)} needs {pool.copies} {pool.failure_domain}s, there are"
                f" {figures.domains}; its PGs would lack copies"
            )
    texts += [text for name in classes if facts.of(name) for text in _class_notes(facts, name)]
    texts += [text for pool in facts.pools if pool.device_class in ("", *classes) for text in _too_big(facts, pool)]
    return list(dict.fromkeys(texts))


def _class_notes(facts: Facts, device_class: str) -> Iterator[str]:
    figures, load, name = class_figures(facts, device_class), facts.load(device_class), device_class or "all devices"
    if figures.loss is not None and figures.loss.unrestored:
        yield f"{name}: {size_text(figures.loss.unrestored)} would not be copied: no other place is left for its copies"
    if figures.fullest > facts.full:
        yield f"{name}: an OSD would be fuller than {say.share(facts.full)}; Ceph then stops writes"
    elif figures.fullest > facts.backfillfull:
        yield f"{name}: an OSD would be fuller than {say.share(facts.backfillfull)}; Ceph stops copying before that"
    if figures.pgs is not None and figures.pgs > facts.max_pgs:
        yield (
            f"{name}: {figures.pgs:,.0f} placement groups on an OSD, more than mon_max_pg_per_osd ({facts.max_pgs});"
            " Ceph refuses to create more, lower pg_num first"
        )
    if not load.growth:
        yield f"{name}: growth is unknown; it needs two days of the recording rules, of a changed pool, too"
    if figures.measured_by == "mclock":
        yield f"{name}: operations against what mClock measured of the OSDs; no osd-bench baseline is in force"
    elif figures.iops_used is None:
        yield f"{name}: operations are unknown; they need a day of pools' counters and an osd-bench baseline, or mClock"
    if load.recovery is None:
        yield f"{name}: rebuild times are unknown; nothing larger was recovered within two weeks"


def _too_big(facts: Facts, pool: DataPool) -> Iterator[str]:
    """One domain holds at most one copy: what it has beyond that share of the size stays empty."""
    if pool.failure_domain == OSD or not pool.copies:
        return
    under = (osd for osd in facts.osds if osd.root == pool.root and pool.device_class in ("", osd.device_class))
    sizes = sums((osd.domain(pool.failure_domain), osd.size) for osd in under)
    name = max(sorted(sizes), key=lambda key: sizes[key], default="")
    share = sizes[name] / sum(sizes.values()) if sizes else 0.0
    if len(sizes) > pool.copies and share > 1.001 / pool.copies:
        yield (
            f"{pool.failure_domain} {name} has {say.share(share)} of the size that pool {pool.name} is on, but holds at"
            f" most one of {pool.copies} copies: the figures assume more of it than can be used"
        )


def days(forecasts: Mapping[str, float], load: Load) -> str:
    if text := say.days_range(forecasts.items()):
        return text if len(forecasts) == len(load.growth) else f"{text}, or not at all"
    return "does not grow" if load.growth and all(rate <= 0 for rate in load.growth.values()) else UNKNOWN


def after_loss(facts: Facts, figures: ClassFigures) -> str:
    if figures.after_loss is not None and figures.host_loss is not None:
        return f"{say.share(figures.after_loss)}, {'unsafe' if figures.host_loss > 1 else 'safe'}"
    roots = {osd.root for osd in facts.of(figures.device_class)}
    known = any(lost_with(facts, root, figures.device_class) for root in roots)
    return "nothing is copied" if known else UNKNOWN


def operations(figures: ClassFigures) -> str:
    if figures.iops_used is None:
        return UNKNOWN
    return f"{say.share(figures.iops_used)} ({_BENCHES.get(figures.measured_by, figures.measured_by)})"


def placement_groups(facts: Facts, figures: ClassFigures) -> str:
    return UNKNOWN if figures.pgs is None else f"{math.ceil(figures.pgs):,} of at most {facts.max_pgs}"


def restored(loss: Loss) -> str:
    return _duration(loss.restore_s) if not loss.unrestored else f"never: {size_text(loss.unrestored)}"


def _duration(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else say.duration(seconds)
