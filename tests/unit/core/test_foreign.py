# ruff: noqa: E501  (answers, one a line)
"""The one reader of foreign JSON: its limits, that nothing goes around it, and every reader against hostile answers."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from msgspec import DecodeError

import plumbline
from plumbline.background.fingerprint import parse_versions
from plumbline.background.mounts import verdict
from plumbline.claims.api import Claim, Events, Pod, Pods, PodTemplate, Version, parse
from plumbline.claims.claim_file import parse_claim
from plumbline.config.yaml import read_yaml
from plumbline.core import jsontext
from plumbline.core.foreign import Limits, Passed, decode_json, finite, parse_json, passed
from plumbline.errors import ConfigError, ParseError, PlumblineError
from plumbline.fleet.crush import racks_of
from plumbline.fleet.inventory import parse_inventory
from plumbline.fleet.node import NodeState, Parcel
from plumbline.probes.ceph.ceph_status import parse_status
from plumbline.probes.ceph.ceph_task import class_of
from plumbline.probes.ceph.osd_lookup import read_osds
from plumbline.probes.fio.fio_output import parse_report as parse_fio
from plumbline.probes.network.iperf3_output import parse_report as parse_iperf3
from plumbline.probes.rados.osd_bench import parse_osd_bench
from plumbline.probes.rbd.rbd_output import parse_extents, parse_info, parse_metadata, parse_watchers
from plumbline.probes.run.child_task import Failed, Refused, Timed, parse_answer
from plumbline.probes.run.state import ProbeRecord
from plumbline.sources.ceph.cephmap import parse_cephmap
from plumbline.sources.ceph.cluster_osds import parse_osds
from plumbline.sources.ceph.osd_connections import parse_can_dump, parse_dump, parse_names
from plumbline.sources.ceph.osd_network import parse_heartbeats
from plumbline.sources.ceph.osd_operations import parse_blocked, parse_slow
from plumbline.sources.ceph.osd_perf import (
    parse_compression,
    parse_database,
    parse_latencies,
    parse_onode_cache,
    parse_stages,
    parse_tier,
)
from plumbline.sources.disk.smartctl import parse_answer as parse_smartctl
from plumbline.sources.prometheus.api import (
    parse_alertmanagers,
    parse_matrix,
    parse_retention,
    parse_rules,
    parse_vector,
)
from support.hostile import ANY, mutations, not_finite

SOURCE = Path(plumbline.__file__).parent
DIRECT = {
    "json.loads", "json.load", "msgspec.json.decode", "msgspec.json.Decoder", "msgspec.yaml.decode", "msgspec.convert", "yaml.load", "yaml.safe_load",
    "yaml.load_all", "ast.literal_eval", "eval", "pickle.loads", "pickle.load", "marshal.loads", "tomllib.loads", "tomllib.load",
}  # fmt: skip
ALLOWED = {
    "core/foreign.py": {"json.loads"},  # the reader
    "core/jsontext.py": {"msgspec.json.Decoder", "msgspec.convert"},  # of one thread at a time
    "config/yaml.py": {"yaml.load"},  # the reader of YAML, with the same limits
    "config/workloads.py": {"yaml.load"},  # a file of this package
}


def _called(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of each call or mention, whatever the module was imported as."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, dot, rest = ast.unparse(node).partition(".")
            yield node.lineno, names.get(first, first) + dot + rest


def test_nothing_reads_foreign_text_around_the_reader() -> None:
    wrong, seen = [], set()
    for file in sorted(SOURCE.rglob("*.py")):
        own = str(file.relative_to(SOURCE))
        for line, name in _called(ast.parse(file.read_text())):
            if name in DIRECT:
                seen.add((own, name))
                if name not in ALLOWED.get(own, ()):
                    wrong.append(f"{own}:{line}: {name}")
    assert wrong == [], "read it by core.foreign or config.yaml"
    assert {(own, name) for own, names in ALLOWED.items() for name in names} - seen == set(), "no longer there"


def test_the_walk_sees_what_it_is_for() -> None:
    text = "import json as j\nfrom json import loads as l\nimport msgspec\nj.loads(x)\nl(x)\nread = msgspec.json.decode"
    assert sorted(line for line, name in _called(ast.parse(text)) if name in DIRECT) == [4, 5, 6]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[" * 100_000, "nested deeper than 50 levels"),
        (b"[" * 51 + b"]" * 51, "nested deeper than 50 levels"),
        (b'{"\\"": ' + b"[" * 50 + b"]" * 50 + b"}", "nested deeper than 50 levels"),
        (b"[" + b"0," * 100 + b"0]", "more than 100 values"),
        (b"[" + b"{}," * 60 + b"{}]", "more than 100 values"),
        (b'"' + b"x" * 1000 + b'"', "longer than 1000 bytes"),
        (b"[18446744073709551616]", "an integer of more than 64 bits"),
        (b"[-9223372036854775809]", "an integer of more than 64 bits"),
        (b"1e999", "1e999 is not finite"),
        (b"NaN", "NaN is not a number"),
        (b'"\\ud800"', "not UTF-8"),
        (b'"\xff"', "not UTF-8"),
    ],
)
def test_what_is_refused(data: bytes, reason: str) -> None:
    limits = Limits(1_000_000, 50, 1_000_000) if data[:2] == b"[[" else Limits(1000, 50, 100)
    with pytest.raises(ParseError, match=f"^here: not JSON: .*{reason}"):
        parse_json(data, source="here", limits=limits)


def test_what_passed_once_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that: what did not pass is refused by each reader, and so is what other limits refuse."""
    deep = b"[" * 60 + b"]" * 60
    assert type(passed(deep)) is bytes
    with pytest.raises(ParseError, match="nested deeper"):
        parse_json(passed(deep), source="x")
    known = passed(b"[[1]]")
    with pytest.raises(ParseError, match="longer than 4 bytes"):
        parse_json(known, source="x", limits=Limits(max_bytes=4))
    monkeypatch.setattr("plumbline.core.foreign.excess", lambda *_: "looked at")
    assert isinstance(known, Passed)
    assert parse_json(known, source="x") == [[1]]
    assert decode_json(known, list[list[int]], source="x") == [[1]]
    with pytest.raises(ParseError, match="looked at"):
        parse_json(b"[[1]]", source="x")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"[18446744073709551615, -9223372036854775808, -0]", [18446744073709551615, -9223372036854775808, 0]),
        (b"[0.12345678901234567890123]", [0.12345678901234568]),
        (b'"99999999999999999999999 [[[[ {{{{ \\" [[[["', '99999999999999999999999 [[[[ {{{{ " [[[['),
        (b"[" * 50 + b"]" * 50, json.loads("[" * 50 + "]" * 50)),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
    ],
)
def test_what_is_read(data: bytes, value: object) -> None:
    assert parse_json(data, source="here") == value
    assert decode_json(data, type(value), source="here") == value


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "inf", "1e999", "1e31", "x", "", "9" * 5000, "0x1"])
def test_a_figure_that_is_none(text: str) -> None:
    assert finite(text) is None


