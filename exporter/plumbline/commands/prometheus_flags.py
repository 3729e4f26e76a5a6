"""The flags of the commands that read a Prometheus server alone: ``plumbline report`` and ``plumbline capacity``."""

from plumbline.commands.shared import Commands, add_command, add_group, add_page, add_prometheus


def add_capacity(commands: Commands) -> None:
    what_if = add_command(
        add_group(commands, "capacity", "what more hardware, growth or a loss would mean"),
        "what-if",
        "capacity.run",
        host=False,
        json="machine-readable, in base units",
        help="bytes, days to full, self-healing, operations and rebuild time after a change",
        description="Compute from the recording rules of a Prometheus server what a change would mean. Changes add up: "
        "hardware first, then pools, growth, and a loss last. Without any: a table of usual ones. No daemon need "
        "run here, and nothing is changed.",
        epilog="docs/what-if.md has the formulas, what they assume, and worked examples.",
    )
    add_prometheus(what_if, required=True)
    add = what_if.add_argument
    add("--cluster", metavar="NAME", help="the value of the label cluster, if that server has several clusters")
    for flag, form, text in (
        ("--add-hosts", "CLASS=N", "hosts as those of the class are; hdd=2x16x12TB: two of 16 disks of 12 TB"),
        ("--add-disks", "CLASS=N", "disks in the hosts that have least of the class; ssd=6x3.84TB: of that size"),
        ("--retire", "CLASS=CLASS", "a class is removed, and another takes its data"),
        ("--pool", "NAME=PROFILE", "a pool with so many copies (vms=2) or erasure coded (archive=4+2, =4+2@rack)"),
        ("--growth", "FACTOR", "growth times this; hdd=1.5: of one class"),
        ("--lose", "WHAT", "host, rack or db (a database's disk): the one with most data; host=NAME; osd=osd.3,osd.4"),
    ):
        add(flag, action="append", default=[], metavar=form, help=f"{text} (repeatable)")
    add("--timeout", default="60s", metavar="TIME", help="of one query (60s)")


def add_report(commands: Commands) -> None:
    report = add_command(
        commands,
        "report",
        "reporting.report_period",
        host=False,
        help="review a quarter: one HTML page, or Markdown, from Prometheus",
        description="Review a period from a Prometheus server, for the quarterly review: how much of the time"
        " each layer was within its baseline, which targets were not, what changed and when, capacity, headroom,"
        " findings, alerts, wear-out, upgrades. Days are whole days of UTC. No daemon need run here.",
        epilog="docs/report.md explains how each section is computed. For baselines only: plumbline baseline report.",
    )
    add_prometheus(report, required=True)
    add = report.add_argument
    add("--from", dest="first", metavar="DAY", help="the first day, such as 2026-08-01")
    add("--to", dest="last", metavar="DAY", help="the last day (yesterday)")
    add("--days", type=int, metavar="N", help="number of days, where --from or --to is left out (90)")
    text = "also this period, side by side: previous (as long, just before), or 2026-04-01..2026-06-30"
    add("--beside", metavar="PERIOD", help=text)
    add("--cluster", metavar="NAME", help="the value of the label cluster (all clusters)")
    add_page(report)
    add("--timeout", default="60s", metavar="TIME", help="of one query (60s)")
