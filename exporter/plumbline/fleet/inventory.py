"""The nodes of a fleet: a plain list, or an inventory of Ansible (INI, YAML, or what ``ansible-inventory`` prints).

A plain list has a node a line, with what is known about it::

    # racks are failure domains
    stor01.example  role=hdd  domain=rack1
    stor02.example  role=hdd  domain=rack2  ansible_host=192.0.2.2

``model`` and ``role`` make the class; without ``model`` the node says what it is. ``class`` names the class itself.
``plumbline_class``, ``plumbline_role``, ``plumbline_model`` and ``plumbline_domain`` mean the same, as an inventory may
use the short names for something else; they count first. Ansible's ``ansible_host``, ``ansible_port`` and
``ansible_user`` say how ssh reaches the node. Files of ``group_vars`` and ``host_vars`` are not read: print them with
``ansible-inventory --list``.
"""

import re
import shlex
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import count
from math import prod
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from plumbline.config.yaml import read_text, read_yaml
from plumbline.core.foreign import Limits, parse_json
from plumbline.errors import ConfigError, ParseError

MAX_BYTES = 16 << 20  # a thousand hosts have some 100 kB; of what `ansible-inventory` prints 2 MB
_MOST_HOSTS, _MOST_RANGES = 100_000, 8  # the hosts of all lines together
_LIMITS = Limits(MAX_BYTES, max_values=2_000_000)
# The name becomes an argument of ssh and a file's name; an address may have colons
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_ADDRESS = re.compile(r"[A-Za-z0-9_:\[][A-Za-z0-9_.:%\[\]-]{0,252}")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_RANGE = re.compile(r"\[([0-9]{1,6}):([0-9]{1,6})\]")
_SECTION = re.compile(r"\[([^\]:]+)(?::(vars|children))?\]")
_QUOTING, _LONGEST_LINE = re.compile(r"[\"'\\#]"), 10_000
_MARK, _ALL = "_meta", "all"
_OURS, _ANSIBLES = ("class", "model", "role", "domain"), ("ansible_host", "ansible_port", "ansible_user")


class Host(Struct, frozen=True):
    """A node as the inventory has it; what is unknown is empty or 0."""

    name: str
    address: str = ""
    port: int = 0
    user: str = ""
    fleet_class: str = ""
    model: str = ""
    role: str = ""
    domain: str = ""


@dataclass(slots=True)
class _Group:
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)


def read_inventory(path: Path, *, group: str = "", domain_var: str = "") -> tuple[Host, ...]:
    """As :func:`parse_inventory`, for a file."""
    return parse_inventory(read_text(path, max_bytes=MAX_BYTES), where=str(path), group=group, domain_var=domain_var)


def parse_inventory(text: str, *, where: str, group: str = "", domain_var: str = "") -> tuple[Host, ...]:
    """The nodes, in the order of the file. ``group``: only its nodes; ``domain_var``: the variable that names the
    failure domain. Raises :class:`ConfigError`."""
    groups = _groups_of_yaml(text, where) if _is_yaml(text) else _groups_of_lines(text, where)
    if group and group not in groups:
        known = ", ".join(sorted(name for name in groups if name != "all"))
        raise ConfigError(where, f"has no such group; it has: {known or 'none'}", key="--group", value=group)
    variables = _flat(groups, group or _ALL, domain_var, where)
    if not variables:
        raise ConfigError(where, "names no host; write one a line")
    return tuple(_host(name, known, where, domain_var) for name, known in variables.items())


def _is_yaml(text: str) -> bool:
    """JSON begins with a brace; YAML's first line of content is a key alone, which no line of a list is."""
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    first = next(lines, "")
    return first.startswith(("{", "---")) or re.fullmatch(r"[^\s\[=]+:\s*(#.*)?", first) is not None


# -- a list, or Ansible's INI


def _groups_of_lines(text: str, where: str) -> dict[str, _Group]:
    groups: dict[str, _Group] = {"all": _Group()}
    name, kind = _ALL, ""
    entries = count(1)
    for number, line in enumerate(text.splitlines(), 1):
        at = f"{where}:{number}"
        words = _words(line, at)
        if not words:
            continue
        if (section := _SECTION.fullmatch(words[0])) is not None and len(words) == 1:
            name, kind = section[1], section[2] or ""
            groups.setdefault(name, _Group())
        elif kind == "children":
            if words[0] not in groups:
                groups[words[0]] = _Group()
            groups[name].children.append(words[0])
            _count(entries, at)
        elif kind == "vars":
            key, _, value = line.partition("=")
            groups[name].variables[key.strip()] = " ".join(_words(value, at))
        else:
            pairs = dict(_pairs(words[1:], at))
            for host in _expanded(words[0], at):
                groups[name].hosts.setdefault(host, {}).update(pairs)
                _count(entries, at)
    return groups


