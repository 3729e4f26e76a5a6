"""What-if in words and tables: cells of text, for the terminal and for the report. No I/O."""

import math
from collections.abc import Iterator, Mapping, Sequence

from plumbline.capacity.asked import Scenario
from plumbline.capacity.figures import ClassFigures, PoolFigures, class_figures, pool_figures
from plumbline.capacity.model import HOST, RACK, Facts, Load, Loss, Pool, lost_with
from plumbline.capacity.purchases import MOST_HOSTS, Purchase, purchases
from plumbline.core import words as say
from plumbline.core.units import si

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
    found, load = class_figures(facts, device_class), facts.load(device_class)
    yield "OSDs, hosts", f"{found.osds:,} on {say.count(found.hosts, 'host')}"
    yield "Size", si(found.size, "B")
    yield "Used", f"{si(found.used, 'B')} ({say.share(found.used / found.size)})"
    yield "Fullest OSD", say.share(found.fullest)
    yield "Room until an OSD is full", UNKNOWN if found.left is None else si(found.left, "B")
    yield "Full in", days(found.days_to_full, load)
    yield "Fullest OSD after the worst loss", after_loss(facts, found)
    if found.host_loss_left is not None:
        yield "Room until that is unsafe", si(max(0.0, found.host_loss_left), "B")
        yield "Unsafe in", "now" if found.host_loss_left <= 0 else days(found.days_to_unsafe, load)
    yield "Operations used of measured", operations(found)
    yield "Largest host rebuilt in", _duration(found.rebuild_s)
    yield "Placement groups of an OSD", placement_groups(facts, found)
    if found.loss is not None:
        hosts = f" of {say.listed(found.loss.hosts, 3)}" if found.loss.hosts else ""
        yield "Lost", f"{say.count(found.loss.osds, 'OSD')}{hosts}, {si(found.loss.used, 'B')}"
        yield "Restored in", restored(found.loss)


def scenario_rows(facts: Facts, scenarios: Sequence[Scenario]) -> list[Row]:
    """A row for each device class that differs from now, with the heads :data:`SCENARIO_HEADS`."""
    rows = [_scenario("as it is", facts, name) for name in facts.classes]
    told = {row[1:] for row in rows}
    for scenario in scenarios:
        then = scenario.of(facts)
        rows += [row for name in then.classes if (row := _scenario(scenario.name, then, name))[1:] not in told]
    return rows


def _scenario(name: str, facts: Facts, device_class: str) -> Row:
    found, load = class_figures(facts, device_class), facts.load(device_class)
    return (
        name,
        device_class or "all devices",
        say.share(found.used / found.size),
        days(found.days_to_full, load),
        after_loss(facts, found),
        operations(found),
        "" if found.loss is None else restored(found.loss),
    )


def purchase_rows(facts: Facts) -> list[Row]:
    return [_purchase(each) for each in purchases(facts)]


def _purchase(each: Purchase) -> Row:
    name = each.device_class or "all devices"
    because = "; ".join((*each.why, *each.unknown)) or "lasts a year and bears a loss as it is"
    if each.hosts is None:
        return name, f"more than {MOST_HOSTS} hosts", "", because
    if not each.hosts:
        return name, "nothing", "", because
    return name, say.count(each.hosts, "host"), f"{say.count(each.disks, 'disk')}, {si(each.size, 'B')}", because


def pool_rows(facts: Facts) -> list[Row]:
    return [_pool(pool, pool_figures(facts, pool)) for pool in facts.pools]


def _pool(pool: Pool, found: PoolFigures) -> Row:
    quota = "" if found.quota is None else f"{say.share(found.quota)} used"
    if found.days_to_quota:
        quota += f", full in {say.days_range(found.days_to_quota.items())}"
    needed = f"{found.domains} {found.failure_domain}s" if found.domains is not None else UNKNOWN
    return (
        pool.name,
        profile(pool),
        needed if found.placed is not False else f"{needed}, needs {found.copies}",
        {True: "yes", False: "no", None: UNKNOWN}[found.heals],
        UNKNOWN if found.stored is None else si(found.stored, "B"),
        "" if found.objects is None else f"{found.objects:,.0f}",
        found.application,
        quota,
    )


def profile(pool: Pool) -> str:
    """``3`` copies, or ``4+2``."""
    data = pool.copies / pool.raw_ratio if pool.raw_ratio else 1.0
    return f"{data:.0f}+{pool.copies - round(data)}" if data > 1.01 else str(pool.copies)


