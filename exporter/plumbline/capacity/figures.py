"""The figures of capacity that follow from facts: those of the recording rules (``alerts/rules/capacity*.libsonnet``).

``docs/capacity.md`` has the formulas. A test evaluates the rules and these functions on the same data.
"""

from collections.abc import Iterable

from msgspec import Struct

from plumbline.capacity.model import (
    HOST,
    ROOT,
    DataOsd,
    DataPool,
    Facts,
    Growth,
    Load,
    Loss,
    domains,
    heals,
    lost_with,
)
from plumbline.core.grouping import grouped
from plumbline.core.words import DAY_S


class ClassFigures(Struct, frozen=True):
    """One device class. ``after_loss``: the fullest OSD after the worst failure domain was lost, a share of its size;
    ``host_loss``: that ÷ backfillfull, above 1 is unsafe; both ``None`` where nothing would be copied. ``left``: what
    may be written until the first OSD is full, ``None`` where nothing is used. ``iops_used``: asked ÷ measured.
    ``rebuild_s``: of the fullest host; ``pgs``: placement groups of the OSD that has most."""

    device_class: str
    osds: int
    hosts: int
    size: float
    used: float
    fullest: float
    left: float | None
    days_to_full: Growth
    after_loss: float | None
    host_loss: float | None
    host_loss_left: float | None
    days_to_unsafe: Growth
    iops_used: float | None
    measured_by: str
    rebuild_s: float | None
    pgs: float | None
    loss: Loss | None


class PoolFigures(Struct, frozen=True):
    """``domains``: how many its rule can choose from, ``None`` where that is unknown; ``placed``: there are enough for
    its copies; ``heals``: there are enough after losing one. ``quota``: the share used of the one nearest its end."""

    name: str
    copies: int
    failure_domain: str
    domains: int | None
    placed: bool | None
    heals: bool | None
    stored: float | None
    raw: float | None
    objects: float | None
    application: str
    quota: float | None
    days_to_quota: Growth


def class_figures(facts: Facts, device_class: str) -> ClassFigures:
    """The figures of one class, which has OSDs. The formulas: ``docs/capacity.md``."""
    osds, load = facts.of(device_class), facts.load(device_class)
    used, fullest = sum(osd.used for osd in osds), max(osd.ratio for osd in osds)
    after = max((ratio for _, _, ratio in after_losses(facts, device_class)), default=None)
    loss = None if after is None else after / facts.backfillfull
    left = _room(used, fullest / facts.full)
    unsafe = None if loss is None else _room(used, loss)
    capable = None if load.osd_iops is None else load.osd_iops * len(osds)
    pgs = [osd.pgs for osd in osds if osd.pgs is not None]
    return ClassFigures(
        device_class=device_class,
        osds=len(osds),
        hosts=len({osd.host for osd in osds if osd.host}),
        size=sum(osd.size for osd in osds),
        used=used,
        fullest=fullest,
        left=None if left is None else max(0.0, left),
        days_to_full={} if left is None else _days(max(0.0, left), load.growth),
        after_loss=after,
        host_loss=loss,
        host_loss_left=unsafe,
        days_to_unsafe=_days(unsafe, load.growth) if unsafe is not None and unsafe > 0 else {},
        iops_used=load.asked / capable if load.asked is not None and capable else None,
        measured_by=load.measured_by,
        rebuild_s=moved_in(_largest_host(osds), len(osds), load),
        pgs=max(pgs) if pgs else None,
        loss=facts.losses.get(device_class),
    )


def pool_figures(facts: Facts, pool: DataPool) -> PoolFigures:
    count = domains(facts, pool)
    shares = [
        (used / quota)
        for used, quota in ((pool.stored, pool.quota_bytes), (pool.objects, pool.quota_objects))
        if used is not None and quota
    ]
    room = (pool.quota_bytes or 0) - (pool.stored or 0)
    return PoolFigures(
        name=pool.name,
        copies=pool.copies,
        failure_domain=pool.failure_domain,
        domains=count,
        placed=None if count is None else count >= pool.copies,
        heals=None if count is None else heals(facts, pool),
        stored=pool.stored,
        raw=None if pool.stored is None or pool.raw_ratio is None else pool.stored * pool.raw_ratio,
        objects=pool.objects,
        application=pool.application,
        quota=max(shares, default=None),
        days_to_quota=_days(max(0.0, room), pool.growth) if pool.quota_bytes and pool.stored is not None else {},
    )


def after_losses(facts: Facts, device_class: str) -> list[tuple[str, str, float]]:
    """(Failure domain, its name, the fullest OSD once the others hold its data), of all whose data would be
    copied: the rules' ``plumbline:capacity_after_loss:ratio``."""
    ratios = []
    for root in sorted({osd.root for osd in facts.of(device_class)}):
        osds = [osd for osd in facts.of(device_class) if osd.root == root]
        losses = lost_with(facts, root, device_class)
        for scope, domain in sorted(losses):
            if scope == ROOT:
                ratios += _each_lost(domain, osds)
            elif domain != HOST:
                for name in sorted({osd.domain(domain) for osd in osds} - {""}):
                    ratios += _each_lost(HOST, [osd for osd in osds if osd.domain(domain) == name])
    return ratios


def _each_lost(kind: str, everyone: Iterable[DataOsd]) -> list[tuple[str, str, float]]:
    """The fullest of the others × all used ÷ (all used − used of the lost)."""
    osds = [osd for osd in everyone if osd.domain(kind)]
    groups = grouped(osds, lambda osd: osd.domain(kind))
    fullest_of = {lost: max(osd.ratio for osd in members) for lost, members in groups.items()}
    ranked = sorted(fullest_of, key=lambda lost: -fullest_of[lost])
    everything, losses = sum(osd.used for osd in osds), []
    for lost, members in groups.items() if len(groups) > 1 else ():
        fullest = fullest_of[ranked[1] if lost == ranked[0] else ranked[0]]
        kept = everything - sum(osd.used for osd in members)
        if kept > 0:
            losses.append((kind, lost, fullest * everything / kept))
        elif everything == 0:
            losses.append((kind, lost, fullest))
    return losses


def _largest_host(osds: Iterable[DataOsd]) -> float:
    groups = grouped((osd for osd in osds if osd.host), lambda osd: (osd.root, osd.buckets, osd.host))
    return max((sum(osd.used for osd in members) for members in groups.values()), default=0.0)


def moved_in(data: float, osds: int, load: Load) -> float | None:
    """Seconds to copy ``data`` at the measured rate of recovery, which grows with the OSDs that take part."""
    if not load.recovery or not load.recovered_by or not osds or not data:
        return None
    return data / (load.recovery * osds / load.recovered_by)


def _room(used: float, share: float) -> float | None:
    """How much more may be written, in proportion to what is there, until ``share`` of a limit is all of it. ``None``
    where nothing is there."""
    return used * (1 / share - 1) if share > 0 else None


def _days(room: float, growth: Growth) -> Growth:
    return {slope: room / rate / DAY_S for slope, rate in growth.items() if rate > 0}
