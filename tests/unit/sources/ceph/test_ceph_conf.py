"""What ceph.conf says of networks."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.ceph.ceph_conf import CephConf, parse_ceph_conf, read_ceph_conf

NODES = Path(__file__).parents[3] / "fixtures" / "ceph-nodes"
CLASSIC, CEPHADM = (NODES / name for name in ("classic.conf", "cephadm.conf"))


def parse(text: str) -> CephConf:
    return parse_ceph_conf(text, source="ceph.conf")


def test_a_file_written_by_hand() -> None:
    assert parse(CLASSIC.read_text()) == CephConf(
        public_networks=(ip_network("192.168.1.0/24"), ip_network("2001:db8:1::/64")),
        cluster_networks=(ip_network("192.168.122.0/24"),),
        public_addresses=(ip_address("192.168.1.101"), ip_address("192.168.1.11")),
        cluster_addresses=(ip_address("2001:db8:2::11"),),
    )


def test_cephadms_minimal_file_has_none_of_it() -> None:
    assert parse(CEPHADM.read_text()) == CephConf()


@pytest.mark.parametrize(
    "text",
    [
        "public network = 10.1.0.0/16",
        "[global]\npublic_network=10.1.2.3/16",  # the host's own address, as people write it
        "[global]\n  public   network\t= 10.1.0.0/16 # clients",
        "[global]\npublic network = \\\n  10.1.0.0/16",
        "[global]\r\npublic_network = 10.1.0.0/16\r\n",
        "[global]\npublic network = 172.16.0.0/12\npublic network = 10.1.0.0/16",
        "[osd]\npublic network = 10.1.0.0/16\n[global]\npublic network = 172.16.0.0/12",
    ],
)
def test_spellings(text: str) -> None:
    assert parse(text) == CephConf(public_networks=(ip_network("10.1.0.0/16"),))


@pytest.mark.parametrize("text", ["", "public network\n[", "[mds]\npublic network = 10.0.0.0/8", "public network ="])
def test_nothing(text: str) -> None:
    assert parse(text) == CephConf()


def test_addresses_that_are_names_say_nothing() -> None:
    assert parse("[osd.1]\npublic addr = node1.example\ncluster addr = 10.0.0.1:0/0, node2").cluster_addresses == (
        ip_address("10.0.0.1"),
    )


def test_a_network_that_is_none_is_named_with_its_line() -> None:
    with pytest.raises(ParseError) as caught:
        parse("[global]\nfsid = x\n\ncluster network = 10.0.0.0/24,\\\n 10.0.1.0/240\n")
    assert str(caught.value) == "ceph.conf:4: not a network: '10.0.1.0/240'; write it as 192.0.2.0/24"


def test_where_the_file_is_looked_for(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    with pytest.raises(Unavailable, match=r"etc/ceph/ceph.conf: missing, or not readable by this user"):
        read_ceph_conf(roots)
    minimal = tmp_path / "etc" / "ceph" / "ceph.conf"
    minimal.parent.mkdir(parents=True)
    minimal.write_bytes(CEPHADM.read_bytes())
    assert read_ceph_conf(roots) == CephConf()
    cephadm = tmp_path / "var" / "lib" / "ceph" / "4a3d2f9c-0001-11ee-8c2d-525400aa0001" / "config" / "ceph.conf"
    cephadm.parent.mkdir(parents=True)
    cephadm.write_text("public_network = 10.1.0.0/16\n")
    assert read_ceph_conf(roots) == CephConf(public_networks=(ip_network("10.1.0.0/16"),))
    minimal.write_text("public_network = 10.2.0.0/16\n")
    assert read_ceph_conf(roots) == CephConf(public_networks=(ip_network("10.2.0.0/16"),))
