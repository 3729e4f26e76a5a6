"""Sections of the status page about the host: OSDs, disks, network, packet processing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from plumbline.core.units import seconds_text, si
from plumbline.htmltext import Html, joined, tag
from plumbline.status_model import DiskRow, Level, Loss, NicRow, OsdRow, SoftnetRow, StatusModel, Times
from plumbline.status_parts import Row, cut_table, dim, ident, link, section, small, table, word

IN_VIEW = 12
"""Lines before the rest is folded: a host with a dozen disks shows them all."""


def osds(model: StatusModel) -> Html:
    """Nothing where there is none: most hosts have none, and the collector says why."""
    if not model.osds:
        return Html("")
    known = {row.device for row in model.disks}
    rows = [Row(_osd_cells(each, known), ident("osd", each.daemon)) for each in sorted(model.osds, key=_osd_order)]
    columns = ("OSD", "State", "#Read", "#Write", "#Other", "Worst ping")
    about = f"Client operations {_lately(model)}, queue and replicas included; no baseline judges them here"
    return section(
        "osds", f"OSDs ({len(rows)})", about,
        cut_table(columns, rows, label="OSDs of this host", most=IN_VIEW, rest="OSDs"),
    )  # fmt: skip


def disks(model: StatusModel) -> Html:
    """With how many findings ask for something there; the slowest first."""
    if not model.disks:
        return section("disks", "Disks", "No disk is reported.")
    open_ones = Counter(each.subject for each in model.findings or () if not each.met)
    osds_here = {each.daemon for each in model.osds}
    rows = [
        Row(_disk_cells(each, open_ones[each.device], osds_here), ident("disk", each.device))
        for each in sorted(model.disks, key=lambda row: (-_slowest(row.times), -_mean_of(row), row.device))
    ]
    columns = ("Device", "Model", "#Size", "#Read", "#Write", "#In flight")
    about = (
        "Means since boot"
        if not any(row.times for row in model.disks)
        else f"p50 and p99 {_lately(model)}, means since boot"
    )
    return section(
        "disks", f"Disks ({len(rows)})", about,
        cut_table(columns, rows, label="Disks", most=IN_VIEW, rest="disks"),
    )  # fmt: skip


def network(model: StatusModel) -> Html:
    """What loses packets now first, then what lost some, then what is up."""
    if not model.nics:
        return section("network", "Network", "No network device is reported.")
    rows = [Row(_nic_cells(each), ident("nic", each.device)) for each in sorted(model.nics, key=_nic_order)]
    columns = ("Device", "Link", "Receive ring", "Lost, by cause")
    return section(
        "network", f"Network ({len(rows)})", _since(model),
        cut_table(columns, rows, label="Network devices and what they lost", most=IN_VIEW, rest="devices"),
    )  # fmt: skip


def softnet(model: StatusModel) -> Html:
    """All CPUs in one line."""
    if model.softnet is None:
        return Html("")
    columns = ("CPUs", "#Packets processed", "#Dropped, backlog full", "#Time squeeze")
    return section(
        "softnet", "Packet processing (softnet)", _since(model),
        table(columns, [Row(_softnet_cells(model.softnet))], label="Packet processing (softnet)"),
    )  # fmt: skip


def _lately(model: StatusModel) -> str:
    return "since the daemon looks" if model.window_s is None else f"of the last {seconds_text(round(model.window_s))}"


def _since(model: StatusModel) -> str:
    more = "" if model.window_s is None else f"; in brackets what the last {seconds_text(round(model.window_s))} added"
    return f"Totals since boot{more}"


def _slowest(times: Iterable[Times]) -> float:
    return max((each.p99_s or 0.0 for each in times), default=0.0)


# --- OSDs


def _osd_order(row: OsdRow) -> tuple[bool, bool, bool, float]:
    return row.up, not row.blocked, not row.slow, -_slowest(row.times)


def _osd_cells(row: OsdRow, disks_here: set[str]) -> list[str]:
    if not row.up:
        state = word(Level.BAD, "does not answer")
    elif row.blocked:
        oldest = f", the oldest {seconds_text(row.blocked_age_s)}" if row.blocked_age_s else ""
        stage = small(f"most wait for: {row.blocked_stage}") if row.blocked_stage else ""
        state = joined(word(Level.BAD, f"{row.blocked:,} blocked{oldest}"), stage)
    else:
        state = word(Level.GOOD, "answers")
    slow = small(word(Level.NOTE, f"{row.slow:,} slow in 10 min")) if row.slow else ""
    on = [link(f"#{ident('disk', name)}", name) if name in disks_here else name for name in row.disks]
    times = {each.operation: each for each in row.times}
    others = [_times(each, named=True) for each in row.times if each.operation not in ("read", "write")]
    ping = "" if row.ping_worst_s is None else joined(seconds_text(row.ping_worst_s), small(f"to {row.ping_peer}"))
    return [
        joined(row.daemon, small("on ", *_separated(on)) if on else ""),
        joined(state, slow),
        _times(times.get("read")),
        _times(times.get("write")),
        joined(*others),
        ping,
    ]


def _separated(parts: list[str]) -> list[str]:
    return [each for part in parts for each in (", ", part)][1:]


def _times(times: Times | None, *, named: bool = False) -> str:
    if times is None:
        return ""
    what = f"{times.operation}: " if named else ""
    if not times.count or times.p50_s is None or times.p99_s is None:
        return tag("div", dim(f"{what}none"))
    return joined(
        tag("div", f"{what}p50 {seconds_text(times.p50_s)}"),
        tag("div", f"p99 {seconds_text(times.p99_s)}"),
        small(f"{times.count:,} operations"),
    )


# --- disks


def _mean_of(row: DiskRow) -> float:
    return max(row.read_mean_s or 0.0, row.write_mean_s or 0.0)


def _disk_cells(row: DiskRow, findings: int, osds_here: set[str]) -> list[str]:
    names = [each for each in row.osd.split(",") if each]
    on = [link(f"#{ident('osd', name)}", name) if name in osds_here else name for name in names]
    asks = link("#findings", f"{findings} {'finding' if findings == 1 else 'findings'}") if findings else ""
    times = {each.operation: each for each in row.times}
    return [
        joined(row.device, small("", *_separated(on)) if on else "", small(asks) if asks else ""),
        joined(row.model, small(row.device_class) if row.device_class else ""),
        "" if row.size_bytes is None else si(row.size_bytes, "B"),
        joined(_times(times.get("read")), _mean(row.read_mean_s, row.reads, "reads")),
        joined(_times(times.get("write")), _mean(row.write_mean_s, row.writes, "writes")),
        "" if row.in_flight is None else f"{row.in_flight:,}",
    ]


def _mean(seconds: float | None, count: int | None, what: str) -> str:
    if count is None:
        return ""
    if seconds is None or not count:
        return small(f"{count:,} {what}")
    return small(f"mean {seconds_text(seconds)}, {count:,} {what}")


# --- network


def _nic_order(row: NicRow) -> tuple[bool, bool, bool, str]:
    growing = any(each.grew and not each.benign for each in row.losses)
    return not growing, not any(not each.benign for each in row.losses), not row.up, row.device


def _nic_cells(row: NicRow) -> list[str]:
    state = "" if row.up is None else (word(Level.GOOD, "up") if row.up else word(Level.NEUTRAL, "down"))
    speed = "" if row.speed_bits_per_second is None else f" {si(row.speed_bits_per_second, 'b/s')}"
    mtu = "" if row.mtu_bytes is None else small(f"MTU {row.mtu_bytes}")
    losses = [_loss(each) for each in row.losses] or [dim("nothing")]
    return [
        joined(row.device, small(row.driver) if row.driver else ""),
        joined(state, speed, mtu),
        "" if row.rx_ring is None else f"{row.rx_ring[0]:,} of {row.rx_ring[1]:,}",
        joined(*losses),
    ]


def _loss(loss: Loss) -> Html:
    grew = f" (+{loss.grew:,})" if loss.grew else ""
    level = Level.BAD if loss.grew and not loss.benign else Level.NEUTRAL
    benign = ", benign" if loss.benign else ""
    return tag("div", word(level, f"{loss.total:,}{grew}"), f" {loss.direction} {loss.what}: {loss.cause}{benign}")


def _softnet_cells(row: SoftnetRow) -> list[str]:
    def grown(total: int, grew: int | None, level: Level) -> str:
        return word(level, f"{total:,} (+{grew:,})") if grew else f"{total:,}"

    return [
        f"{row.cpus} together",
        f"{row.processed:,}",
        grown(row.dropped, row.dropped_grew, Level.BAD),
        grown(row.time_squeeze, row.time_squeeze_grew, Level.NOTE),
    ]
