"""The flags of the commands that have many: ``plumbline probe``, ``why``, ``doctor``, ``report`` and ``capacity``."""

import argparse
from pathlib import Path

from plumbline.commands.shared import Commands, add_command, add_daemon, add_group, add_page, add_prometheus

# https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def add_questions(commands: Commands) -> None:
    """``why`` and ``doctor``, which ask the daemon and Prometheus."""
    _add_why(commands)
    doctor = add_command(
        commands,
        "doctor",
        "doctor.run",
        json="machine-readable, everything",
        help="show whether the installation is complete, and what mends what is missing",
        description="Ask the daemon, Prometheus and Ceph. Only reads. Exit code: 0 nothing is missing, 1 something is.",
    )
    add_daemon(doctor)
    add_prometheus(doctor)
    doctor.add_argument("--timeout", default="5s", metavar="TIME", help="of one question (5s)")


def _add_why(commands: Commands) -> None:
    why = add_command(
        commands,
        "why",
        "why.run",
        json="machine-readable, everything",
        help="show what is out of line on this node, the facts for and against it, and what to do first",
        description="Ask the running daemon and, if it is named, Prometheus. Only reads. Exit code: 0 nothing is out "
        "of line, 1 something is, 2 nobody could tell.",
    )
    why.add_argument("what", nargs="?", default="", metavar="WHAT", help="a layer, probe, OSD, disk or port (the node)")
    add_daemon(why)
    add_prometheus(why)
    why.add_argument("--timeout", default="5s", metavar="TIME", help="of one question (5s)")


def add_administrator(parser: argparse.ArgumentParser) -> None:
    """As whom ``ceph`` runs."""
    add = parser.add_argument
    add("--conf", metavar="FILE", help="Ceph's configuration file (Ceph's default)")
    add("--name", metavar="CLIENT", help="the administrator (client.admin)")
    add("--keyring", metavar="FILE", help="the administrator's key (Ceph's default)")


def add_probe(commands: Commands) -> None:
    actions = add_group(commands, "probe", "list this node's probes, or run some now")
    add_command(
        actions,
        "list",
        "probe_list.run",
        json="machine-readable",
        help="every probe with schedule, last result and next start",
        description="Every probe of the configuration, with its results from the daemon on the same storage path.",
    )
    run = add_command(
        actions,
        "run",
        "probe_run.run",
        json="machine-readable; progress goes to standard error",
        help="run probes now, beside the daemon or without one",
        description="Run probes one after the other, with the locks, gates and limits that also hold for the daemon,"
        " and show the figures beside the baseline. A canary is observed for a minute.",
        epilog="Exit code: 0 every run succeeded, 1 one failed, 2 wrong usage, such as an unknown name, 3 one was"
        " refused (a gate, a lock, the guard), or the configuration or the storage path does not allow it, 130 stopped"
        " by Ctrl-C.",
    )
    run.add_argument("names", nargs="+", metavar="NAME", help="as configured (with all its targets), or NAME/TARGET")
    text = "although the node or the disk is busy; guard, locks, quiet hours and the cluster's health still hold"
    run.add_argument("--force", action="store_true", help=text)
    _add_claim(actions)


def _add_claim(actions: Commands) -> None:
    claim = add_command(
        actions,
        "claim",
        "claim.run",
        host=False,
        help="in a pod of Kubernetes: measure a new volume from its claim to the first write",
        description="Make a pod of the PodTemplate NAME, whose one volume is claimed with it, note when the claim is"
        " bound, the container has started and its first write is on the volume, and delete the pod. The daemon of this"
        " node shows the result. See deploy/kubernetes/claims.",
        epilog="Exit code: 0 measured, 1 it failed (the daemon shows it), 3 it could not be tried, or its result not be"
        " kept, 130 stopped.",
    )
    add = claim.add_argument
    add("name", metavar="NAME", help="of the PodTemplate, and of the result: claim/NAME")
    add("--namespace", default="plumbline-claims", help="of the PodTemplate and the pods (plumbline-claims)")
    add("--interval", default="6h", metavar="TIME", help="between two runs, as scheduled (6h)")
    add("--timeout", default="5m", metavar="TIME", help="until the first write (5m)")
    text = "where the daemon of this node keeps its state (/var/lib/plumbline)"
    add("--storage.path", dest="storage_path", type=Path, default=Path("/var/lib/plumbline"), metavar="DIR", help=text)
    text = "with token and ca.crt (where Kubernetes mounts them)"
    add("--account", type=Path, default=Path(ACCOUNT), metavar="DIR", help=text)


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
        (
            "--lose",
            "WHAT",
            "host, rack (room …) or db (a database's disk): the one with most data; host=NAME; osd=osd.3,osd.4",
        ),
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
