"""The flags of ``plumbline probe``."""

from pathlib import Path

from plumbline.commands.shared import Commands, add_command, add_group

# https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


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
        epilog="Exit code: 0 every run succeeded, 1 one failed, 2 one was refused (a gate, a lock, the guard),"
        " 3 the configuration, the name or the storage path does not allow it, 130 stopped by Ctrl-C.",
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
