"""A port's settings: rings, flow control, channels, coalescing, offloads, link modes, FEC, connector.

Slow tier. Each part fails independently. Settings are read of hardware ports and of links stacked on them (bond, team,
VLAN). Ends of software links are no ports of the node, and a host with containers has hundreds of them. Inside a
container, though, such an end is the only link, so without hardware these are reported.
"""

import errno
from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct, field

from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.net import ethnl, features, linkmodes, port_settings
from plumbline.sources.net.ethtool import ETH_SS_FEATURES, Ethtool
from plumbline.sources.net.features import Offload
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.links import Link
from plumbline.sources.net.netlink import Message, Netlink, Refused
from plumbline.sources.net.port_settings import Channels, Coalescing, PauseConfig, RingSizes

T = TypeVar("T")

_GFEATURES, _GLINKSETTINGS = 0x3A, 0x4C
STACKED_KINDS = frozenset({"bond", "team", "vlan"})
"""Software links with the speed of the ports below; other kinds invent one (veth: 10 Gb/s, tun: 10 Mb/s)."""
_CONTAINER_KINDS = frozenset({"veth", "macvlan", "ipvlan", "tun"})


class Knobs(Struct, frozen=True):
    """Settings by interface index. A part that failed holds its error, which the scrape then raises."""

    rings: Mapping[int, RingSizes] | PlumblineError = field(default_factory=dict)
    pause: Mapping[int, PauseConfig] | PlumblineError = field(default_factory=dict)
    channels: Mapping[int, Channels] | PlumblineError = field(default_factory=dict)
    coalescing: Mapping[int, Coalescing] | PlumblineError = field(default_factory=dict)
    offloads: Mapping[int, tuple[Offload, ...]] | PlumblineError = field(default_factory=dict)
    linkmodes: Mapping[int, LinkModes] | PlumblineError = field(default_factory=dict)
    """Of hardware ports and :data:`STACKED_KINDS`; rings, pause, FEC and connectors: of hardware ports."""
    fec: Mapping[int, str | None] | PlumblineError = field(default_factory=dict)
    connectors: Mapping[int, int | None] | PlumblineError = field(default_factory=dict)  # PORT_*
    offload_masks: Mapping[str, int] = field(default_factory=dict)  # Bits of each offload in this kernel's features


class KnobsReader:
    def __init__(self, generic: Netlink, ioctl: Ethtool) -> None:
        self._generic, self._ioctl = generic, ioctl

    def read(self, family: int | None, links: Mapping[int, Link], previous: Knobs) -> Knobs:
        """The settings of the ports among ``links``; only the meaning of feature bits is reused from ``previous``.
        ``family`` ``None``: no ethtool netlink (before Linux 5.6)."""
        hardware = {index: link for index, link in links.items() if link.hardware}
        stacked = {index: link for index, link in links.items() if link.hardware or link.kind in STACKED_KINDS}
        ends = {index: link for index, link in links.items() if link.kind in _CONTAINER_KINDS}
        ports = stacked if hardware else stacked | ends
        masks = previous.offload_masks or attempt(lambda: self._offload_masks(family, ports))

        part = self._read_setting
        ioctl, settings = self._ioctl.reader, port_settings
        bits = part(family, ethnl.FEATURES_GET, features.parse_features, ports, self._feature_bits)
        return Knobs(
            rings=part(family, ethnl.RINGS_GET, settings.parse_rings, hardware, ioctl(settings.GRINGPARAM)),
            pause=part(family, ethnl.PAUSE_GET, settings.parse_pause_config, hardware, ioctl(settings.GPAUSEPARAM)),
            channels=part(family, ethnl.CHANNELS_GET, settings.parse_channels, ports, ioctl(settings.GCHANNELS)),
            coalescing=part(family, ethnl.COALESCE_GET, settings.parse_coalesce, ports, ioctl(settings.GCOALESCE)),
            offloads=attempt(
                lambda: {index: features.offloads(port, value(masks)) for index, port in value(bits).items()}
            ),
            linkmodes=part(family, ethnl.LINKMODES_GET, linkmodes.parse_linkmodes, stacked, self._link_settings),
            fec=part(family, ethnl.FEC_GET, settings.parse_fec, hardware, ioctl(settings.GFECPARAM)),
            connectors=part(family, ethnl.LINKINFO_GET, settings.parse_port, hardware, self._connector),
            offload_masks={} if isinstance(masks, PlumblineError) else masks,
        )

    def _read_setting(
        self,
        family: int | None,
        command: int,
        parse: Callable[[Message], tuple[int, T]],
        ports: Mapping[int, Link],
        by_ioctl: Callable[[bytes], T],
    ) -> dict[int, T] | PlumblineError:
        """One setting by interface index, without ports that lack it, from a dump or, where the kernel lacks that
        (until 5.13 for FEC), one ioctl per port. Any other failure of netlink, or a malformed reply, is the result."""
        try:
            if family is not None:
                return ethnl.read_all(
                    self._generic,
                    family,
                    command,
                    parse,
                    flags=ethnl.FLAG_COMPACT_BITSETS,
                    expected=ports,
                    only=ports,
                    on_skip=lambda _item, _reason: None,
                )
        except Refused as refusal:
            if refusal.code != errno.EOPNOTSUPP:
                return refusal
        except PlumblineError as error:
            return error
        return attempt(lambda: _ask_ports(ports, by_ioctl))

    def _offload_masks(self, family: int | None, ports: Mapping[int, Link]) -> dict[str, int]:
        if family is not None:
            reply = self._generic.get(family, features.names_request())
            return features.offload_masks(features.parse_names(reply) if reply else ())
        # the names are the same for all ports: any port may answer
        answers = _ask_ports(ports, lambda device: self._ioctl.strings(device, ETH_SS_FEATURES))
        return features.offload_masks(next((names for names in answers.values() if names), ()))

    def _feature_bits(self, device: bytes) -> int:
        return features.parse_features_structure(self._ioctl.call(device, *features.features_request(_GFEATURES)))

    def _link_settings(self, device: bytes) -> LinkModes:
        """Two calls: the first gets the number of words in a set of modes on this kernel, the second the sets."""
        size = linkmodes.link_settings_request(_GLINKSETTINGS, 0)
        count = linkmodes.link_modes_words(self._ioctl.call(device, size, len(size)))
        request = linkmodes.link_settings_request(_GLINKSETTINGS, count)
        return linkmodes.parse_link_settings(self._ioctl.call(device, request, len(request)))

    def _connector(self, device: bytes) -> int | None:
        return self._link_settings(device).port


def attempt(ask: Callable[[], T]) -> T | PlumblineError:
    """The result of ``ask``, or the error it raised: a failed part must not stop the other parts."""
    try:
        return ask()
    except PlumblineError as error:
        return error


def value(part: T | PlumblineError) -> T:
    """Undo :func:`attempt`: return the result, or raise the error."""
    if isinstance(part, PlumblineError):
        raise part.with_traceback(None)  # raised once per scrape: it must not accumulate tracebacks
    return part


def _ask_ports(ports: Mapping[int, Link], ask: Callable[[bytes], T]) -> dict[int, T]:
    """The answers by interface index, without the ports that do not answer."""
    answers = {}
    for index, link in ports.items():
        try:
            answers[index] = ask(link.raw_name)
        except Unavailable:
            continue  # the driver does not support this, or the port has gone
    return answers
