"""The flags of ``plumbline fleet``, and of what it runs on the nodes: ``plumbline baseline state`` and ``install``."""

from __future__ import annotations

from pathlib import Path

from plumbline.commands.shared import Commands, Parser, add_command, add_group

NODE_CONFIG, NODE_STORAGE = "/etc/plumbline/plumbline.yaml", "/var/lib/plumbline"


def add_for_fleet(actions: Commands) -> None:
    state = add_command(
        actions,
        "state",
        "fleet_node.run_state",
        help="what this node is and which baselines it has, as JSON; for `plumbline fleet`",
        description="Print as JSON: fingerprint, model, whether the cluster is fit for a recording, and the baselines "
        "in the storage path.",
    )
    state.add_argument("--text", action="store_true", help="with the text of what was recorded and is not accepted yet")
    add_command(
        actions,
        "install",
        "fleet_node.run_install",
        help="put an accepted baseline in place, from standard input; for `plumbline fleet`",
        description="Read an accepted baseline and its signature from standard input, check both, and put them into "
        "the storage path. The daemon takes them by itself.",
        epilog="Exit code: 0 in place, 1 refused; then the old one stays.",
    )


def add_fleet(commands: Commands) -> None:
    actions = add_group(commands, "fleet", "baselines of many nodes: record in waves, review, accept, push")
    _add_record(actions)
    review = _command(
        actions,
        "review",
        "what was recorded, node beside class, before it is accepted",
        "Show who is out of line with its class, and the figures of each class. Nothing is asked of the nodes.",
        "Exit code: 0 all are in line, 1 some node is not, 3 nothing could be compared.",
        json="machine-readable, every figure of every node",
    )
    review.add_argument("--node", action="append", default=[], metavar="NAME", help="all figures of this node")
    accept = _command(
        actions,
        "accept",
        "sign what was recorded, and compute the figures of its classes",
        "Sign each file with an SSH key (ssh-keygen -Y sign) and keep it as accepted, with who, when and on what. "
        "Nodes out of line are refused.",
        "Exit code: 0 accepted, 1 refused.",
    )
    add = accept.add_argument
    add("--key", type=Path, required=True, metavar="FILE", help="an SSH key; a public one if the agent has the private")
    add("--by", metavar="NAME", help="who accepts (this user, on this host)")
    add("--without", action="append", default=[], metavar="NODE", help="leave it recorded, not accepted (repeatable)")
    add("--although", action="append", default=[], metavar="NODE", help="although it is out of line (repeatable)")
    push = _command(
        actions,
        "push",
        "put accepted baselines in place on the nodes",
        "Each node gets its own; one that is new, or has other disks than at acceptance, its class's. What is in place "
        "already stays.",
        "Exit code: 0 every node has one, 1 some node does not.",
    )
    status = _command(
        actions,
        "status",
        "each node: recorded, accepted, in place, changed since",
        "Ask the nodes what they are and which baselines they have.",
        "Exit code: 0 every node has its own accepted baseline and is as it was then, 1 some node does not.",
        json="machine-readable",
    )
    for parser in (push, status):
        _add_nodes(parser)


def _command(actions: Commands, name: str, text: str, description: str, epilog: str, *, json: str = "") -> Parser:
    parser = add_command(
        actions,
        name,
        f"{'fleet_status' if name in {'push', 'status'} else 'fleet'}.run_{name}",
        host=False,
        json=json,
        help=text,
        description=description,
        epilog=f"{epilog} docs/fleet.md has the whole way.",
    )
    text = "where this fleet's files are kept on this host (./plumbline-fleet)"
    parser.add_argument("--dir", type=Path, default=Path("plumbline-fleet"), metavar="DIR", help=text)
    return parser


def _add_record(actions: Commands) -> None:
    record = _command(
        actions,
        "record",
        "record the nodes that need it, in waves",
        "Record every node that has no baseline, or is no longer what was recorded. Never two nodes of one failure "
        "domain at once, never more than a share of a class. Waits for healthy clusters between waves. After an "
        "interruption the next one goes on.",
        "Exit code: 0 all are recorded, 1 some node is not, 130 stopped by Ctrl-C or SIGTERM.",
    )
    _add_nodes(record)
    add = record.add_argument
    add("--share", type=float, default=0.1, metavar="S", help="of a class at once, at least one node (0.1)")
    add("--at-once", type=int, default=8, metavar="N", help="nodes at once in all (8)")
    text = "the variable that names a node's failure domain (plumbline_domain, domain)"
    add("--domain-var", default="", metavar="NAME", help=text)
    text = "failure domains are the racks of CRUSH: the page of a daemon that queries the cluster's map"
    add("--racks-from", metavar="URL", help=text)
    text = "its password, token or certificates, in promtool's format"
    add("--racks.http.config.file", dest="racks_http_config_file", type=Path, metavar="FILE", help=text)
    add("--node", action="append", default=[], metavar="NAME", help="only this node (repeatable)")
    add("--all", dest="everything", action="store_true", help="also nodes that are as they were recorded")
    add("--plan", action="store_true", help="show who would be recorded, why and in which wave; measure nothing")
    add("--restart", action="store_true", help="forget an interrupted recording, and plan anew")
    for flag, form, text in (
        ("--runs", "N", "runs of each probe (5)"),
        ("--run-duration", "TIME", "length of one run"),
    ):
        add(flag, metavar=form, help=f"{text}; as of `plumbline baseline record`")
    text = "leave this probe out on every node (repeatable)"
    add("--without", action="append", default=[], metavar="PROBE", help=text)
    add("--node-timeout", default="4h", metavar="TIME", help="for one node (4h)")
    add("--health-timeout", default="1h", metavar="TIME", help="for a cluster to become fit (1h)")


def _add_nodes(parser: Parser) -> None:
    add = parser.add_argument
    text = "the nodes: a list, or an inventory of Ansible (INI, YAML, or what ansible-inventory --list prints)"
    add("--inventory", type=Path, required=True, metavar="FILE", help=text)
    add("--group", default="", metavar="NAME", help="only this group of the inventory")
    add("--ssh-config", type=Path, metavar="FILE", help="for ssh -F")
    text = "what runs Plumbline on a node (plumbline); docs/fleet.md has the words for its systemd unit"
    add("--node-command", default="plumbline", metavar="WORDS", help=text)
    add("--node-config", default=NODE_CONFIG, metavar="FILE", help=f"the configuration on a node ({NODE_CONFIG})")
    add("--node-storage", default=NODE_STORAGE, metavar="DIR", help=f"the storage path on a node ({NODE_STORAGE})")
