"""``plumbline maintenance``: announce planned work on a host, so that nobody is woken for it.

Exit codes of ``start``: 0 in force and scraped, 1 refused, 3 in force and not scraped yet.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from plumbline.background.leases import CLUSTER, HOST, LONGEST_S, Lease, end, opened, read_leases, read_seen, start
from plumbline.commands.shared import duration, positive_duration, print_json, say, user_name
from plumbline.config.options import read_config, storage_path
from plumbline.core.files import OwnDirectory
from plumbline.errors import ConfigError

NOT_SCRAPED = 3
_LOOK_EVERY_S = 1.0


def run_start(options: argparse.Namespace) -> int:
    host, wait_s = _host(options), duration(options.wait, "--wait") or 0.0
    lasts_s = positive_duration(options.lasts, "--for")
    if lasts_s > LONGEST_S:
        raise ConfigError("--for", f"at most {LONGEST_S / 86400:.0f}d: start another one then", value=options.lasts)
    who = os.environ.get("SUDO_USER") or user_name()
    now = time.time()
    lease = Lease(host, options.why, who[:64], now, now + lasts_s)
    with opened(_storage(options)) as own:
        start(own, lease)
        say(f"maintenance of {lease.text}")
        if _scraped(own, lease, wait_s):
            say("a scrape has seen it: Prometheus remembers it, also while the host is off")
            return 0
    say(
        f"no scrape has seen it within {options.wait}: until one has, the host is reported as always"
        " (plumbline maintenance list)"
    )
    return NOT_SCRAPED


def run_end(options: argparse.Namespace) -> int:
    host = _host(options)
    with opened(_storage(options)) as own:
        end(own, host, time.time())
    say(f"maintenance of {host or 'the cluster'} has ended")
    return 0


def run_list(options: argparse.Namespace) -> int:
    now = time.time()
    with opened(_storage(options)) as own:
        leases, seen = read_leases(own, now).in_force(now), read_seen(own)
    if options.json:
        print_json([_row(lease, seen) for lease in leases])
        return 0
    for lease in leases:
        scraped = "scraped" if _key(lease) in seen else "not scraped yet"
        say(f"{lease.text} ({scraped})")
    if not leases:
        say("no maintenance was started here")
    return 0


def _row(lease: Lease, seen: Iterable[tuple[str, float]]) -> dict[str, object]:
    return {
        "host": lease.host or None,
        "why": lease.why,
        "who": lease.who,
        "since": lease.since_ts,
        "until": lease.until_ts,
        "scraped": _key(lease) in seen,
    }


def _key(lease: Lease) -> tuple[str, float]:
    return lease.host, lease.until_ts


def _scraped(own: OwnDirectory, lease: Lease, wait_s: float, sleep: Callable[[float], None] = time.sleep) -> bool:
    deadline = time.monotonic() + wait_s
    while _key(lease) not in read_seen(own):
        if time.monotonic() >= deadline:
            return False
        sleep(_LOOK_EVERY_S)
    return True


def _storage(options: argparse.Namespace) -> Path:
    config = read_config(options.config_file)
    return storage_path(options.storage_path, config, os.environ)


def _host(options: argparse.Namespace) -> str:
    """The host of the flags; :data:`CLUSTER` for all."""
    if (options.host is None) != options.cluster:
        raise ConfigError("HOST", "name one host, or --cluster for all of them")
    if options.cluster:
        return CLUSTER
    if not HOST.fullmatch(options.host):
        raise ConfigError("HOST", "not a name of a host", value=options.host)
    return str(options.host)
