"""What native histograms save a Prometheus: two of them scrape the same storage hosts, one in each form; without rules.

``PYTHONPATH=tests:. python -m scale.native`` with Prometheus 3.5 first in ``PATH``; five minutes.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from support.page_server import serving
from support.played_host import played
from support.prometheus import Prometheus, prometheus
from support.storage_host import storage_host

HOSTS = 20
SCRAPE_S = 5
SETTLE_S = 240
LOOKS = 12
"""One a scrape: garbage comes and goes, so of the heap the least counts, of what is resident the mean."""


def main() -> int:
    """Print a line for each form."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="n-")))
        host, rules = folder / "h", folder / "rules"
        host.mkdir()
        rules.mkdir()
        page, began = storage_host(host), time.time()
        address = stack.enter_context(serving(lambda _path: played(page, time.time() - began, time.time()).encode()))
        servers: dict[str, Prometheus] = {}
        for form in ("classic", "native"):
            targets = [
                {"targets": [address], "labels": {"cluster": "large", "instance": f"stor{number:03}"}}
                for number in range(HOSTS)
            ]
            job: dict[str, object] = {"job_name": "plumbline", "static_configs": targets}
            if form == "native":
                job["convert_classic_histograms_to_nhcb"] = True
            (folder / form).mkdir()
            servers[form] = stack.enter_context(
                prometheus(
                    folder / form, interval_s=SCRAPE_S, rules=rules, scrapes=[job], features=["native-histograms"]
                )
            )
        time.sleep(SETTLE_S)
        looks: dict[str, list[tuple[float, float]]] = {form: [] for form in servers}
        for _ in range(LOOKS):
            time.sleep(SCRAPE_S)
            for form, server in servers.items():
                looks[form].append(_memory(server))
        for form, server in servers.items():
            series = server.query('count({job="plumbline"})')[0][1]
            log = sum(
                file.stat().st_size for file in (folder / form / "prometheus" / "wal").iterdir() if file.is_file()
            )
            heap = min(heap for heap, _ in looks[form]) / 2**20
            resident = sum(resident for _, resident in looks[form]) / LOOKS / 2**20
            print(
                f"{form}: {series:.0f} series, {heap:.0f} MiB heap, {resident:.0f} MiB resident, {log / 1e6:.1f} MB log"
            )
    return 0


def _memory(server: Prometheus) -> tuple[float, float]:
    """Bytes on Prometheus' heap, and resident."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    names = ("go_memstats_heap_alloc_bytes", "process_resident_memory_bytes")
    heap, resident = (float(re.findall(rf"^{name} (\S+)$", text, re.MULTILINE)[0]) for name in names)
    return heap, resident


if __name__ == "__main__":
    sys.exit(main())