def _count(entries: Iterator[int], at: str) -> None:
    """Hosts and groups inside others, as often as they are named: a group of all groups in all groups has no end."""
    if next(entries) > _MOST_HOSTS:
        raise ConfigError(at, f"the lines up to here name more than {_MOST_HOSTS:,} hosts; is this an inventory?")


def _words(line: str, at: str) -> list[str]:
    if line.lstrip().startswith(";"):
        return []
    if not _QUOTING.search(line):  # a hundred times faster
        return line.split()
    if len(line) > _LONGEST_LINE:
        raise ConfigError(at, f"a line has more than {_LONGEST_LINE} characters")
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise ConfigError(at, f"not a line of an inventory: {error}") from None


def _pairs(words: list[str], at: str) -> Iterator[tuple[str, str]]:
    for word in words:
        key, separator, value = word.partition("=")
        if not (key and separator):
            raise ConfigError(at, "expected NAME=VALUE after the host's name", value=word)
        yield key, value


def _expanded(pattern: str, at: str) -> Iterator[str]:
    """``stor[01:12]`` → ``stor01`` … ``stor12``; with several ranges every combination."""
    match = _RANGE.search(pattern)
    if match is None:
        yield pattern
        return
    first, last = int(match[1]), int(match[2])
    if first > last:
        raise ConfigError(at, "is an empty range; the lower number comes first", value=pattern)
    ranges = _RANGE.findall(pattern)
    if len(ranges) > _MOST_RANGES or prod(max(0, int(to) - int(since)) + 1 for since, to in ranges) > _MOST_HOSTS:
        raise ConfigError(at, f"is more than {_MOST_HOSTS:,} hosts", value=pattern)
    for number in range(first, last + 1):
        yield from _expanded(f"{pattern[: match.start()]}{number:0{len(match[1])}d}{pattern[match.end() :]}", at)


# -- Ansible's YAML and JSON


def _groups_of_yaml(text: str, where: str) -> dict[str, _Group]:
    data = _mapping(_data(text, where), where, "")
    groups: dict[str, _Group] = {"all": _Group()}
    if _MARK in data:
        _add_list(data, groups, where)
    else:
        hosts = count(1)
        for name, body in data.items():
            _add_group(str(name), body, groups, hosts, where)
    return groups


def _data(text: str, where: str) -> Any:
    if not text.lstrip().startswith("{"):
        return read_yaml(text, where=where)
    try:
        return parse_json(text, source=where, limits=_LIMITS)
    except ParseError as error:
        raise ConfigError(error.source, error.reason) from None


def _add_list(data: Mapping[str, Any], groups: dict[str, _Group], where: str) -> None:
    """What ``ansible-inventory --list`` prints: the variables of every host are complete in ``_meta``."""
    hosts = count(1)
    known = _mapping(_mapping(data[_MARK], where, _MARK).get("hostvars"), where, f"{_MARK}.hostvars")
    for name, body in data.items():
        if name == _MARK:
            continue
        made, mapping = groups.setdefault(name, _Group()), _mapping(body, where, name)
        made.children += _names(mapping.get("children"), where, f"{name}.children")
        for child in made.children:  # an empty group is printed only as a child: `ungrouped`
            _count(hosts, where)
            groups.setdefault(child, _Group())
        for host in _names(mapping.get("hosts"), where, f"{name}.hosts"):
            _count(hosts, where)
            made.hosts[host] = _plain(_mapping(known.get(host), where, f"{_MARK}.hostvars.{host}"))
    groups["all"].hosts = {
        str(host): _plain(_mapping(body, where, f"{_MARK}.hostvars.{host}")) for host, body in known.items()
    } | groups["all"].hosts


def _add_group(
    name: str, body: Any, groups: dict[str, _Group], hosts: Iterator[int], where: str, *, depth: int = 0
) -> None:
    if depth > 50:
        raise ConfigError(where, "groups are nested too deeply", key=name)
    made, mapping = groups.setdefault(name, _Group()), _mapping(body, where, name)
    made.variables |= _plain(_mapping(mapping.get("vars"), where, f"{name}.vars"))
    for host, variables in _mapping(mapping.get("hosts"), where, f"{name}.hosts").items():
        plain = _plain(_mapping(variables, where, f"{name}.hosts.{host}"))
        for expanded in _expanded(str(host), where):
            _count(hosts, where)
            made.hosts.setdefault(expanded, {}).update(plain)
    for child, inner in _mapping(mapping.get("children"), where, f"{name}.children").items():
        made.children.append(str(child))
        _count(hosts, where)
        _add_group(str(child), inner, groups, hosts, where, depth=depth + 1)


