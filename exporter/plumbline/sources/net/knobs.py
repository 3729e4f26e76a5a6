"""A port's settings: channels, coalescing, offloads, link modes, FEC; and whether a transceiver is plugged in.

Slow tier. Each part fails independently. Settings are read of hardware ports and of links stacked on them (bond, team,
VLAN). Ends of software links are no ports of the node, and a host with containers has hundreds of them. Inside a
container, though, such an end is the only link, so without hardware these are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from plumbline.errors import PlumblineError
from plumbline.sources.net import ethnl, features
from plumbline.sources.net.channels import GCHANNELS, Channels, parse_channels
from plumbline.sources.net.coalesce import GCOALESCE, Coalescing, parse_coalesce
from plumbline.sources.net.ethtool import ETH_SS_FEATURES, Ethtool
from plumbline.sources.net.features import FeatureBits, Offload
from plumbline.sources.net.fec import GFECPARAM, parse_fec
from plumbline.sources.net.linkmodes import (
    LinkModes,
    link_modes_words,
    link_settings_request,
    parse_link_settings,
    parse_linkmodes,
)
from plumbline.sources.net.links import Link
from plumbline.sources.net.module import parse_port
from plumbline.sources.net.netlink import Message, Netlink
from plumbline.sources.net.settings import SettingsReader, attempt, each, value

T = TypeVar("T")

_GFEATURES, _GLINKSETTINGS = 0x3A, 0x4C
STACKED_KINDS = frozenset({"bond", "team", "vlan"})
"""Software links with the speed of the ports below; other kinds invent one (veth: 10 Gb/s, tun: 10 Mb/s)."""
_CONTAINER_KINDS = frozenset({"veth", "macvlan", "ipvlan", "tun"})


@dataclass(frozen=True, slots=True)
class Knobs:
    """Settings by interface index. A part that failed holds its error, which the scrape then raises."""

    channels: Mapping[int, Channels] | PlumblineError = field(default_factory=dict)
    coalescing: Mapping[int, Coalescing] | PlumblineError = field(default_factory=dict)
    offloads: Mapping[int, tuple[Offload, ...]] | PlumblineError = field(default_factory=dict)
    linkmodes: Mapping[int, LinkModes] | PlumblineError = field(default_factory=dict)
    """Of hardware ports and :data:`STACKED_KINDS`."""
    fec: Mapping[int, str | None] | PlumblineError = field(default_factory=dict)
    connectors: Mapping[int, int | None] | PlumblineError = field(default_factory=dict)
    """``PORT_*`` of hardware ports."""
    offload_masks: Mapping[str, int] = field(default_factory=dict)
    """Bits of each offload in this kernel's features."""


class KnobsReader:
    """Reads the settings."""

    def __init__(self, generic: Netlink, ioctl: Ethtool) -> None:
        self._generic, self._ioctl = generic, ioctl
        self._settings = SettingsReader(generic)

    def read(self, family: int | None, links: Mapping[int, Link], known: Knobs) -> Knobs:
        """Read the settings of the ports among ``links``; only the meaning of feature bits is reused from ``known``."""
        hardware = {index: link for index, link in links.items() if link.hardware}
        stacked = {index: link for index, link in links.items() if link.hardware or link.kind in STACKED_KINDS}
        ends = {index: link for index, link in links.items() if link.kind in _CONTAINER_KINDS}
        ports = stacked if hardware else stacked | ends
        masks = known.offload_masks or attempt(lambda: self._offload_masks(family, ports))

        def part(
            command: int,
            parse: Callable[[Message], tuple[int, T]],
            ports: Mapping[int, Link],
            by_ioctl: Callable[[bytes], T],
        ) -> dict[int, T] | PlumblineError:
            flags = ethnl.FLAG_COMPACT_BITSETS
            return attempt(lambda: self._settings.read(family, command, parse, ports, by_ioctl=by_ioctl, flags=flags))

        bits = part(ethnl.FEATURES_GET, features.parse_features, ports, self._feature_bits)
        return Knobs(
            channels=part(ethnl.CHANNELS_GET, parse_channels, ports, self._ioctl.reader(GCHANNELS)),
            coalescing=part(ethnl.COALESCE_GET, parse_coalesce, ports, self._ioctl.reader(GCOALESCE)),
            offloads=attempt(
                lambda: {index: features.offloads(port, value(masks)) for index, port in value(bits).items()}
            ),
            linkmodes=part(ethnl.LINKMODES_GET, parse_linkmodes, stacked, self._link_settings),
            fec=part(ethnl.FEC_GET, parse_fec, hardware, self._ioctl.reader(GFECPARAM)),
            connectors=part(ethnl.LINKINFO_GET, parse_port, hardware, lambda device: self._link_settings(device).port),
            offload_masks={} if isinstance(masks, PlumblineError) else masks,
        )

    def _offload_masks(self, family: int | None, ports: Mapping[int, Link]) -> dict[str, int]:
        if family is not None:
            reply = self._generic.get(family, features.names_request())
            return features.offload_masks(features.parse_names(reply) if reply else ())
        # the names are the same for all ports: any port may answer
        answers = each(ports, lambda device: self._ioctl.strings(device, ETH_SS_FEATURES))
        return features.offload_masks(next((names for names in answers.values() if names), ()))

    def _feature_bits(self, device: bytes) -> FeatureBits:
        return features.parse_features_structure(self._ioctl.call(device, *features.features_request(_GFEATURES)))

    def _link_settings(self, device: bytes) -> LinkModes:
        """Two calls: the first gets the number of words in a set of modes on this kernel, the second the sets."""
        size = link_settings_request(_GLINKSETTINGS, 0)
        count = link_modes_words(self._ioctl.call(device, size, len(size)))
        request = link_settings_request(_GLINKSETTINGS, count)
        return parse_link_settings(self._ioctl.call(device, request, len(request)))
