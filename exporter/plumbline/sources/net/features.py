"""Work offloaded to the port (``ethtool -k``): ``FEATURES_GET`` (Linux 5.7) or its ioctl.

https://docs.kernel.org/networking/ethtool-netlink.html#features-get

A port reports bits whose meaning differs between kernels. The kernel names them itself (string set
``ETH_SS_FEATURES``, the same for all ports until a reboot). Like ``ethtool -k``, this module groups them under the
names operators know: "tcp-segmentation-offload" is on when any ``tx-tcp*-segmentation`` is.
"""

import re
import struct
from collections.abc import Mapping, Sequence

from msgspec import Struct

from plumbline.errors import ParseError
from plumbline.sources.net import netlink
from plumbline.sources.net.ethnl import STRSET_GET, parse_bitset, parse_reply, request
from plumbline.sources.net.ethtool import ETH_SS_FEATURES, need, unpack
from plumbline.sources.net.links import label
from plumbline.sources.net.netlink import Attributes, Message, attribute, attributes, parse_attributes

OFFLOADS = {
    "rx-checksumming": "rx-checksum",
    "tx-checksumming": "tx-checksum-.*",
    "scatter-gather": "tx-scatter-gather.*",
    "tcp-segmentation-offload": "tx-tcp.*-segmentation",
    "tx-tcp-segmentation": "tx-tcp-segmentation",
    "udp-fragmentation-offload": "tx-udp-fragmentation",
    "generic-segmentation-offload": "tx-generic-segmentation",
    "generic-receive-offload": "rx-gro",
    "large-receive-offload": "rx-lro",
    "rx-vlan-offload": "rx-vlan-hw-parse",
    "tx-vlan-offload": "tx-vlan-hw-insert",
    "ntuple-filters": "rx-ntuple-filter",
    "receive-hashing": "rx-hashing",
}
"""Name that ``ethtool -k`` prints → the kernel features behind it (``off_flag_def`` in ethtool's common.c).

These are the offloads that the literature on storage networks names; ``ethtool -k`` has 50 more. Names that the
running kernel lacks (UDP fragmentation since 4.14) are omitted."""

_ACTIVE = 4
_STRINGSETS, _STRINGSET_STRINGS, _NESTED, _MAX_FEATURES = 2, 3, 0x8000, 4096
_COUNTED = struct.Struct("=II")  # struct ethtool_gfeatures: cmd, number of blocks
_BLOCKS = 4  # 128 features; only kernels before 5.7 need this call, and they have 60
_BLOCK = struct.Struct("=4I")  # struct ethtool_get_features_block: available, requested, active, never changed


class Offload(Struct, frozen=True):
    """One offload of one port, under the name that ``ethtool -k`` prints."""

    name: str
    enabled: bool


def parse_features(message: Message) -> tuple[int, int]:
    """Parse a reply with compact bitsets → interface index and the active features' bits."""
    ifindex, reply = parse_reply(message, source="ethtool netlink: FEATURES_GET")
    if _ACTIVE not in reply.spans:
        raise ParseError(reply.source, "reply lacks the active features")
    return ifindex, parse_bitset(reply.nested(_ACTIVE)).value


def parse_features_structure(data: bytes) -> int:
    """The active features' bits. The structure's count is the kernel's blocks; it holds only as many as requested."""
    _cmd, blocks = unpack(_COUNTED, data, "GFEATURES")
    need(data, _COUNTED.size + min(blocks, _BLOCKS) * _BLOCK.size, "GFEATURES")
    active = 0
    for place in range(min(blocks, _BLOCKS)):
        _available, _requested, on, _never = _BLOCK.unpack_from(data, _COUNTED.size + place * _BLOCK.size)
        active |= on << (32 * place)
    return active


def features_request(command: int) -> tuple[bytes, int]:
    """The request for the features, and the size of its reply."""
    return _COUNTED.pack(command, _BLOCKS), _COUNTED.size + _BLOCKS * _BLOCK.size


def names_request() -> bytes:
    string_set = attribute(1, netlink.U32.pack(ETH_SS_FEATURES))
    return request(STRSET_GET) + attribute(_STRINGSETS | _NESTED, attribute(1 | _NESTED, string_set))


def parse_names(message: Message) -> tuple[str, ...]:
    """Parse a ``STRSET_GET`` reply with one string set → the strings by index; unused ones are empty."""
    data, source = message.data, "ethtool netlink: STRSET_GET"
    # the reply's header has no interface: this set is global
    top = parse_attributes(data, message.start + 4, message.end, source=source)
    names: dict[int, str] = {}
    for string_set in top.nested(_STRINGSETS).spans.values():
        strings = parse_attributes(data, *string_set, source=source)
        for _, *span in attributes(data, *strings.spans.get(_STRINGSET_STRINGS, (0, 0)), source=source):
            index, name = _string(parse_attributes(data, *span, source=source))
            names[index] = name
    if not names:
        raise ParseError(source, "no feature has a name")
    return tuple(names.get(index, "") for index in range(max(names) + 1))


def offload_masks(names: Sequence[str]) -> dict[str, int]:
    """Map each of :data:`OFFLOADS` that this kernel has to its bits in the kernel's feature ``names``."""
    masks = {}
    for offload, pattern in OFFLOADS.items():
        if mask := sum(1 << bit for bit, name in enumerate(names) if re.fullmatch(pattern, name)):
            masks[offload] = mask
    return masks


def offloads(active: int, masks: Mapping[str, int]) -> tuple[Offload, ...]:
    """One port's offloads, in the order of ``masks``."""
    return tuple(Offload(name, bool(active & mask)) for name, mask in masks.items())


def _string(string: Attributes) -> tuple[int, str]:
    index = string.number(1)
    if index is None or 2 not in string.spans:
        raise ParseError(string.source, "string lacks an index or a value")
    if index >= _MAX_FEATURES:
        raise ParseError(string.source, f"feature number {index}")
    start, end = string.spans[2]
    return index, label(string.data[start:end].partition(b"\0")[0])
