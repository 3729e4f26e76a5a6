"""Ethtool structures and the calls around them."""

from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest

from plumbline.errors import ParseError, Unavailable
from plumbline.sources.net.ethtool import (
    DriverInfo,
    Ethtool,
    EthtoolSocket,
    parse_driver_info,
    parse_stats,
    parse_strings,
)
from plumbline.sources.net.port_settings import (
    GPAUSEPARAM,
    GRINGPARAM,
    PauseConfig,
    RingSizes,
    parse_pause_structure,
    parse_rings_structure,
)
from support.replay_network import ReplayEthtool, drvinfo, gstats, gstrings, sset_info

FIXTURES = Path(__file__).parents[3] / "fixtures"
VIRTIO = FIXTURES / "net-virtio-guest"


def test_a_real_driver_answers() -> None:
    ethtool = Ethtool(ReplayEthtool.load(VIRTIO))
    assert ethtool.driver_info(b"eth0") == DriverInfo("virtio_net", "", "0000:00:03.0", 20, "1.0.0")
    names = ethtool.strings(b"eth0")
    assert names[:3] == ("rx_drops", "rx_xdp_packets", "rx_xdp_tx")
    assert names[-1] == "tx0_tx_timeouts"
    values = ethtool.stats(b"eth0", len(names))
    assert values is not None
    statistics = dict(zip(names, values, strict=True))
    assert statistics["rx_drops"] == 0
    assert statistics["rx_kicks"] == statistics["rx0_kicks"] > 0
    assert ethtool.reader(GRINGPARAM)(b"eth0") == RingSizes(rx=256, tx=256, rx_max=256, tx_max=256)
    with pytest.raises(Unavailable, match="EOPNOTSUPP"):
        ethtool.reader(GPAUSEPARAM)(b"eth0")


def test_driver_info_is_decoded_with_care() -> None:
    info = parse_driver_info(drvinfo("mlx5_core", "22.31.1014 (MT_0000000359)", "0000:3b:00.0", 612))
    assert info == DriverInfo("mlx5_core", "22.31.1014 (MT_0000000359)", "0000:3b:00.0", 612)
    odd = bytearray(drvinfo("x", "y", "z", 0))
    odd[68:70] = b"\xff\n"  # firmware, not UTF-8, with a trailing line end
    assert parse_driver_info(bytes(odd)).firmware == "\\xff"


def test_names_lose_their_padding() -> None:
    assert parse_strings(gstrings(["TxOctetsOK          ", "[0]: rx_bytes", "x" * 32])) == (
        "TxOctetsOK",
        "[0]: rx_bytes",
        "x" * 32,
    )


def test_a_ring_that_has_no_maximum_does_not_exist() -> None:
    data = struct.pack("=9I", 0x10, 8192, 0, 2048, 4096, 1024, 7, 512, 256)
    assert parse_rings_structure(data) == RingSizes(
        rx=1024, rx_mini=None, rx_jumbo=512, tx=256, rx_max=8192, rx_mini_max=None, rx_jumbo_max=2048, tx_max=4096
    )


def test_flow_control() -> None:
    assert parse_pause_structure(struct.pack("=4I", 0x12, 1, 0, 1)) == PauseConfig(True, False, True)


@pytest.mark.parametrize(
    ("parse", "data", "reason"),
    [
        (parse_driver_info, b"", "GDRVINFO: 0 bytes, 196 expected"),
        (parse_strings, b"\0" * 8, "GSTRINGS: 8 bytes, 12 expected"),
        (parse_strings, gstrings(["a", "b"])[:-1], "GSTRINGS: 75 bytes, 76 expected"),
        (parse_stats, b"\0" * 7, "GSTATS: 7 bytes, 8 expected"),
        (parse_stats, gstats([1, 2])[:-1], "GSTATS: 23 bytes, 24 expected"),
        (parse_rings_structure, b"\0" * 35, "GRINGPARAM: 35 bytes, 36 expected"),
        (parse_pause_structure, b"\0" * 15, "GPAUSEPARAM: 15 bytes, 16 expected"),
    ],
)
def test_structures_that_are_not_whole_are_malformed(parse, data: bytes, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParseError, match=reason):
        parse(data)


def test_a_driver_that_has_changed_its_statistics_is_noticed_before_a_value_is_believed() -> None:
    ethtool = Ethtool(ReplayEthtool({(b"eth0", 0x1D): gstats([1, 2, 3])}))
    assert ethtool.stats(b"eth0", 3) == (1, 2, 3)
    assert ethtool.stats(b"eth0", 2) is None
    assert ethtool.stats(b"eth0", 4) is None


def test_a_driver_without_statistics_has_no_names() -> None:
    assert Ethtool(ReplayEthtool({(b"eth0", 0x37): sset_info(0)})).strings(b"eth0") == ()


def test_an_absurd_number_of_statistics_is_not_asked_for() -> None:
    transport = ReplayEthtool({(b"eth0", 0x37): sset_info(40_000)})
    with pytest.raises(ParseError, match="eth0 claims 40000 strings"):
        Ethtool(transport).strings(b"eth0")
    assert transport.calls == [(b"eth0", 0x37)]


def test_a_device_that_has_gone_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="ENODEV"):
        Ethtool(ReplayEthtool({(b"eth0", 0x1D): errno.ENODEV})).stats(b"eth0", 1)


def test_the_real_ioctl_says_which_device_has_gone() -> None:
    handle = EthtoolSocket()
    try:
        with pytest.raises(Unavailable, match=r"ioctl SIOCETHTOOL: \\xffgone: ENODEV \(No such device\)"):
            Ethtool(handle).driver_info(b"\xffgone")
        with pytest.raises(ParseError, match="the limit is"):
            handle.call(b"lo", b"\0\0\0\0", 1 << 21)
    finally:
        handle.close()
    handle.close()