def test_a_figure() -> None:
    assert [finite("1.5"), finite("-0"), finite("1e30")] == [1.5, 0.0, 1e30]


@pytest.mark.parametrize("value", [".inf", "-.Inf", ".nan", "18446744073709551616", "0x" + "f" * 5000])
def test_yaml_has_the_same_numbers(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^x:1: not valid YAML: (a number|an integer)"):
        read_yaml(f"a: {value}", where="x")


def _plain(parse_plain: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    return lambda data: parse_plain(parse_json(data, source="x"))


def _typed(kind: Any) -> Callable[[bytes], Any]:
    return lambda data: decode_json(data, kind, source="x")


def _kubernetes(kind: Any) -> Callable[[bytes], Any]:
    return lambda data: parse(data, kind, source="x")


def _document(text: str) -> bytes:
    return json.dumps(json.loads(text)).encode()


_LAT = '{"avgcount": 3, "sum": 0.5, "avgtime": 0.1}'
_FIO = """{"total_ios": 5, "iops": 1.5, "bw_bytes": 7,
  "lat_ns": {"N": 5, "mean": 1.0, "max": 9, "percentile": {"50.000000": 3}, "bins": {"3": 5}}}"""
_MAP = """{"osd tree": {"nodes": [{"id": -1, "name": "default", "type": "root", "children": [-2]},
    {"id": -2, "name": "n1", "type": "host", "children": [0]},
    {"id": 0, "name": "osd.0", "type": "osd", "device_class": "ssd", "status": "up", "reweight": 1.0, "exists": 1, "crush_weight": 1.5}], "stray": []},
  "osd dump": {"pools": [{"pool": 1, "pool_name": "a", "type": 1, "size": 3, "min_size": 2, "crush_rule": 0,
    "erasure_code_profile": "", "stripe_width": 0, "fast_read": false}], "erasure_code_profiles": {}, "full_ratio": 0.95,
    "backfillfull_ratio": 0.9, "nearfull_ratio": 0.85, "require_osd_release": "squid", "osds": [{"osd": 0, "up": 1}]},
  "osd crush rule dump": [{"rule_id": 0, "steps": [{"op": "take", "item_name": "default~ssd"}, {"op": "chooseleaf_firstn", "type": "host"}]}],
  "availability": null, "unread": "",
  "use": {"osd df": {"nodes": [{"name": "osd.0", "kb": 100, "kb_used": 10}], "stray": []},
    "df": {"pools": [{"id": 1, "stats": {"stored": 5, "max_avail": 9}}]}}}"""
_RECORD = '{"version": 1, "storage_class": "standard", "interval_s": 60.0, "timeout_s": 30.0, "record": {}}'
_VECTOR = """{"status": "success", "data": {"resultType": "vector", "result": [
    {"metric": {"__name__": "up", "job": "x"}, "value": [1763726400.1, "1"]}]}}"""
_MATRIX = """{"status": "success", "data": {"resultType": "matrix", "result": [
    {"metric": {"job": "x"}, "values": [[1763726400, "1"], [1763726460, "0"]]}]}}"""
_RULES = """{"status": "success", "data": {"groups": [{"name": "x", "rules": [{"type": "alerting", "name": "X",
    "health": "ok", "lastError": "", "alerts": [{"state": "firing", "annotations": {"runbook_url": "http://x"}}]}]}]}}"""
_POD = """{"metadata": {"name": "a", "uid": "u", "labels": {"a": "b"}}, "spec": {"nodeName": "n"}, "status": {"phase":
    "Running", "conditions": [{"type": "a", "status": "b", "message": "c"}], "containerStatuses": [{"state":
    {"terminated": {"exitCode": 1, "reason": "x", "message": "y"}}}]}}"""
_SMART = """{"json_format_version": [1, 0], "smartctl": {"version": [7, 3], "exit_status": 0, "messages": []},
    "device": {"protocol": "ATA"}, "smart_status": {"passed": true}, "temperature": {"current": 31}, "power_on_time":
    {"hours": 5}, "power_cycle_count": 3, "logical_block_size": 512, "ata_smart_attributes": {"table": [{"id": 5, "name":
    "Reallocated_Sector_Ct", "value": 100, "raw": {"string": "7"}}]}, "ata_device_statistics": {"pages": [{"number": 1,
    "table": [{"offset": 24, "value": 99, "flags": {"valid": true}}]}]}}"""
_OSD_NETWORK = """{"threshold": 0, "entries": [{"last update": "Fri Nov 21 10:00:00 2025", "stale": false, "from osd": 0,
    "to osd": 1, "interface": "back", "average": {"1min": 0.5, "5min": 0.5, "15min": 0.5}, "min": {"1min": 0.5, "5min":
    0.5, "15min": 0.5}, "max": {"1min": 0.5, "5min": 0.5, "15min": 0.5}, "last": 0.5}]}"""
_PEER = """{"type": "osd", "id": 1, "addr": {"addrvec": [{"type": "v2", "addr": "10.0.0.1:6800", "nonce": 5}]}}"""
_CONNECTIONS = f"""{{"messenger": {{"nonce": 7, "connections": [{{"addr": {{}}, "async_connection": {{"state": "x", "conn_id": 3,
    "status": {{"connected": true, "loopback": false}}, "peer": {_PEER}, "tcp_info": {{"tcpi_rtt_us": 50, "tcpi_rttvar_us": 9,
    "tcpi_total_retrans": 1, "tcpi_last_data_sent_ms": 4}}}}}}], "anon_conns": [{{"conn_id": 4, "status": {{"connected": true, "loopback": false}}, "peer": {_PEER}}}]}}}}"""
_OPS = """{"ops": [{"description": "osd_op(x)", "initiated_at": "2025-11-21T10:00:00.0+0000", "age": 31.5,
    "duration": 31.5, "type_data": {"flag_point": "delayed", "events": [{"event": "a", "time": "b", "duration": 0.1}]}}],
    "Ops": [], "num_blocked_ops": 1, "complaint_time": 30.0, "num to keep": 20, "threshold to keep": 10}"""

READERS: dict[str, tuple[Callable[[bytes], Any], str]] = {
    "vector": (lambda data: parse_vector(data, source="x"), _VECTOR),
    "matrix": (lambda data: parse_matrix(data, source="x"), _MATRIX),
    "rules": (lambda data: parse_rules(data, source="x"), _RULES),
    "alertmanagers": (
        lambda data: parse_alertmanagers(data, source="x"),
        '{"status": "success", "data": {"activeAlertmanagers": [{"url": "http://x"}]}}',
    ),
    "retention": (
        lambda data: parse_retention(data, source="x"),
        '{"status": "success", "data": {"storageRetention": "15d or 10GiB"}}',
    ),
    "cluster map": (_plain(lambda data: parse_cephmap(data, read_ts=1.0)), _MAP),
    "status": (
        _plain(lambda data: parse_status(data, data)),
        """{"health": {"status": "HEALTH_WARN", "checks": {"POOL_FULL": {"severity": "HEALTH_WARN", "summary": {"message": "x",
        "count": 1}, "muted": false}}}, "checks": {"POOL_FULL": {"detail": [{"message": "pool 'a' is full"}]}}, "pgmap":
        {"pgs_by_state": [{"state_name": "active+clean", "count": 3}], "misplaced_objects": 1, "degraded_objects": 2}}""",
    ),
    "OSDs": (
        _plain(lambda data: parse_osds(data, {"n1": [0]})),
        """{"nodes": [{"id": -2, "name": "n1", "type": "host", "children": [0]}, {"id": 0, "type": "osd",
        "device_class": "hdd", "status": "up", "reweight": 1}], "stray": []}""",
    ),
    "nodes": (_plain(lambda data: parse_osds({"nodes": []}, data)), '{"node-0": [0]}'),
    "class": (
        _plain(lambda data: class_of(data, ["hdd", "ssd"])),
        '{"steps": [{"op": "take", "item_name": "default~ssd"}]}',
    ),
    "versions": (
        _plain(parse_versions),
        '{"osd": {"ceph version 19.2.3 (c92aebb) squid (stable)": 3}, "overall": {"ceph version 19.2.3 (x) y": 3}}',
    ),
    "stored OSDs": (read_osds, '{"osds": [[0, "hdd", "n1", ""]], "hosts": {"n1": [0]}}'),
    "OSD bench": (
        lambda data: parse_osd_bench(data.decode("utf-8", "replace")),
        '{"bytes_written": 100, "blocksize": 10, "elapsed_sec": 1.7, "bytes_per_sec": 619.5, "iops": 147.6}',
    ),
    "latencies": (
        lambda data: parse_latencies(data, data, source="x"),
        f"""{{"osd": {{"op_w_latency_in_bytes_histogram": {{"axes": [{{"ranges": [{{"max": 99}}, {{"min": 100}}]}}, {{"ranges":
        [{{}}]}}], "values": [[1], [2]]}}, "op_w_latency": {_LAT}}}}}""",
    ),
    "stages": (
        lambda data: parse_stages(data, source="x"),
        f'{{"osd": {{"op_w_latency": {_LAT}, "op_w_process_latency": {_LAT}, "op_w_prepare_latency": {_LAT}}},'
        f' "bluestore": {{"txc_commit_lat": {_LAT}}}}}',
    ),
    "onodes": (
        lambda data: parse_onode_cache(data, source="x"),
        '{"bluestore": {"onode_hits": 3, "onode_misses": 4}}',
    ),
    "compression": (
        lambda data: parse_compression(data, source="x"),
        f'{{"bluestore": {{"compressed": 3, "compress_success_count": 4, "compress_lat": {_LAT}}}}}',
    ),
    "tier": (lambda data: parse_tier(data, source="x"), '{"osd": {"tier_promote": 3}}'),
    "database": (
        lambda data: parse_database(data, source="x"),
        f'{{"bluefs": {{"db_total_bytes": 1, "slow_total_bytes": 2, "compact_lat": {_LAT}}}, "rocksdb": {{"compact_completed": 1,'
        ' "compact_lasted": 2.5}}',
    ),
    "heartbeats": (lambda data: parse_heartbeats(data, source="x"), _OSD_NETWORK),
    "connections": (lambda data: parse_dump(data, source="x"), _CONNECTIONS),
    "peers": (lambda data: parse_names(data, source="x"), _CONNECTIONS),
    "release": (lambda data: parse_can_dump(data, source="x"), '{"version": "19.2.3"}'),
    "blocked": (lambda data: parse_blocked(data, source="x"), _OPS),
    "slow": (lambda data: parse_slow(data, source="x"), _OPS),
    "smartctl": (lambda data: parse_smartctl(data, source="x"), _SMART),
    "fio": (
        lambda data: parse_fio(b"{\n" + data.strip()[1:-1] + b"\n}", job="a"),
        f'{{"fio version": "fio-3.33", "jobs": [{{"jobname": "a", "error": 0, "read": {_FIO}, "write": {_FIO}}}]}}',
    ),
    "iperf3": (
        parse_iperf3,
        '{"end": {"streams": [{}], "sum_sent": {"retransmits": 1}, "sum_received": {"bits_per_second": 8.5}}}',
    ),
    "rbd info": (parse_info, '{"size": 268435456, "features": ["layering"], "snapshot_count": 0, "parent": {"a": 1}}'),
    "rbd status": (parse_watchers, '{"watchers": [{"address": "127.0.0.1:0/35", "client": 4176}]}'),
    "rbd metadata": (parse_metadata, '{"plumbline.owner": "node-1"}'),
    "rbd diff": (parse_extents, '[{"offset": 0, "length": 4194304, "exists": "true"}]'),
    "pod": (_kubernetes(Pod), _POD),
    "pods": (_kubernetes(Pods), f'{{"items": [{_POD}]}}'),
    "claim": (
        _kubernetes(Claim),
        '{"metadata": {"name": "a"}, "spec": {"storageClassName": "b"}, "status": {"phase": "c"}}',
    ),
    "events": (_kubernetes(Events), '{"items": [{"type": "a", "reason": "b", "series": {"lastObservedTime": "c"}}]}'),
    "template": (_kubernetes(PodTemplate), '{"template": {"spec": {}}}'),
    "Kubernetes' version": (_kubernetes(Version), '{"gitVersion": "v1.34.4"}'),
    "claim file": (lambda data: parse_claim(data, name="a", source="x"), _RECORD),
    "probe record": (lambda data: jsontext.decode(data, ProbeRecord), '{"runs": {}}'),
    "worker": (
        lambda data: parse_answer(data, Timed | Refused | Failed, source="x"),
        '{"kind": "done", "spent": {"put": [1, 2]}, "version": "1"}',
    ),
    "mount": (verdict, '{"mount_id": 36, "errno": 0}'),
    "node": (
        _typed(NodeState),
        '{"host": "a", "version": "1", "model": "m", "fingerprint": {}, "closed": {"a": "b"}, "measured": {"sha256": "x"}}',
    ),
    "parcel": (_typed(Parcel), '{"kind": "class", "text": "x", "signature": "y"}'),
    "inventory": (
        lambda data: parse_inventory(data.decode("utf-8", "replace"), where="x"),
        '{"_meta": {"hostvars": {"a": {"role": "hdd", "ansible_port": 22}}}, "all": {"children": ["s"]}, "s": {"hosts": ["a"]}}',
    ),
    "YAML": (lambda data: read_yaml(data.decode("utf-8", "replace"), where="x"), '{"a": {"b": [1, 2.5, "c"]}}'),
    "page of metrics": (lambda data: racks_of(data.decode("utf-8", "replace"), where="x"), '{"a": 1}'),
}
_BIG = {"many values", "many objects"}


def test_every_reader_takes_its_own_answer() -> None:
    for name, (read, valid) in READERS.items():
        if name != "page of metrics":
            assert read(_document(valid)) is not None, name


def _offence(read: Callable[[bytes], Any], data: bytes) -> str:
    """What is wrong with how the reader took the answer; empty: it refused it on one line, or took what it is."""
    try:
        value = read(data)
    except PlumblineError as error:
        lines = str(error).splitlines()
        return "" if len(lines) == 1 and len(lines[0]) < 600 else f"an error of {len(lines)} lines: {str(error)[:300]}"
    except DecodeError:  # of our own files: whoever reads one sets it aside
        return ""
    except Exception as error:  # noqa: BLE001  (what this test looks for)
        return f"{type(error).__name__}: {str(error)[:100]}"
    return "a figure that is not finite" if not_finite(value) else ""


def test_no_reader_breaks_over_a_hostile_answer() -> None:
    wrong, tried = [], 0
    for name, (read, valid) in READERS.items():
        answers = (
            (key, data) for key, data in ANY.items() if key not in _BIG or name in ("vector", "pods", "inventory")
        )
        for what, data in chain(answers, mutations(_document(valid))):
            tried += 1
            if offence := _offence(read, data):
                wrong.append(f"{name}: {what}: {offence}")
    assert "\n".join(wrong) == ""
    assert tried > 3000