def _mapping(value: Any, where: str, key: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(where, "expected a mapping, as an inventory of Ansible has it", key=key)
    return value


def _names(value: Any, where: str, key: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfigError(where, "expected a list of names", key=key)
    return [str(name) for name in value]


def _plain(variables: Mapping[str, Any]) -> dict[str, str]:
    """The variables that are text or numbers: ours are."""
    return {str(key): str(value) for key, value in variables.items() if isinstance(value, str | int | float)}


# -- both


def _flat(groups: Mapping[str, _Group], wanted: str, domain_var: str, where: str) -> dict[str, dict[str, str]]:
    """Host → variables of all groups that it is in, the outer ones first, its own last. Every group and every child of
    one is looked at once, however they are nested: a group may be reached in more ways than can be counted."""
    inner = {child for group in groups.values() for child in group.children}
    outer = [name for name in groups if name not in inner and name != _ALL]
    children = {name: group.children + (outer if name == _ALL else []) for name, group in groups.items()}
    members = [host for name in _below(wanted, children) for host in groups[name].hosts]
    keys = {domain_var, *_OURS, *(f"plumbline_{key}" for key in _OURS), *_ANSIBLES}
    inherited: dict[str, dict[str, str]] = {name: {} for name in groups}
    outer_variables: dict[str, dict[str, str]] = {host: {} for host in members}
    own: dict[str, dict[str, str]] = {host: {} for host in members}
    for name in _outer_first(children, where):
        variables = inherited.pop(name) | _only(keys, groups[name].variables)
        for child in children[name]:
            inherited[child] |= variables
        for host in groups[name].hosts.keys() & outer_variables.keys():
            outer_variables[host] |= variables
            own[host] |= _only(keys, groups[name].hosts[host])
    return {host: outer_variables[host] | own[host] for host in outer_variables}


def _only(keys: Set[str], variables: Mapping[str, str]) -> dict[str, str]:
    return {key: variables[key] for key in keys & variables.keys()}


def _below(wanted: str, children: Mapping[str, list[str]]) -> dict[str, None]:
    """The group and all groups inside it, in the order of the file."""
    seen: dict[str, None] = {}
    left = [wanted]
    while left:
        if (name := left.pop()) not in seen:
            seen[name] = None
            left += reversed(children[name])
    return seen


def _outer_first(children: Mapping[str, list[str]], where: str) -> Iterator[str]:
    """Every group, after all groups that it is in."""
    above = Counter(child for inner in children.values() for child in inner)
    ready = deque(name for name in children if not above[name])
    while ready:
        yield (name := ready.popleft())
        for child in children[name]:
            above[child] -= 1
            if not above[child]:
                ready.append(child)
    if own := next((name for name in children if above[name] > 0), None):
        raise ConfigError(where, "a group is its own child, or below one", key=own)


def _host(name: str, variables: Mapping[str, str], where: str, domain_var: str) -> Host:
    def known(key: str) -> str:
        return variables.get(f"plumbline_{key}", variables.get(key, ""))

    if not _NAME.fullmatch(name):
        raise ConfigError(where, "is no host's name; letters, digits, dots and hyphens make one", value=name)
    port = variables.get("ansible_port", "0")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
        raise ConfigError(where, "is no port", key=f"{name}: ansible_port", value=port)
    address, user = variables.get("ansible_host", ""), variables.get("ansible_user", "")
    for key, value, pattern in (("ansible_host", address, _ADDRESS), ("ansible_user", user, _USER)):
        if value and not pattern.fullmatch(value):
            raise ConfigError(where, "has a character that no host or user has", key=f"{name}: {key}", value=value)
    return Host(
        name=name,
        address=address,
        port=int(port),
        user=user,
        fleet_class=known("class"),
        model=known("model"),
        role=known("role"),
        domain=variables.get(domain_var, "") if domain_var else known("domain"),
    )


def with_domains(hosts: tuple[Host, ...], domains: Mapping[str, str]) -> tuple[Host, ...]:
    """``hosts`` with the failure domain by host name, or by its first part; one that is not in ``domains`` keeps its
    own."""
    return tuple(
        replace(host, domain=domains.get(host.name, domains.get(host.name.partition(".")[0], host.domain)))
        for host in hosts
    )
