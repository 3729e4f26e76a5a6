"""``make demo`` and ``make demo-slow``. Ctrl-C or SIGTERM stops everything and leaves only the recorded baseline."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from deploy.demo import api, slowdown, stack
from deploy.demo.processes import DemoError, Processes, program
from deploy.demo.story import Story
from deploy.demo.webhook import Webhook

from plumbline.core.roots import Roots
from plumbline.sources.disk.block import device_below

STORAGE = Path(".demo")
CONFIG = Path(__file__).with_name("plumbline.yaml")
WORTH_A_LOOK = {
    "canary latency": "plumbline:canary_latency:seconds",
    "against the baseline": "plumbline:degradation:ratio",
    "NIC drops by cause": "rate(plumbline_nic_drops_total[1m])",
    "disk latency": "rate(plumbline_disk_io_seconds_total[1m]) / rate(plumbline_disk_ios_total[1m])",
}


def main() -> int:
    """Exit code: 0 stopped by the user or the cycle was seen; 1 something did not work, said in one line."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="plumbline-demo-"))
    processes, webhook = Processes(folder), Webhook()
    try:
        return _demo(options, processes, webhook)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"demo: lost contact with one of its parts: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        # a second Ctrl-C must not interrupt the cleaning up
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        processes.stop()
        webhook.stop()
        shutil.rmtree(folder, ignore_errors=True)
        print("stopped; nothing is left but the recorded baseline in", options.storage)


def _demo(options: argparse.Namespace, processes: Processes, webhook: Webhook) -> int:
    for name, package in (("prometheus", "prometheus"), ("prometheus-alertmanager", "prometheus-alertmanager")):
        program(name, package, name.removeprefix("prometheus-"))
    storage: Path = options.storage.absolute()
    storage.mkdir(parents=True, exist_ok=True, mode=0o750)
    slow = _slowdown(options, processes, storage) if options.slow else None
    stack.record_baseline(processes, storage, CONFIG, fresh=options.fresh, quick=options.quick)
    running = stack.start(processes, webhook, storage, CONFIG)
    _introduce(running)
    if slow is not None:
        Story(running, slow, time.monotonic() + 60 * options.minutes, Path("/proc")).run()
    if not options.exit:
        print("Ctrl-C stops it all.", flush=True)
        _watch(running)
    return 0


def _slowdown(options: argparse.Namespace, processes: Processes, storage: Path) -> slowdown.Slowdown:
    """Said before the minute of recording, so that nobody waits for a demo this host can't do."""
    roots = Roots.under(Path("/"))
    device = device_below(storage, roots)
    disk = None
    if device is not None:
        disk = slowdown.Disk(device.name, (roots.sys / "block" / device.name / "dev").read_text().strip())
    return slowdown.choose(
        disk=disk,
        processes=processes,
        directory=storage / "load",
        duration_s=60 * options.minutes,
        proc=roots.proc,
    )


def _introduce(running: stack.Stack) -> None:
    print(f"\n  status page   {running.daemon_url}/\n  metrics       {running.daemon_url}/metrics")
    print(f"  Prometheus    {running.prometheus.page('alerts')}")
    print(f"  Alertmanager  {api.alertmanager_page(running.alertmanager_url)}\n")
    for title, expression in WORTH_A_LOOK.items():
        print(f"  {title:20}  {running.prometheus.graph(expression)}")
    print(flush=True)


def _watch(running: stack.Stack) -> None:
    """Tell alerts as they change and arrive, until interrupted or something dies."""
    states: dict[str, str] = {}
    while True:
        running.processes.check()
        now = running.prometheus.alert_states()
        for name in sorted(states.keys() | now.keys()):
            before, after = states.get(name, "inactive"), now.get(name, "inactive")
            if before != after:
                print(f"{time.strftime('%H:%M:%S')}  {name}: {before} → {after}", flush=True)
        states = now
        for notification in running.webhook.drain():
            print(f"{time.strftime('%H:%M:%S')}  {notification.line}", flush=True)
        time.sleep(1)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make demo ARGS=…", description=__doc__)
    parser.add_argument(
        "--slow", action="store_true", help="slow the canary's disk and follow the alert (make demo-slow)"
    )
    parser.add_argument("--exit", action="store_true", help="end after the cycle (with --slow) or once all is up")
    parser.add_argument("--minutes", type=int, default=10, help="give up on the cycle after so long (10)")
    parser.add_argument("--fresh", action="store_true", help="record the baseline anew")
    parser.add_argument("--quick", action="store_true", help="record in a third of the time: fewer, shorter runs")
    parser.add_argument("--storage", type=Path, default=STORAGE, help="baseline and canary file (.demo)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
