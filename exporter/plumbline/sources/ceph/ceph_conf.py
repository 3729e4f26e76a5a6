"""The networks and addresses that ``ceph.conf`` gives to Ceph.

https://docs.ceph.com/en/latest/rados/configuration/ceph-conf/ (syntax)
https://docs.ceph.com/en/latest/rados/configuration/network-config-ref/ (the options)

::

    [global]
        fsid = d901ea94-de1d-4814-9f97-6f7ebd4329dd
        public network = 192.168.1.0/24, 2001:db8:1::/64   ; or public_network
        cluster_network = 192.168.122.0/24
    [osd.3]
        public addr = 192.168.1.11

Where cephadm keeps the options in the monitors, the file has none; then :mod:`.ceph_sockets` is used instead.
"""

import contextlib
import ipaddress
import re
from collections.abc import Iterator

from msgspec import Struct

from plumbline.core.answers import read_named
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel import sysfs

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_SECTION = re.compile(r"\[([^\]]*)\]")
_SEPARATORS = re.compile(r"[\s,;]+")
_NETWORKS = ("public_network", "cluster_network")
_ADDRESSES = ("public_addr", "cluster_addr")

MAX_BYTES = 1 << 20  # limit for a Ceph configuration file or keyring


class CephConf(Struct, frozen=True):
    """The file's options; all empty when the options are stored elsewhere."""

    public_networks: tuple[Network, ...] = ()
    cluster_networks: tuple[Network, ...] = ()
    public_addresses: tuple[IpAddress, ...] = ()  # addresses of any daemon, on this host or another
    cluster_addresses: tuple[IpAddress, ...] = ()


def parse_ceph_conf(text: str, *, source: str) -> CephConf:
    """Parse the file; a malformed network raises :class:`ParseError`.

    Lines that are neither section nor option are skipped, as are addresses given as host names. ``[osd]`` takes
    precedence over ``[global]``, because OSDs carry the traffic.
    """
    networks: dict[tuple[str, str], tuple[Network, ...]] = {}
    addresses: dict[str, list[IpAddress]] = {key: [] for key in _ADDRESSES}
    for line, section, key, value in options(text):
        if section.startswith("client"):
            continue
        if key in _NETWORKS and section in ("global", "osd"):
            networks[section, key] = _networks(value, source=source, line=line)
        elif key in _ADDRESSES:
            addresses[key].extend(_addresses(value))
    public, cluster = (networks.get(("osd", key), networks.get(("global", key), ())) for key in _NETWORKS)
    return CephConf(public, cluster, *(tuple(dict.fromkeys(addresses[key])) for key in _ADDRESSES))


def read_ceph_conf(roots: Roots) -> CephConf:
    """Read ``/etc/ceph/ceph.conf``, then cephadm's file of each cluster; :class:`Unavailable` when there is none.

    The first readable file with a network or an address is used; if none has any, the options are empty.
    """
    cephadm = roots.var / "lib" / "ceph"
    paths = [roots.etc / "ceph" / "ceph.conf"]
    paths += [cephadm / name / "config" / "ceph.conf" for name in sysfs.entries(cephadm)]
    empty = None
    for path in paths:
        try:
            data = read_named(path, MAX_BYTES)
        except OSError:
            continue
        settings = parse_ceph_conf(data.decode("utf-8", "replace"), source=str(path))
        if settings != CephConf():
            return settings
        empty = settings
    if empty is None:
        raise Unavailable(f"{paths[0]}: missing, or not readable by this user")
    return empty


def options(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield line number, section, option with underscores, value; a backslash at the end of a line continues it."""
    section, before, began = "global", "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        began = began or number
        if raw.endswith("\\"):
            before += raw[:-1]
            continue
        line, before, at, began = before + raw, "", began, 0
        bare = re.split(r"[#;]", line, maxsplit=1)[0].strip()
        heading = _SECTION.match(bare)
        if heading:
            section = heading[1].strip()
            continue
        key, equals, value = bare.partition("=")
        if equals:
            yield at, section, re.sub(r"\s+", "_", key.strip()), value.strip().strip("\"'")


def _networks(value: str, *, source: str, line: int) -> tuple[Network, ...]:
    networks = []
    for part in filter(None, _SEPARATORS.split(value)):
        try:
            networks.append(ipaddress.ip_network(part, strict=False))
        except ValueError:
            raise ParseError(source, f"not a network: {part[:60]!r}; write it as 192.0.2.0/24", line=line) from None
    return tuple(networks)


def _addresses(value: str) -> Iterator[IpAddress]:
    """``192.0.2.1``, ``192.0.2.1:6789/0``, ``v2:192.0.2.1:3300``, ``[2001:db8::1]:0``; host names are skipped."""
    for part in filter(None, _SEPARATORS.split(value)):
        bare = re.sub(r"^v[12]:", "", part).split("/")[0]
        match = re.fullmatch(r"\[([^\]]*)\](?::\d+)?", bare)
        if match:
            bare = match[1]
        elif bare.count(":") == 1:
            bare = bare.split(":")[0]
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_address(bare)
