from __future__ import annotations

import json

import pytest

from plumbline.errors import ConfigError
from plumbline.fleet.crush import missing, racks_of
from plumbline.fleet.inventory import Host, parse_inventory, with_domains

LIST = """\
# a comment
stor01.example role=hdd domain=rack1   # and another
stor02 role=hdd domain="rack 2" ansible_host=192.0.2.2 ansible_port=2222 ansible_user=ops
"""
INI = """\
mon01
[storage]
stor[01:02].example plumbline_domain=r1
stor03 plumbline_role=ssd
[storage:vars]
plumbline_role=hdd
[old]
gone01
[all:children]
storage
old
[all:vars]
ansible_user=root
"""
YAML = """\
all:
  vars: {ansible_user: root}
  children:
    storage:
      vars: {plumbline_role: hdd}
      hosts:
        stor01: {plumbline_domain: r1}
        stor02: {plumbline_role: ssd, ansible_port: 22}
    old:
      hosts: {gone01: null}
"""
JSON = """\
{"_meta": {"hostvars": {"stor01": {"plumbline_role": "hdd", "rack": "r7", "config": {"a": [1]}}, "mon01": {}}},
 "all": {"children": ["ungrouped", "storage"]}, "storage": {"hosts": ["stor01"]}, "ungrouped": {"hosts": ["mon01"]}}
"""


def test_a_plain_list() -> None:
    one, two = parse_inventory(LIST, where="fleet.txt")
    assert one == Host("stor01.example", role="hdd", domain="rack1")
    assert two == Host("stor02", role="hdd", domain="rack 2", address="192.0.2.2", port=2222, user="ops")


def test_ansibles_ini_with_ranges_groups_and_their_variables() -> None:
    hosts = {host.name: host for host in parse_inventory(INI, where="x", group="storage")}
    assert list(hosts) == ["stor01.example", "stor02.example", "stor03"]
    assert hosts["stor02.example"] == Host("stor02.example", role="hdd", domain="r1", user="root")
    assert hosts["stor03"].role == "ssd"
    assert len(parse_inventory(INI, where="x")) == 5


def test_ansibles_yaml_inner_groups_and_hosts_win() -> None:
    hosts = {host.name: host for host in parse_inventory(YAML, where="x", group="storage")}
    assert hosts == {
        "stor01": Host("stor01", role="hdd", domain="r1", user="root"),
        "stor02": Host("stor02", role="ssd", port=22, user="root"),
    }


def test_what_ansible_inventory_prints_and_another_variable_for_the_domain() -> None:
    (host,) = parse_inventory(JSON, where="x", group="storage", domain_var="rack")
    assert host == Host("stor01", role="hdd", domain="r7")


def test_an_empty_group_that_is_printed_only_as_a_child() -> None:
    text = '{"_meta": {"hostvars": {"a": {}}}, "all": {"children": ["ungrouped", "s"]}, "s": {"hosts": ["a"]}}'
    assert [host.name for host in parse_inventory(text, where="x")] == ["a"]


@pytest.mark.parametrize("hosts", ["[[1]]", '[{"a": 1}]'])
def test_json_with_a_host_that_is_no_name(hosts: str) -> None:
    with pytest.raises(ConfigError, match="is no host's name"):
        parse_inventory(f'{{"_meta": {{}}, "all": {{"hosts": {hosts}}}}}', where="x")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no host"),
        ("a b", "expected NAME=VALUE"),
        ("-oProxyCommand=touch", "is no host's name"),
        ("a;reboot", "is no host's name"),
        ("../../etc", "is no host's name"),
        ("a ansible_host='-oProxyCommand=x'", "has a character that no host or user has"),
        ("a ansible_user='-x'", "has a character that no host or user has"),
        ("a ansible_port=x", "is no port"),
        ("a x='", "not a line of an inventory"),
        ("n[1:9999999]", "is no host's name"),
        ("n[1:999999]", "is more than"),
        ("n[1:999][1:999]", "is more than"),
        ("n[5:1]", "is an empty range"),
        (f"a ansible_port={'1' * 5000}", "is no port"),
        ("[a:children]\nb\n[b:children]\na\n[all:children]\na", "a group is its own child"),
        ("all:\n  hosts: [a]", "expected a mapping"),
    ],
)
def test_bad_input_is_one_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        parse_inventory(text, where="fleet.txt")
    assert "\n" not in str(caught.value)


def test_an_unknown_group_names_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=r"it has: old, storage"):
        parse_inventory(INI, where="x", group="storagee")


PAGE = """\
# TYPE plumbline_ceph_osd_crush_location_info gauge
plumbline_ceph_osd_crush_location_info{ceph_daemon="osd.0",device_class="hdd",root="default",rack="r1",host="stor01"} 1
plumbline_ceph_osd_crush_location_info{ceph_daemon="osd.1",device_class="hdd",root="default",rack="",host="stor02"} 1
"""


def test_racks_of_crush_by_the_short_name_and_the_lists_domain_elsewhere() -> None:
    hosts = parse_inventory("stor01.example domain=x\nstor02 domain=y", where="x")
    assert [host.domain for host in with_domains(hosts, racks_of(PAGE, where="page"))] == ["r1", "y"]
    assert missing(hosts, racks_of(PAGE, where="page")) == ["stor02"]


@pytest.mark.parametrize("text", ["", "no metrics {", "up 1\n"])
def test_a_page_without_racks_says_so(text: str) -> None:
    with pytest.raises(ConfigError, match="page"):
        racks_of(text, where="page")


def dense(groups: int) -> dict[str, str]:
    """Every group inside every later one: there are more ways to a host than can be walked."""
    names = [f"g{number}" for number in range(groups)]
    later = {name: names[number + 1 :] for number, name in enumerate(names)}
    lines = (f"[{name}:children]\n" + "\n".join(inner) for name, inner in later.items())
    printed = {name: {"children": inner, "hosts": ["h"]} for name, inner in later.items()}
    return {
        "INI": "\n".join(lines) + f"\n[{names[-1]}]\nh\n[g0:vars]\nrole=hdd\n",
        "JSON": json.dumps({"_meta": {"hostvars": {"h": {"role": "hdd"}}}} | printed),
    }


@pytest.mark.parametrize("kind", ["INI", "JSON"])
def test_groups_inside_each_other_are_looked_at_once(kind: str) -> None:
    assert parse_inventory(dense(300)[kind], where="f") == (Host("h", role="hdd"),)


@pytest.mark.parametrize("kind", ["INI", "JSON"])
def test_thousands_of_groups_inside_each_other_are_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match="name more than 100,000 hosts; is this an inventory"):
        parse_inventory(dense(1000)[kind], where="f")
