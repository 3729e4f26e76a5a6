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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from plumbline.config.yaml import read_text, read_yaml
from plumbline.errors import ConfigError

MAX_BYTES = 64 << 20
_MOST_HOSTS = 100_000
# The name becomes an argument of ssh and a file's name; an address may have colons
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_ADDRESS = re.compile(r"[A-Za-z0-9_:\[][A-Za-z0-9_.:%\[\]-]{0,252}")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_RANGE = re.compile(r"\[([0-9]{1,6}):([0-9]{1,6})\]")
_SECTION = re.compile(r"\[([^\]:]+)(?::(vars|children))?\]")
_MARK = "_meta"


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
    variables = _flat(groups, group or "all", where)
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
    name, kind = "all", ""
    for number, line in enumerate(text.splitlines(), 1):
        at = f"{where}:{number}"
        words = _words(line, at)
        if not words:
            continue
        if (section := _SECTION.fullmatch(words[0])) is not None and len(words) == 1:
            name, kind = section[1], section[2] or ""
            groups.setdefault(name, _Group())
        elif kind == "children":
            groups.setdefault(words[0], _Group())
            groups[name].children.append(words[0])
        elif kind == "vars":
            key, _, value = line.partition("=")
            groups[name].variables[key.strip()] = " ".join(_words(value, at))
        else:
            for host in _expanded(words[0], at):
                groups[name].hosts.setdefault(host, {}).update(_pairs(words[1:], at))
    return groups


def _words(line: str, at: str) -> list[str]:
    if line.lstrip().startswith(";"):
        return []
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
    found = _RANGE.search(pattern)
    if found is None:
        yield pattern
        return
    first, last = int(found[1]), int(found[2])
    if first > last:
        raise ConfigError(at, "is an empty range; the lower number comes first", value=pattern)
    if prod(max(0, int(to) - int(since)) + 1 for since, to in _RANGE.findall(pattern)) > _MOST_HOSTS:
        raise ConfigError(at, f"is more than {_MOST_HOSTS:,} hosts", value=pattern)
    for number in range(first, last + 1):
        yield from _expanded(f"{pattern[: found.start()]}{number:0{len(found[1])}d}{pattern[found.end() :]}", at)


# -- Ansible's YAML and JSON


def _groups_of_yaml(text: str, where: str) -> dict[str, _Group]:
    data = _mapping(read_yaml(text, where=where), where, "")
    groups: dict[str, _Group] = {"all": _Group()}
    if _MARK in data:
        _take_list(data, groups, where)
    else:
        for name, body in data.items():
            _take_group(str(name), body, groups, where, depth=0)
    return groups


def _take_list(data: Mapping[str, Any], groups: dict[str, _Group], where: str) -> None:
    """What ``ansible-inventory --list`` prints: the variables of every host are complete in ``_meta``."""
    known = _mapping(_mapping(data[_MARK], where, _MARK).get("hostvars"), where, f"{_MARK}.hostvars")
    for name, body in data.items():
        if name == _MARK:
            continue
        made, found = groups.setdefault(name, _Group()), _mapping(body, where, name)
        made.children += _names(found.get("children"), where, f"{name}.children")
        for child in made.children:  # an empty group is printed only as a child: `ungrouped`
            groups.setdefault(child, _Group())
        for host in _names(found.get("hosts"), where, f"{name}.hosts"):
            made.hosts[host] = _plain(_mapping(known.get(host), where, f"{_MARK}.hostvars.{host}"))
    groups["all"].hosts = {
        str(host): _plain(_mapping(body, where, f"{_MARK}.hostvars.{host}")) for host, body in known.items()
    } | groups["all"].hosts


def _take_group(name: str, body: Any, groups: dict[str, _Group], where: str, *, depth: int) -> None:
    if depth > 50:
        raise ConfigError(where, "groups are nested too deeply", key=name)
    made, found = groups.setdefault(name, _Group()), _mapping(body, where, name)
    made.variables |= _plain(_mapping(found.get("vars"), where, f"{name}.vars"))
    for host, variables in _mapping(found.get("hosts"), where, f"{name}.hosts").items():
        for each in _expanded(str(host), where):
            made.hosts.setdefault(each, {}).update(_plain(_mapping(variables, where, f"{name}.hosts.{host}")))
    for child, inner in _mapping(found.get("children"), where, f"{name}.children").items():
        made.children.append(str(child))
        _take_group(str(child), inner, groups, where, depth=depth + 1)


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


def _flat(groups: Mapping[str, _Group], wanted: str, where: str) -> dict[str, dict[str, str]]:
    """Host → variables of all groups that it is in, the outer ones first, its own last."""
    inner = {child for group in groups.values() for child in group.children}
    inherited: dict[str, dict[str, str]] = {}
    own: dict[str, dict[str, str]] = {}
    members: dict[str, None] = {}

    def visit(name: str, variables: dict[str, str], above: frozenset[str], inside: bool) -> None:
        if name in above:
            raise ConfigError(where, "a group is its own child", key=name)
        group, inside = groups[name], inside or name == wanted
        variables = variables | group.variables
        for host, its in group.hosts.items():
            inherited.setdefault(host, {}).update(variables)
            own.setdefault(host, {}).update(its)
            if inside:
                members[host] = None
        for child in group.children:
            visit(child, variables, above | {name}, inside)

    for name in groups:
        if name == "all" or name not in inner:
            outer = {} if name == "all" else groups["all"].variables
            visit(name, outer, frozenset(), wanted == "all")
    return {host: inherited[host] | own[host] for host in members}


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
