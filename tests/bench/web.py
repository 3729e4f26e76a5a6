"""What TLS and a password cost a scrape: plumbline and node_exporter, each with and without, with the same web
configuration file, over a kept connection and over a new one each time. ``python -m bench.web``.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

import bcrypt

from bench import scrape
from bench.__main__ import MATCHED, OURS, PEER
from plumbline.collectors.registry import NAMES
from support.certificates import make_certificates
from support.ports import free_port

PASSWORD = "of the benchmark"
COST = 10
"""As the documentation of the format has it."""


def main() -> int:
    """Prints; judges nothing."""
    scrapes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as folder:
        peer = scrape.node_exporter(Path(folder))
        if peer is None:
            return 1
        for anew in (False, True):
            place = Path(folder) / str(anew)
            figures = scrape.measure(_exporters(place, peer, anew=anew), scrapes, pause_s=0.02)
            _print("a new connection each time" if anew else "a kept connection", scrapes, figures)
    return 0


def _exporters(folder: Path, program: str, *, anew: bool) -> list[scrape.Exporter]:
    certificates = make_certificates(folder)
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(COST)).decode()
    web, quiet = folder / "web.yaml", folder / "plumbline.yaml"
    web.touch(0o600)  # plumbline refuses one that others may read
    web.write_text(
        "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
        f"basic_auth_users: {{prometheus: {hashed}}}\n"
    )
    quiet.write_text("probes: []\n")
    context = certificates.client()
    context.check_hostname = False
    given = {"Authorization": "Basic " + base64.b64encode(f"prometheus:{PASSWORD}".encode()).decode()}
    found = []
    for guarded in (False, True):
        flag = [f"--web.config.file={web}"] if guarded else []
        peer_port, port = free_port(), free_port()
        peer = [program, f"--web.listen-address=127.0.0.1:{peer_port}", *flag,
                "--web.disable-exporter-metrics", "--collector.disable-defaults", "--collector.netclass.netlink",
                *(f"--collector.{name}" for name in PEER)]  # fmt: skip
        ours = [OURS, "serve", "--config.file", quiet, "--storage.path", folder / str(guarded), *flag,
                f"--web.listen-address=127.0.0.1:{port}", *(f"--collector.{name}" for name in MATCHED),
                *(f"--no-collector.{name}" for name in NAMES if name not in MATCHED)]  # fmt: skip
        more = {"tls": context, "more_headers": given} if guarded else {}
        word = "TLS and password" if guarded else "plain"
        found += [
            scrape.Exporter(f"node_exporter, {word}", peer, peer_port, anew=anew, **more),  # type: ignore[arg-type]
            scrape.Exporter(f"plumbline, {word}", ours, port, anew=anew, **more),  # type: ignore[arg-type]
        ]
    return found


def _print(title: str, scrapes: int, figures: list[scrape.Figures]) -> None:
    print(f"\n{title}: medians of {scrapes} scrapes each, alternating")
    plain = {each.name.partition(",")[0]: each for each in figures[:2]}
    for each in figures:
        base = plain[each.name.partition(",")[0]]
        print(
            f"{each.name:32}{each.cpu_s * 1e3:8.3g} ms CPU {each.cpu_s / base.cpu_s:6.2f} of plain"
            f"{each.wall_s * 1e3:9.3g} ms wall {each.wall_s / base.wall_s:6.2f} of plain"
            f"{each.rss_bytes / 2**20:7.0f} MiB"
        )
    print(f"plumbline / node_exporter, both guarded: CPU {figures[3].cpu_s / figures[2].cpu_s:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
