"""``plumbline ceph top --clients``: who loads this host's OSDs, with the cluster's names where it tells them."""

import argparse
import os
from collections.abc import Iterable, Mapping

from msgspec import Struct
from rich.console import Console

from plumbline.ceph_top.clients import ENOUGH, Clients, Load, watch_clients
from plumbline.commands.ceph.admin import Cluster, administrator
from plumbline.commands.shared import show
from plumbline.config.options import read_config
from plumbline.core.console import line, table
from plumbline.core.units import count_text
from plumbline.errors import PlumblineError, UnknownName
from plumbline.sources.ceph.osd_clients import Owner
from plumbline.sources.ceph.osds import osds_here

_SHOWN = 10
_HOSTS = 3
_NAMED = 5
"""Images that are asked their name: each costs a command."""


class _Pool(Struct, frozen=True):
    poolnum: int
    poolname: str


class _Image(Struct, frozen=True):
    name: str


class Names(Struct, frozen=True):
    """``pools`` by number, ``images`` by owner; ``why`` there are none."""

    pools: Mapping[int, str] = {}
    images: Mapping[Owner, str] = {}
    why: str = ""

    def of(self, owner: Owner) -> str:
        """``image vol-7 of pool vms``."""
        if owner.kind == "image" and owner in self.images:
            what = f"image {self.images[owner]}"
        elif owner.kind == "objects":
            what = f"namespace {owner.name}" if owner.name else "objects"
        else:
            what = f"{_WORDS[owner.kind]} {owner.name}"
        return f"{what} of pool {self.pools.get(owner.pool, owner.pool)}"


_WORDS = {"image": "image with the id", "bucket": "bucket with the marker", "file": "file with the inode"}


def run(options: argparse.Namespace, interval_s: float) -> int:
    sockets = osds_here(read_config(options.config_file).ceph.admin_sockets)
    if options.clients and options.clients not in sockets:
        raise UnknownName(f"no OSD {options.clients} here; there are: {', '.join(sorted(sockets))}")
    chosen = {osd: path for osd, path in sockets.items() if options.clients in ("", osd)}
    clients = watch_clients(chosen, interval_s=interval_s)
    cluster = Cluster(administrator(options), os.environ)
    names = names_of(clients.loads[:_NAMED], cluster)
    data = {
        "osds": clients.osds,
        "interval_s": clients.interval_s,
        "operations": clients.operations,
        "stands_out": clients.culprit and names.of(clients.culprit.owner),
        "at_least": clients.at_least,
        "loads": [{"what": names.of(load.owner), "load": load} for load in clients.loads],
        "notes": [*clients.notes, *filter(None, (names.why,))],
    }
    show(options, data, lambda console: print_clients(console, clients, names))
    return 0


def names_of(loads: Iterable[Load], cluster: Cluster) -> Names:
    """What the cluster tells its administrator of these pools and images."""
    try:
        pools = {pool.poolnum: pool.poolname for pool in cluster.ask(tuple[_Pool, ...], "ceph", "osd", "lspools")}
    except PlumblineError as error:
        return Names(why=f"names of pools and images are unknown: {error}")
    images: dict[Owner, str] = {}
    why = ""
    for load in loads:
        owner = load.owner
        if owner.kind == "image" and owner.pool in pools:
            words = ("--pool", pools[owner.pool], "--image-id", owner.name)
            try:
                images[owner] = cluster.ask(_Image, "rbd", "info", *words).name
            except PlumblineError as error:  # in a namespace, or of another pool where the data has a pool of its own
                why = f"the name of an image is unknown: {error}"
    return Names(pools, images, why)


def print_clients(console: Console, clients: Clients, names: Names) -> None:
    seen = f"{count_text(clients.operations, 'operation')} in flight within {clients.interval_s:.1f} s"
    line(console, f"{', '.join(clients.osds)}: {seen}", "bold")
    rows = [
        (f"{load.share:.0%}", str(load.operations), f"{load.writes:.0%}", names.of(load.owner), _hosts(load))
        for load in clients.loads[:_SHOWN]
    ]
    table(console, ("Share", "Operations", "Writes", "What", "Clients"), rows)
    if clients.culprit:
        load = clients.culprit
        made = f"{load.share:.0%} of the OSDs' working time, {clients.at_least:.0%} at least"
        line(console, f"{names.of(load.owner)} loads them: {made}; by {_hosts(load)}", "bold yellow")
    elif clients.operations < ENOUGH:
        line(console, f"too few operations to tell: {ENOUGH} are needed; look for longer: --interval 60s")
    else:
        line(console, "nobody stands out")
    for note in (*clients.notes, *filter(None, (names.why,))):
        line(console, note, "yellow")


def _hosts(load: Load) -> str:
    more = len(load.hosts) - _HOSTS
    return ", ".join(load.hosts[:_HOSTS]) + (f" and {more} more" if more > 0 else "")