def changed(now: Facts, then: Facts) -> list[str]:
    """The device classes of which a figure differs, or all."""
    every = list(dict.fromkeys((*now.classes, *then.classes)))
    return [name for name in every if any(row[1] != row[2] for row in class_rows(now, then, name))] or every


def notes(facts: Facts, classes: Sequence[str]) -> list[str]:
    """What limits the answer: what can't be placed, what Ceph would refuse, what is assumed, what is unknown."""
    found = []
    for pool in facts.pools:
        figures = pool_figures(facts, pool)
        if figures.placed is False:
            found.append(
                f"pool {pool.name}: profile {profile(pool)} needs {pool.copies} {pool.failure_domain}s, there are"
                f" {figures.domains}; its PGs would lack copies"
            )
    found += [text for name in classes if facts.of(name) for text in _class_notes(facts, name)]
    found += [text for pool in facts.pools if pool.device_class in ("", *classes) for text in _too_big(facts, pool)]
    return list(dict.fromkeys(found))


def _class_notes(facts: Facts, device_class: str) -> Iterator[str]:
    found, load, name = class_figures(facts, device_class), facts.load(device_class), device_class or "all devices"
    if found.loss is not None and found.loss.unrestored:
        yield f"{name}: {si(found.loss.unrestored, 'B')} would not be copied: no other place is left for its copies"
    if found.fullest > facts.full:
        yield f"{name}: an OSD would be fuller than {say.share(facts.full)}; Ceph then stops writes"
    elif found.fullest > facts.backfillfull:
        yield f"{name}: an OSD would be fuller than {say.share(facts.backfillfull)}; Ceph stops copying before that"
    if found.pgs is not None and found.pgs > facts.max_pgs:
        yield (
            f"{name}: {found.pgs:,.0f} placement groups on an OSD, more than mon_max_pg_per_osd ({facts.max_pgs});"
            " Ceph refuses to create more, lower pg_num first"
        )
    if not load.growth:
        yield f"{name}: growth is unknown; it needs two days of the recording rules, of a changed pool, too"
    if found.measured_by == "mclock":
        yield f"{name}: operations against what mClock measured of the OSDs; no osd-bench baseline is in force"
    elif found.iops_used is None:
        yield f"{name}: operations are unknown; they need a day of pools' counters and an osd-bench baseline, or mClock"
    if load.recovery is None:
        yield f"{name}: rebuild times are unknown; nothing larger was recovered within two weeks"


def _too_big(facts: Facts, pool: Pool) -> Iterator[str]:
    """One domain holds at most one copy: what it has beyond that share of the size stays empty."""
    if pool.failure_domain not in (HOST, RACK) or not pool.copies:
        return
    sizes: dict[str, float] = {}
    for osd in facts.osds:
        if osd.root == pool.root and pool.device_class in ("", osd.device_class):
            name = osd.host if pool.failure_domain == HOST else osd.rack
            sizes[name] = sizes.get(name, 0.0) + osd.size
    name = max(sorted(sizes), key=lambda key: sizes[key], default="")
    share = sizes[name] / sum(sizes.values()) if sizes else 0.0
    if len(sizes) > pool.copies and share > 1.001 / pool.copies:
        yield (
            f"{pool.failure_domain} {name} has {say.share(share)} of the size that pool {pool.name} is on, but holds at"
            f" most one of {pool.copies} copies: the figures assume more of it than can be used"
        )


def days(found: Mapping[str, float], load: Load) -> str:
    if text := say.days_range(found.items()):
        return text if len(found) == len(load.growth) else f"{text}, or not at all"
    return "does not grow" if load.growth and all(rate <= 0 for rate in load.growth.values()) else UNKNOWN


def after_loss(facts: Facts, found: ClassFigures) -> str:
    if found.after_loss is not None and found.host_loss is not None:
        return f"{say.share(found.after_loss)}, {'unsafe' if found.host_loss > 1 else 'safe'}"
    roots = {osd.root for osd in facts.of(found.device_class)}
    known = any(lost_with(facts, root, found.device_class) for root in roots)
    return "nothing is copied" if known else UNKNOWN


def operations(found: ClassFigures) -> str:
    if found.iops_used is None:
        return UNKNOWN
    return f"{say.share(found.iops_used)} ({_BENCHES.get(found.measured_by, found.measured_by)})"


def placement_groups(facts: Facts, found: ClassFigures) -> str:
    return UNKNOWN if found.pgs is None else f"{math.ceil(found.pgs):,} of at most {facts.max_pgs}"


def restored(loss: Loss) -> str:
    return _duration(loss.restore_s) if not loss.unrestored else f"never: {si(loss.unrestored, 'B')}"


def _duration(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else say.duration(seconds)
