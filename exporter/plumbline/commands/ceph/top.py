"""``plumbline ceph top``: one screen that is redrawn, or plain text or JSON once."""

import argparse
import signal
import socket
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from plumbline.ceph_top.model import BLOCKED, HUNG, OsdPerformance, Top
from plumbline.ceph_top.watch import Where, tops
from plumbline.commands.ceph import clients
from plumbline.commands.node import osd_classes
from plumbline.commands.shared import access, handled, positive_duration, print_json, roots
from plumbline.config.options import read_config
from plumbline.core.console import clean, drawn, line, make_console, table
from plumbline.core.units import count_text, si
from plumbline.errors import ConfigError


def _blocked(osd: OsdPerformance) -> str:
    if not osd.blocked:
        return "" if osd.blocked is None else "0"
    return f"{osd.blocked} ({osd.blocked_age_s:.0f} s)" if osd.blocked_age_s else str(osd.blocked)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else si(seconds, "s")


_Cell = Callable[[OsdPerformance], str]
_COLUMNS: Sequence[tuple[str, _Cell]] = (
    ("OSD", lambda osd: osd.daemon),
    ("Class", lambda osd: osd.device_class),
    ("Host", lambda osd: osd.host),
    ("Op/s", lambda osd: "" if osd.operations_per_s is None else f"{osd.operations_per_s:.0f}"),
    ("p50", lambda osd: _time(osd.p50_s)),
    ("p99", lambda osd: _time(osd.p99_s)),
    ("Mean", lambda osd: _time(osd.mean_s)),
    ("Queue", lambda osd: _time(osd.queue_s)),
    ("Store", lambda osd: _time(osd.store_s)),
    ("Peers", lambda osd: _time(osd.peers_s)),
    ("Ping", lambda osd: _time(osd.heartbeat_worst_s)),
    ("RTT", lambda osd: _time(osd.rtt_worst_s)),
    ("Worst peer", lambda osd: f"{osd.heartbeat_peer} {osd.heartbeat_interface}".strip()),
    ("Blocked", _blocked),
    ("Suspect", lambda osd: osd.suspicion.word if osd.suspicion else ""),
)
# Columns that a narrow terminal drops, in this order
_GO_FIRST = ("Host", "Worst peer", "Class", "p50", "Blocked", "Ping", "RTT", "Mean", "Op/s", "Peers", "Queue", "Store")
_GAP = 2
_STYLE = {HUNG: "bold red", BLOCKED: "bold red"}


def run(options: argparse.Namespace) -> int:
    interval_s = positive_duration(options.interval, "--interval")
    if options.clients is not None:
        return clients.run(options, interval_s)
    if options.cluster is not None and not options.prometheus:
        raise ConfigError("--cluster", "selects a cluster of --prometheus, which is missing", value=options.cluster)
    where = Where(
        sockets=read_config(options.config_file).ceph.admin_sockets,
        host=socket.gethostname(),
        prometheus=options.prometheus,
        access=access(options),
        cluster=options.cluster,
        classes=osd_classes(config_file=options.config_file, roots=roots(options)),
        roots=roots(options),
    )
    screens, console = tops(where, interval_s=interval_s), make_console()
    if options.json:
        print_json(next(screens))
    elif options.once or not console.is_terminal:
        print_top(console, next(screens))
    else:
        watch(console, screens)
    return 0


def print_top(console: Console, top: Top) -> None:
    line(console, _heading(top), "bold")
    table(console, [head for head, _ in _COLUMNS], _cells(top.osds, _COLUMNS))
    for text, style in _remarks(top):
        line(console, text, style)


def _cells(osds: Sequence[OsdPerformance], columns: Sequence[tuple[str, _Cell]]) -> list[list[Text]]:
    return [[Text(cell(osd), style=_style(osd)) for _, cell in columns] for osd in osds]


def screen(top: Top, *, width: int, height: int) -> Group:
    """What fits: remarks on up to half the screen, the slowest OSDs, the most useful columns."""
    chosen = _fitting(top.osds, width)
    remarks = _remarks(top)[: max(0, height // 2 - 1)]
    rows = max(1, height - 2 - len(remarks))  # heading and column heads
    hidden = len(top.osds) - rows
    heading = _heading(top) + (f", {hidden} not shown" if hidden > 0 else "")
    shown = drawn([head for head, _ in chosen], _cells(top.osds[:rows], chosen), wraps={})
    return Group(_one_line(heading, "bold", width), shown, *(_one_line(*remark, width) for remark in remarks))


def watch(console: Console, tops: Iterator[Top]) -> None:
    """Draw each as it comes, on the alternate screen, until Ctrl-C or a signal; then restore the terminal. SIGTERM and
    SIGHUP end it cleanly, too: a terminal left on the alternate screen looks broken."""

    def end(number: int, _previous: object) -> None:
        raise SystemExit(128 + number)

    signals = (signal.SIGTERM, signal.SIGHUP)
    with handled(signals, end), Live(console=console, screen=True, auto_refresh=False) as live:
        live.update(Text("looking at the OSDs …"), refresh=True)
        for top in tops:
            live.update(screen(top, width=console.width, height=console.height), refresh=True)


def _heading(top: Top) -> str:
    rate = sum(osd.operations_per_s or 0.0 for osd in top.osds)
    return f"{count_text(len(top.osds), 'OSD')}, {rate:.0f} operations/s; {', '.join(top.sources)}"


def _remarks(top: Top) -> list[tuple[str, str]]:
    reasons = [
        (f"{osd.daemon} {osd.suspicion.word}: {osd.suspicion.reason}", _style(osd)) for osd in top.osds if osd.suspicion
    ]
    return reasons + [(note, "yellow") for note in top.notes]


def _fitting(osds: Sequence[OsdPerformance], width: int) -> list[tuple[str, _Cell]]:
    widths = {head: max([len(head), *(len(cell(osd)) for osd in osds)]) for head, cell in _COLUMNS}
    left = [head for head, cell in _COLUMNS if any(cell(osd) for osd in osds) or head in ("OSD", "p99", "Suspect")]
    for head in _GO_FIRST:
        if sum(widths[column] + _GAP for column in left) <= width:
            break
        if head in left:
            left.remove(head)
    return [(head, cell) for head, cell in _COLUMNS if head in left]


def _one_line(text: str, style: str, width: int) -> Text:
    made = Text(clean(text), style=style, no_wrap=True)
    made.truncate(width, overflow="ellipsis")
    return made


def _style(osd: OsdPerformance) -> str:
    return _STYLE.get(osd.suspicion.word, "bold yellow") if osd.suspicion else ""
