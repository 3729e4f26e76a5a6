"""The status page: one HTML document without scripts or outside parts, for a person in a hurry.

Every text is escaped by construction, see :mod:`plumbline.htmltext`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from plumbline.checks.model import Finding, Severity
from plumbline.htmltext import Html, joined, tag
from plumbline.snapshot import CollectorHealth
from plumbline.status_model import (
    Comparison,
    DiskRow,
    FailureRow,
    Level,
    Loss,
    NicRow,
    ProbeRow,
    SoftnetRow,
    StatusModel,
    Verdict,
    judge,
    seconds_text,
)

__all__ = ["render_status"]

_STYLE = """
:root { color-scheme: light dark; --ground: #f7f7f4; --card: #fff; --ink: #1d2126; --dim: #5c6670; --line: #dcdfe2;
  --good: #17713c; --good-ground: #e4f3e9; --note: #855400; --note-ground: #fdf0d5; --bad: #b3201f;
  --bad-ground: #fde7e5; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1d2125; --ink: #e6e8ea; --dim: #9aa4ad;
  --line: #343a40; --good: #6fd08f; --good-ground: #14301f; --note: #f0bc5e; --note-ground: #352808; --bad: #ff8f87;
  --bad-ground: #40191a; --link: #7db7f5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1rem; }
header p { margin: 0; color: var(--dim); font-size: .875rem; }
h1 { font-size: 1.25rem; margin: 0; }
a { color: var(--link); }
nav { display: flex; gap: 1rem; margin-left: auto; font-size: .875rem; }
.verdict { margin: 1rem 0; padding: .875rem 1.125rem; border-radius: .5rem; border-left: .375rem solid; }
.verdict h2 { margin: 0; font-size: 1.375rem; line-height: 1.3; }
.verdict ul { margin: .5rem 0 0; padding-left: 1.25rem; color: var(--ink); }
.verdict h3 { margin: .75rem 0 0; font-size: .875rem; color: var(--dim); font-weight: 600; }
.verdict h3 + ul { margin-top: 0; font-size: .9375rem; }
.verdict.good { background: var(--good-ground); border-color: var(--good); }
.verdict.note { background: var(--note-ground); border-color: var(--note); }
.verdict.bad { background: var(--bad-ground); border-color: var(--bad); }
.good { color: var(--good); } .note { color: var(--note); } .bad { color: var(--bad); } .dim { color: var(--dim); }
td .good, td .note, td .bad, th .good, th .note, th .bad { font-weight: 600; }
code { font: .875em ui-monospace, monospace; white-space: pre-wrap; }
table { width: 100%; border-collapse: collapse; margin: 0 0 1.25rem; background: var(--card);
  border: 1px solid var(--line); font-size: .9375rem; }
caption { text-align: left; padding: .25rem 0 .375rem; font-weight: 700; font-size: 1.0625rem; }
caption small { display: block; font-weight: 400; font-size: .875rem; color: var(--dim); }
th, td { padding: .4375rem .75rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--dim); font-size: .8125rem; font-weight: 600; }
tbody th { font-weight: 600; }
small { font-size: .8125rem; }
td small, th small { display: block; color: var(--dim); font-weight: 400; }
.number { font-variant-numeric: tabular-nums; }
@media (min-width: 48.01rem) { td.number, th.number { text-align: right; white-space: nowrap; }
  th, td { overflow-wrap: break-word; } }
