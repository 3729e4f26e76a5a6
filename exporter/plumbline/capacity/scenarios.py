"""What a planner may ask, as it is written on the command line, and as the scenarios of the report: changes with names.

``hdd=2`` is two hosts as those of the class are, ``hdd=2x16x12TB`` two of 16 disks of 12 TB. Sizes are decimal (TB), as
on disks' labels, or binary (TiB). Each parser raises :class:`~plumbline.errors.ConfigError` with the flag.
"""

import re
from collections.abc import Callable

from msgspec import Struct

from plumbline.capacity import changes
from plumbline.capacity.model import HOST, OSD, Facts
from plumbline.errors import ConfigError

Change = Callable[[Facts], Facts]
DB = "db"
_BUCKET_TYPE = r"[A-Za-z0-9_-]+"
MOST = 10_000  # hosts or disks in one change: more is a slip of the finger
MOST_GROWTH = 1000.0
_UNITS = {"GB": 10**9, "TB": 10**12, "PB": 10**15, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_SIZE = r"(?P<size>\d+(?:\.\d+)?)(?P<unit>[GTP]i?B)"


class Scenario(Struct, frozen=True):
    """One or more changes in a row. ``name`` says which, in words."""

    name: str
    changes: tuple[Change, ...]

    def of(self, facts: Facts) -> Facts:
        for change in self.changes:
            facts = change(facts)
        return facts


def hosts(text: str) -> Scenario:
    """``CLASS=N``, ``CLASS=NxDISKS`` or ``CLASS=NxDISKSxSIZE``."""
    flag = "--add-hosts"
    match = _matched(
        flag, text, rf"(?P<class>[^=]+)=(?P<n>\d+)(?:x(?P<disks>\d+)(?:x{_SIZE})?)?", "hdd=2 or hdd=2x16x12TB"
    )
    number, disks = _count(flag, text, match["n"]), match["disks"] and _count(flag, text, match["disks"])
    device_class, size = match["class"], _size(flag, text, match)
    more = f" with {disks} disks" if disks else ""
    name = f"{number} more {device_class} host{'s' * (number != 1)}{more}{_of_size(match)}"
    return Scenario(
        name, (lambda facts: changes.with_hosts(facts, device_class, number, disks=disks or None, size=size),)
    )


def disks(text: str) -> Scenario:
    """``CLASS=N`` or ``CLASS=NxSIZE``."""
    flag = "--add-disks"
    match = _matched(flag, text, rf"(?P<class>[^=]+)=(?P<n>\d+)(?:x{_SIZE})?", "ssd=6 or ssd=6x3.84TB")
    number, device_class, size = _count(flag, text, match["n"]), match["class"], _size(flag, text, match)
    name = f"{number} more {device_class} disk{'s' * (number != 1)}{_of_size(match)}"
    return Scenario(name, (lambda facts: changes.with_disks(facts, device_class, number, size=size),))


def retire(text: str) -> Scenario:
    """``CLASS=TARGET``: the target class takes its data."""
    match = _matched("--retire", text, r"(?P<class>[^=]+)=(?P<target>[^=]+)", "hdd=ssd: ssd takes what hdd holds")
    gone, target = match["class"], match["target"]
    return Scenario(f"{gone} retired, {target} takes its data", (lambda facts: changes.retired(facts, gone, target),))


def growth(text: str) -> Scenario:
    """``F`` or ``CLASS=F``."""
    match = _matched("--growth", text, r"(?:(?P<class>[^=]+)=)?(?P<n>\d+(?:\.\d+)?)", "2 or hdd=1.5")
    factor, device_class = float(match["n"]), match["class"] or None
    if factor > MOST_GROWTH:
        raise ConfigError("--growth", f"at most {MOST_GROWTH:,.0f}", value=text)
    of = f" of {device_class}" if device_class else ""
    return Scenario(f"growth{of} × {match['n']}", (lambda facts: changes.grown(facts, factor, device_class),))


def pool(text: str) -> Scenario:
    """``NAME=COPIES`` or ``NAME=K+M``, with ``@DOMAIN`` for another failure domain."""
    flag, example = "--pool", "vms=2, archive=4+2 or archive=4+2@rack"
    pattern = rf"(?P<name>.+)=(?P<k>\d{{1,9}})(?:\+(?P<m>\d{{1,9}}))?(?:@(?P<domain>{_BUCKET_TYPE}))?"
    match = _matched(flag, text, pattern, example)
    name, data, parity, domain = match["name"], int(match["k"]), int(match["m"] or 0), match["domain"] or None
    if not 1 <= data <= 32 or parity > 32 or (match["m"] and not parity):
        raise ConfigError(flag, f"from 1 to 32 copies or chunks; such as {example}", value=text)
    how = f"{data}+{parity}" if parity else f"{data} cop{'ies' if data > 1 else 'y'}"
    where = f" over {domain}s" if domain else ""
    change = lambda facts: changes.with_profile(facts, name, data=data, parity=parity, domain=domain)  # noqa: E731
    return Scenario(f"pool {name} with {how}{where}", (change,))


def lose(text: str) -> Scenario:
    """``host``, ``rack``, ``room`` …, ``db`` (the one with most data), or with ``=NAME``; ``osd=osd.3,osd.4``."""
    example = "host, host=stor07, rack=r1, db=stor07/sdb or osd=osd.3,osd.4"
    match = _matched("--lose", text, rf"(?P<what>{_BUCKET_TYPE})(?:=(?P<name>.+))?", example)
    what, name = match["what"], match["name"] or ""
    if what == OSD and not name:
        raise ConfigError("--lose", f"which OSDs? Such as {example}", value=text)
    return lost(what, name)


def standard(facts: Facts) -> tuple[Scenario, ...]:
    """What a review shows: more growth, one more host of each class, each kind of loss that the cluster can have."""
    scenarios = [growth("2")]
    scenarios += [hosts(f"{name}=1") for name in facts.classes if name and any(osd.host for osd in facts.of(name))]
    if len({osd.host for osd in facts.osds}) > 1:
        scenarios.append(lost(HOST))
    for kind in facts.bucket_types:
        if len({osd.domain(kind) for osd in facts.osds} - {""}) > 1:
            scenarios.append(lost(kind))
    if any(osd.db for osd in facts.osds):
        scenarios.append(lost(DB))
    return tuple(scenarios)


def lost(what: str, name: str = "") -> Scenario:
    title = "database disk" if what == DB else what
    words = name if what == OSD else f"{title} {name}" if name else f"the {title} with most data"
    return Scenario(f"{words} lost", (lambda facts: changes.lost(facts, changes.chosen(facts, what, name)),))


def _matched(flag: str, text: str, pattern: str, example: str) -> dict[str, str]:
    match = re.fullmatch(pattern, text)
    if match is None:
        raise ConfigError(flag, f"expected something like {example}", value=text)
    return match.groupdict(default="")


def _count(flag: str, text: str, number: str) -> int:
    if len(number) > 9 or not 1 <= int(number) <= MOST:
        raise ConfigError(flag, f"from 1 to {MOST:,}", value=text)
    return int(number)


def _size(flag: str, text: str, match: dict[str, str]) -> float | None:
    if not match["size"]:
        return None
    if not 0 < (size := float(match["size"]) * _UNITS[match["unit"]]) <= _UNITS["PB"]:
        raise ConfigError(flag, "a disk has more than 0 and at most 1 PB", value=text)
    return size


def _of_size(match: dict[str, str]) -> str:
    return f" of {match['size']} {match['unit']}" if match["size"] else ""
