"""``make bench``: prints what a scrape costs beside node_exporter, the exposition beside the stock one, and what the
disk latency histograms cost the disks.

The hosts: this one as it is; (as root) network namespaces of their own, one with three interfaces, where a scrape is
mostly the cost of one HTTP request, and one with many, where it is that of reading and of rendering; and a large one,
replayed, once with 60 OSDs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import large_host, scrape
from plumbline.collectors.registry import NAMES
from support.ports import free_port

# What node_exporter has too. Its own process metrics are off; ours stay on.
MATCHED = ("softnet", "link", "ethtool", "disk", "device")
OURS = Path(__file__).parents[2] / ".venv" / "bin" / "plumbline"
"""The daemon as `make run` installs it."""
PROBING = ("canary", "probe", "baseline")
PEER = ("softnet", "netdev", "netclass", "ethtool", "diskstats")


def main() -> int:
    """Exit code 0: measured. Nothing is judged here."""
    options = _parser().parse_args()
    if options.inside:
        _add_interfaces(options.inside)
        _compare(f"{options.inside} veth pairs", options.scrapes, _chosen(options), options.peer)
        return 0
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as folder:
        options.peer = scrape.node_exporter(Path(folder))
        if options.peer:
            _compare("this host", options.scrapes, _chosen(options), options.peer)
        if options.peer and os.geteuid() == 0:
            for pairs in options.pairs:
                _in_namespace(options, pairs)
        else:
            print("(without node_exporter or root, the comparisons in namespaces are left out)")
    if not options.scrape_only:
        large_host.main()
        subprocess.run([sys.executable, "-m", "bench.osds"], check=True)
        print("\nexposition", flush=True)
        subprocess.run([sys.executable, "-m", "bench.exposition"], check=True)
        subprocess.run([sys.executable, "-m", "bench.disk_latency"], check=True)
    return 0


def _chosen(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(each for each in NAMES if each not in PROBING) if options.all else MATCHED


def _compare(title: str, scrapes: int, chosen: tuple[str, ...], program: str) -> None:
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as folder:
        no_probes = Path(folder) / "plumbline.yaml"
        no_probes.write_text("probes: []\n")
        peer_port, port = free_port(), free_port()
        peer = scrape.Exporter(
            "node_exporter",
            [program, f"--web.listen-address=127.0.0.1:{peer_port}",
             "--web.disable-exporter-metrics", "--collector.disable-defaults", "--collector.netclass.netlink",
             *(f"--collector.{name}" for name in PEER)],
            peer_port,
        )  # fmt: skip
        ours = scrape.Exporter(
            "plumbline",
            [OURS, "serve", "--config.file", no_probes, "--storage.path", Path(folder, "state"),
             "--web.listen-address", f"127.0.0.1:{port}", *(f"--collector.{name}" for name in chosen),
             *(f"--no-collector.{name}" for name in NAMES if name not in chosen)],
            port,
        )  # fmt: skip
        what = "families that both have" if chosen == MATCHED else "of plumbline all that is not probing"
        host = ", ".join(f"{count} {kind}" for kind, count in _host().items())
        _print(f"{title} ({host}); {what}", *scrape.measure([peer, ours], scrapes, pause_s=0.02), scrapes)


def _print(title: str, peer: scrape.Figures, ours: scrape.Figures, scrapes: int) -> None:
    rows = [
        ("CPU a scrape", "ms", peer.cpu_s * 1e3, ours.cpu_s * 1e3),
        ("CPU a sample", "µs", peer.cpu_per_sample_s * 1e6, ours.cpu_per_sample_s * 1e6),
        ("wall a scrape", "ms", peer.wall_s * 1e3, ours.wall_s * 1e3),
        ("samples", "", peer.samples, ours.samples),
        ("on the wire", "B", peer.bytes_on_wire, ours.bytes_on_wire),
        ("RSS", "MiB", peer.rss_bytes / 2**20, ours.rss_bytes / 2**20),
        ("PSS", "MiB", peer.pss_bytes / 2**20, ours.pss_bytes / 2**20),
    ]
    print(f"\nscrape, {title}: medians of {scrapes} scrapes each, alternating")
    print(f"{'':16}{'node_exporter':>16}{'plumbline':>16}{'ratio':>8}")
    for name, unit, theirs, own in rows:
        shown = "{:.0f}" if unit in ("", "B") else "{:.3g}"
        print(
            f"{name:16}{f'{shown.format(theirs)} {unit}':>16}{f'{shown.format(own)} {unit}':>16}{own / theirs:>8.2f}",
            flush=True,
        )


def _in_namespace(options: argparse.Namespace, pairs: int) -> None:
    """Again in a network and mount namespace: /sys shows the interfaces of the namespace that mounts it."""
    again = [
        sys.executable,
        "-m",
        "bench",
        "--inside",
        str(pairs),
        "--scrapes",
        str(options.scrapes),
        "--peer",
        options.peer,
        *(["--all"] if options.all else []),
    ]
    subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", 'mount -t sysfs sysfs /sys && exec "$@"', "sh", *again],
        check=True,
    )


def _host() -> dict[str, int]:
    """What a scrape reads more of on a larger host, as both exporters see it."""
    links, disks = (len([*Path("/sys", folder).iterdir()]) for folder in ("class/net", "block"))
    return {"CPUs": os.cpu_count() or 0, "network interfaces": links, "block devices": disks}


def _add_interfaces(count: int) -> None:
    """``count`` veth pairs, up; they go away with the namespace."""
    commands = ["link set lo up"]
    for pair in range(count):
        commands += [f"link add a{pair} type veth peer name b{pair}", f"link set a{pair} up", f"link set b{pair} up"]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=__doc__)
    parser.add_argument("--scrapes", type=int, default=200, help="of each exporter (200)")
    parser.add_argument("--pairs", type=int, nargs="*", default=[1, 200], help="of veth, for each namespace (1 200)")
    parser.add_argument("--all", action="store_true", help="switch on all of plumbline's collectors but the probes'")
    parser.add_argument("--scrape-only", action="store_true", help="without the benchmarks that need no node_exporter")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--inside", type=int, default=0, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