@media (max-width: 48rem) {
  body { padding: .75rem; }
  nav { margin-left: 0; }
  table, tbody, tr, td, tbody th, caption { display: block; }
  table { border: 0; background: none; }
  tbody { border: 1px solid var(--line); background: var(--card); }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tr { padding: .5rem .75rem; border-top: 1px solid var(--line); }
  tbody tr:first-child { border-top: 0; }
  th, td { border: 0; padding: .125rem 0; }
  td { display: flex; gap: .75rem; }
  td::before { content: attr(data-label); flex: 0 0 7rem; color: var(--dim); font-size: .875rem; }
  td:empty { display: none; }
}
"""


def render_status(model: StatusModel) -> str:
    """The whole page."""
    verdict = judge(model)
    now = datetime.fromtimestamp(model.now_ts, UTC)
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<link rel="icon" href="data:,">'),
        tag("title", f"{_mark(verdict.level)} {model.host} – Plumbline"),
        Html(f"<style>{_STYLE}</style>"),
    )
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", f"Plumbline on {model.host}"),
            tag(
                "p",
                f"{now:%Y-%m-%d %H:%M:%S} UTC, version {model.version}, "
                f"up for {seconds_text(max(0.0, model.now_ts - model.started_ts))}",
            ),
            tag("nav", _link("/metrics"), _link("/-/ready"), _link("/-/healthy"), aria_label="Other pages"),
        ),
        tag("main", _verdict(verdict), *_sections(model)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _sections(model: StatusModel) -> Iterable[Html]:
    since = "Totals since boot"
    if model.last_look_s is not None:
        since += f"; in brackets what the last {seconds_text(model.last_look_s)} added"
    yield _table(
        "Probes",
        "Latency, measured on purpose, beside the accepted figure",
        ("Probe", "Last result", "#p50", "#p99", "Baseline"),
        [_probe_cells(row) for row in model.probes],
        "No probe is configured.",
    )
    if model.failures:
        yield _table(
            "Failed runs",
            "The last of each periodic probe, the newest first",
            ("Probe", "When", "#Took", "What went wrong"),
            [_failure_cells(row) for row in model.failures],
            "",
        )
    yield _findings(model)
    yield _table(
        "Disks",
        "Means since boot",
        ("Device", "Model", "#Size", "#Mean read", "#Mean write", "#In flight"),
        [_disk_cells(row) for row in model.disks],
        "No disk is reported.",
    )
    yield _table(
        "Network loss",
        since,
        ("Device", "Link", "Receive ring", "Lost, by cause"),
        [_nic_cells(row) for row in model.nics],
        "No network device is reported.",
    )
    if model.softnet is not None:
        columns = ("CPUs", "#Packets processed", "#Dropped, backlog full", "#Time squeeze")
        yield _table("Packet processing (softnet)", since, columns, [_softnet_cells(model.softnet)], "")
    yield _table(
        "Collectors",
        "Not available means that this host lacks the hardware, driver or permission; that is no fault",
        ("Collector", "State", "#Took", "Left out"),
        [_collector_cells(row) for row in model.collectors],
        "No collector is switched on.",
    )


def _findings(model: StatusModel) -> Html:
    if model.findings is None:
        return _table("Findings", "", _FINDING_COLUMNS, (), "This host has not been judged yet.")
    rows = [each for each in model.findings if not each.met]
    met = len(model.findings) - len(rows)
    about = f"Documented advice that is not met ({len(rows)} of {len(model.findings)} findings)"
    empty = (
        f"All documented advice that applies here is met ({met} of {met} findings)."
        if met
        else "No advice applies here."
    )
    return _table("Findings", about, _FINDING_COLUMNS, [_finding_cells(each) for each in rows], empty)


_FINDING_COLUMNS = ("Subject", "Is, and should be", "Why", "What mends it")


def _finding_cells(finding: Finding) -> list[str]:
    level = {Severity.CRITICAL: Level.BAD, Severity.WARNING: Level.NOTE, Severity.INFO: Level.NEUTRAL}
    word = tag("small", _word(level[finding.severity], finding.severity), f" {finding.check}")
    fix: list[str] = []
    if finding.fix is not None:
        fix.append(tag("code", finding.fix.now))
        if finding.fix.caution:
            fix.append(tag("small", finding.fix.caution))
        keep = finding.fix.keep
        if keep is not None:
            fix.append(tag("small", f"To stay, in {keep.file}{f' {keep.place}' if keep.place else ''}: "))
            fix.append(tag("code", keep.content))
    return [
        joined(finding.subject, word),
        joined(finding.is_, tag("small", f"should be: {finding.should}")),
        joined(finding.why, tag("small", finding.source)),
        joined(*fix),
    ]


def _verdict(verdict: Verdict) -> Html:
    parts: list[str] = [tag("h2", f"{_mark(verdict.level)} {verdict.headline}", class_=verdict.level)]
    if len(verdict.problems) > 1:
        parts.append(_list(verdict.problems))
    if verdict.notes:
        parts += [tag("h3", "Worth knowing"), _list(verdict.notes)]
    return tag("section", *parts, class_=f"verdict {verdict.level}", aria_label="Verdict")


def _probe_cells(row: ProbeRow) -> list[str]:
    what = " ".join(filter(None, (row.layer, row.device_class, row.operation, row.workload)))
    if row.stuck_s is not None:
        state = _word(Level.BAD, f"stuck for {seconds_text(row.stuck_s)}")
    elif row.success is None:
        state = _word(Level.NOTE, "has not run yet")
    elif row.success:
        state = _word(Level.NOTE, "overdue") if row.overdue else _word(Level.GOOD, "success")
    else:
        state = _word(Level.BAD, "failed")
    age = "" if row.age_s is None else tag("small", f"{seconds_text(row.age_s)} ago")
    message = tag("small", row.message) if row.message else ""
    skipped = ", ".join(f"{reason} {count:,}" for reason, count in sorted(row.skipped.items()) if count)
    when = "" if row.next_s is None else tag("small", f"next in {seconds_text(row.next_s)}")
    if not row.baseline:
        baseline = _word(Level.NOTE, "none")
    else:
        baseline = joined(row.baseline, "" if row.judges else tag("small", "shown only, judges nothing"))
    return [
        joined(row.probe, tag("small", what)),
        joined(state, age, message, when, tag("small", f"skipped: {skipped}") if skipped else ""),
        _comparison(row.p50, row.judges),
        _comparison(row.p99, row.judges),
        baseline,
    ]


def _failure_cells(row: FailureRow) -> list[str]:
    return [
        row.probe,
        joined(_word(Level.BAD, row.outcome), tag("small", f"{seconds_text(row.age_s)} ago")),
        seconds_text(row.duration_s),
        row.message,
    ]


def _comparison(figure: Comparison, judges: bool) -> Html:
    if figure.measured_s is None:
        return joined(tag("span", "not measured", class_="dim"))
    measured = tag("span", seconds_text(figure.measured_s))
    if figure.baseline_s is None:
        return joined(measured)
    level = Level.NEUTRAL
    if judges and figure.tolerance_ratio is not None:
        level = Level.BAD if figure.beyond else Level.GOOD
    accepted = tag("small", f"{'accepted' if judges else 'documented'} {seconds_text(figure.baseline_s)}")
    return joined(measured, " ", _word(level, figure.word), accepted)


def _disk_cells(row: DiskRow) -> list[str]:
    return [
        joined(row.device, tag("small", f"OSD {row.osd}") if row.osd else ""),
        joined(row.model, tag("small", row.device_class) if row.device_class else ""),
        "" if row.size_bytes is None else _bytes_text(row.size_bytes),
        _mean(row.read_mean_s, row.reads, "reads"),
        _mean(row.write_mean_s, row.writes, "writes"),
        "" if row.in_flight is None else f"{row.in_flight:,}",
    ]


def _mean(seconds: float | None, count: int | None, what: str) -> str:
    if count is None:
        return ""
    shown = "" if seconds is None or not count else seconds_text(seconds)
    return joined(shown, tag("small", f"{count:,} {what}"))


def _nic_cells(row: NicRow) -> list[str]:
    state = "" if row.up is None else (_word(Level.GOOD, "up") if row.up else _word(Level.NEUTRAL, "down"))
    speed = "" if row.speed_bits_per_second is None else f" {_bits_text(row.speed_bits_per_second)}"
    mtu = "" if row.mtu_bytes is None else tag("small", f"MTU {row.mtu_bytes}")
    losses = [_loss(each) for each in row.losses] or [tag("span", "nothing", class_="dim")]
    return [
        joined(row.device, tag("small", row.driver) if row.driver else ""),
        joined(state, speed, mtu),
        "" if row.rx_ring is None else f"{row.rx_ring[0]:,} of {row.rx_ring[1]:,}",
        joined(*losses),
    ]


def _loss(loss: Loss) -> Html:
    grew = f" (+{loss.grew:,})" if loss.grew else ""
    level = Level.BAD if loss.grew and not loss.benign else Level.NEUTRAL
    benign = ", benign" if loss.benign else ""
    return tag("div", _word(level, f"{loss.total:,}{grew}"), f" {loss.direction} {loss.what}: {loss.cause}{benign}")


def _softnet_cells(row: SoftnetRow) -> list[str]:
    def grown(total: int, grew: int | None, level: Level) -> str:
        return _word(level, f"{total:,} (+{grew:,})") if grew else f"{total:,}"

    return [
        f"{row.cpus} together",
        f"{row.processed:,}",
        grown(row.dropped, row.dropped_grew, Level.BAD),
        grown(row.time_squeeze, row.time_squeeze_grew, Level.NOTE),
    ]


def _collector_cells(row: CollectorHealth) -> list[str]:
    if not row.success:
        state = _word(Level.BAD, "fails")
    else:
        state = _word(Level.GOOD, "works") if row.available else _word(Level.NEUTRAL, "not available")
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in row.skipped.items() if count)
    reason = tag("small", row.reason) if row.reason else ""
    return [row.name, joined(state, reason), seconds_text(row.duration_s), skipped]


def _table(caption: str, about: str, columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> Html:
    """A table; ``#`` before a column's name makes its cells numbers. The first cell of a row heads it.

    Roles stand on every element because the narrow layout changes ``display``, which would take the meaning away.
    """
    title = tag("caption", caption, tag("small", about) if rows else tag("small", empty))
    heads = [tag("th", name.lstrip("#"), scope="col", role="columnheader", class_=_class(name)) for name in columns]
    head = tag("thead", tag("tr", *heads, role="row"), role="rowgroup")
    lines = []
    for first, *others in rows:
        cells = [tag("th", first, scope="row", role="rowheader")]
        for name, cell in zip(columns[1:], others, strict=True):
            inner = tag("div", cell) if cell else ""
            cells.append(tag("td", inner, role="cell", data_label=name.lstrip("#"), class_=_class(name)))
        lines.append(tag("tr", *cells, role="row"))
    return tag("table", title, *((head, tag("tbody", *lines, role="rowgroup")) if rows else ()), role="table")


def _class(column: str) -> str:
    return "number" if column.startswith("#") else ""


def _word(level: Level, text: str) -> Html:
    """A word with its colour; the word alone says as much."""
    return tag("span", text, class_="" if level is Level.NEUTRAL else level)


def _list(lines: Iterable[str]) -> Html:
    return tag("ul", *(tag("li", line) for line in lines))


def _link(path: str) -> Html:
    return tag("a", path, href=path)


def _mark(level: Level) -> str:
    return {Level.GOOD: "✔", Level.NOTE: "●", Level.BAD: "✖", Level.NEUTRAL: ""}[level]


def _bytes_text(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:,.3g} PiB"


def _bits_text(rate: float) -> str:
    return f"{rate / 1e9:g} Gb/s" if rate >= 1e9 else f"{rate / 1e6:g} Mb/s"
