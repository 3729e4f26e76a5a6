"""Site and recorded baseline files: what is read, every refusal by its message, and writing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from plumbline.baseline.files import Latencies
from plumbline.baseline.model import Source
from plumbline.baseline.record.text import format_record
from plumbline.baseline.site import Device, LevelSpread, SiteEntry, SiteFile, parse_site, read_site
from plumbline.baseline.units import Iops, Latency, Throughput
from plumbline.config.workloads import load_catalogue
from plumbline.errors import BaselineError
from support.offenders import for_every

CATALOGUE = load_catalogue()

HAND_WRITTEN = """\
schema_version: 1
entries:
- workload: randread-4k-qd1-j1
  device_class: nvme
  latency: {p50: 84us, p99: 160us}
"""

MEASURED = """\
schema_version: 1
source: measured
host: storage1
recorded: 2025-11-03T10:22:41Z
kernel: 6.12.0
tools: {plumbline: 0.1.0, fio: fio-3.33}
devices:
- {name: nvme0n1, model: Micron 7450, serial: "0123", device_class: nvme}
entries:
- workload: randread-4k-qd1-j1
  operation: read
  device_class: nvme
  device: nvme0n1
  latency: {mean: 86.5us, p50: 84us, p95: 120us, p99: 160us, p999: 0.4ms, max: 2ms}
  runs: 5
  p50_of_runs: [83us, 84us, 84us, 84us, 86us]
  median_of_runs: 84us
  mad_ratio: 0.0
  spread_ratio: 1.036
  tolerance_ratio: 1.25
- workload: randwrite-4k-qd1-j1
  device_class: nvme
  rate_iops: 50
  latency: {p50: 20us}
  throughput: 41.3 MiB/s
  iops: 10573.2
"""


def parse(text, where="/etc/plumbline/ours.yaml", host="storage1"):
    return parse_site(text, where=where, host=host)


def test_a_hand_written_file_needs_little():
    (entry,) = parse(HAND_WRITTEN).entries
    assert (entry.source, entry.profile, entry.layer, entry.operation) == (Source.SITE, "ours", "disk", "read")
    assert entry.latency == {"p50": 84e-6, "p99": 160e-6}
    assert (entry.iops, entry.throughput, entry.tolerance_ratio, entry.measured) == (None, None, None, None)
    assert (entry.level_spread, entry.calm_seconds) == ({}, None)
    assert (entry.load_ops_per_second, entry.load_bytes_per_second) == (None, None)
    assert entry.config_hash == CATALOGUE.by_id["randread-4k-qd1-j1"].config_hash()


def test_a_measured_file():
    read, write = parse(MEASURED).entries
    assert read.source is Source.MEASURED
    assert read.measured == datetime(2025, 11, 3, 10, 22, 41, tzinfo=UTC).timestamp()
    assert read.latency["p999"] == 0.0004
    assert read.tolerance_ratio == 1.25
    assert write.config_hash == CATALOGUE.by_id["randwrite-4k-qd1-j1"].config_hash(rate_iops=50)
    assert write.throughput == pytest.approx(41.3 * 1048576)
    assert write.iops == 10573.2


def test_a_kept_hash_that_is_no_longer_the_catalogues_is_kept():
    """Measured with other parameters of that name: not an error, but never comparable."""
    text = HAND_WRITTEN + "  config_hash: 0123456789ab\n"
    assert parse(text).entries[0].config_hash == "0123456789ab"


@for_every(
    ("old", "new", "message"),
    [
        ("schema_version: 1", "schema_version: '1'", "schema_version = '1': this Plumbline reads version 1"),
        ("schema_version: 1\n", "", "schema_version: is missing; write schema_version: 1"),
        (
            "p50: 84us",
            "p50: 0.000084",
            "entries[0].latency.p50 = 8.4e-05: expected a figure with its unit, such as 412us",
        ),
        ("p50: 84us", "p50: 84", "entries[0].latency.p50 = 84: expected a figure with its unit"),
        ("p50: 84us", "p50: 0us", "latency.p50 = '0us': must be greater than 0; leave out what was not measured"),
        ("p50: 84us", "p51: 84us", "entries[0].latency.p51: no such key"),
        ("p99: 160us", "p99: 16us", "entries[0].latency.p99 = '16us': is below p50 = 84us"),
        ("{p50: 84us, p99: 160us}", "{}", "entries[0]: has no figure; write latency, iops or throughput"),
        ("randread-4k-qd1-j1", "randread-4k-q1", "entries[0].workload = 'randread-4k-q1': no such workload"),
        ("device_class: nvme", "class: nvme", "entries[0].class: no such key"),
        ("device_class: nvme", "device_class: ''", "entries[0].device_class = '': expected `str` of length >= 1"),
        ("device_class: nvme", "device_class: 7", "entries[0].device_class = 7: expected `str`, got `int`"),
        (
            "device_class: nvme",
            "device_class: nvme\n  operation: write",
            "entries[0].operation = 'write': the workload has: read",
        ),
        (
            "device_class: nvme",
            "device_class: nvme\n  tolerance_ratio: 0.9",
            "entries[0].tolerance_ratio = 0.9: expected `float` >= 1",
        ),
        ("device_class: nvme", "device_class: nvme\n  tolerance_ratio: .nan", "a number that is not finite"),
        (
            "device_class: nvme",
            "device_class: nvme\n  level_spread: {2m: 0.1}",
            "entries[0].level_spread.2m: no such key",
        ),
        ("device_class: nvme", "device_class: nvme\n  level_spread: {1m: -0.1}", "level_spread.1m = -0.1: expected"),
        ("device_class: nvme", "device_class: nvme\n  calm_seconds: .inf", "a number that is not finite"),
        ("device_class: nvme", "device_class: nvme\n  calm_seconds: 20s", "calm_seconds = '20s': expected `float"),
        ("device_class: nvme", "device_class: nvme\n  load_ops_per_second: -1", "load_ops_per_second = -1: expected"),
        (
            "device_class: nvme",
            "device_class: nvme\n  load_bytes_per_second: .nan",
            "a number that is not finite",
        ),
        ("device_class: nvme", "device_class: nvme\n  throughput: 9 MB", "throughput = '9 MB': expected a figure"),
        ("device_class: nvme", "device_class: nvme\n  config_hash: xyz", "config_hash = 'xyz': expected"),
        ("entries:", "source: guessed\nentries:", "source = 'guessed': invalid enum value"),
        (
            "entries:",
            "recorded: 2025-11-03T10:22:41\nentries:",
            "recorded = '2025-11-03 10:22:41': needs a time zone",
        ),
        ("entries:", "recorded: yesterday\nentries:", "recorded = 'yesterday': invalid"),
        ("entries:", "source: measured\nentries:", "host: is required in a measured baseline"),
        ("- workload", "-\n- workload", "entries[0]: expected `object`, got `null`"),
        ("schema_version: 1", "schema_version: 1\nschema_version: 1", "duplicate key 'schema_version'"),
        ("entries:", "entries: [", "not valid YAML"),
    ],
)
def test_refusals_name_file_key_value_and_reason(old, new, message):
    with pytest.raises(BaselineError) as caught:
        parse(HAND_WRITTEN.replace(old, new, 1))
    assert str(caught.value).startswith("/etc/plumbline/ours.yaml:")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "7", "schema_version", "- a: 1"])
def test_not_a_mapping(text):
    with pytest.raises(BaselineError, match="expected a mapping that begins with schema_version: 1"):
        parse(text)


def test_no_entries():
    with pytest.raises(BaselineError, match="entries: has no entries; write at least one"):
        parse("schema_version: 1\nentries: []")


def test_the_same_figure_twice():
    text = HAND_WRITTEN + HAND_WRITTEN.partition("entries:\n")[2]
    with pytest.raises(BaselineError, match=r"entries\[1\]\.workload = .*duplicates entries\[0\]"):
        parse(text)


def test_the_same_workload_with_another_cap_is_another_figure():
    text = HAND_WRITTEN + HAND_WRITTEN.partition("entries:\n")[2] + "  rate_iops: 50\n"
    assert len({entry.config_hash for entry in parse(text).entries}) == 2


def test_a_measured_baseline_belongs_to_its_host():
    with pytest.raises(BaselineError) as caught:
        parse(MEASURED, host="storage2")
    assert str(caught.value) == (
        "/etc/plumbline/ours.yaml: host = 'storage1': measured on another host than this one (storage2); record one "
        "here with `plumbline baseline record`, or write source: site to judge this host by it"
    )


def test_a_site_file_may_come_from_any_host():
    text = MEASURED.replace("source: measured", "source: site")
    assert {entry.source for entry in parse(text, host="storage2").entries} == {Source.SITE}


RECORDED = SiteFile(
    schema_version=1,
    source="measured",
    host="storage1",
    recorded=datetime(2025, 11, 3, 10, 22, 41, tzinfo=UTC),
    kernel="6.12.0",
    tools={"plumbline": "0.1.0", "fio": "fio-3.33"},
    devices=(Device(name="nvme0n1", device_class="nvme", model="Micron 7450: «x»", serial="0123"),),
    entries=(
        SiteEntry(
            workload="randread-4k-qd1-j1",
            operation="read",
            device_class="nvme",
            device="nvme0n1",
            latency=Latencies(p50=Latency.of(0.00008421553), p99=Latency.of(0.00016)),
            iops=Iops.of(10573.25),
            throughput=Throughput.of(43308032.0),
            tolerance_ratio=1.25,
            runs=5,
            p50_of_runs=(Latency.of(0.00008421553), Latency.of(0.000085)),
            median_of_runs=Latency.of(0.00008421553),
            mad_ratio=0.0,
            spread_ratio=1.0093,
            level_spread=LevelSpread.of({"1m": 0.021, "5m": 0.0}),
            calm_seconds=20.0,
            load_ops_per_second=0.0,
            load_bytes_per_second=1500.0,
            config_hash="0123456789ab",
        ),
    ),
)

RECORDED_TEXT = """\
recorded: '2025-11-03T10:22:41Z'
kernel: 6.12.0
tools: {plumbline: 0.1.0, fio: fio-3.33}
devices:
- {name: nvme0n1, device_class: nvme, model: 'Micron 7450: «x»', serial: '0123'}

entries:

# --- disk: the disks of this host, raw and in Plumbline's own files (1 figure set, 5 runs each)
- workload: randread-4k-qd1-j1
  operation: read
  device_class: nvme
  device: nvme0n1
  latency: {p50: 84.21553us, p99: 160us}
  iops: 10573.25 IOPS
  throughput: 43.308032 MB/s
  tolerance_ratio: 1.25
  runs: 5
  p50_of_runs: [84.21553us, 85us]
  median_of_runs: 84.21553us
  mad_ratio: 0.0
  spread_ratio: 1.0093
  level_spread: {1m: 0.021, 5m: 0.0}
  calm_seconds: 20.0
  load_ops_per_second: 0.0
  load_bytes_per_second: 1500.0
  config_hash: 0123456789ab
"""


def test_the_written_text():
    _, mark, text = format_record(RECORDED).partition("recorded: ")
    assert mark + text == RECORDED_TEXT


def test_written_and_read_again():
    assert parse(format_record(RECORDED)).file == RECORDED


def test_unreadable_files(tmp_path):
    def message(path):
        with pytest.raises(BaselineError) as caught:
            read_site(path, host="storage1")
        return str(caught.value).removeprefix(f"{path}: ")

    missing = tmp_path / "missing.yaml"
    assert message(missing) == "can't be read: No such file or directory"
    assert message(tmp_path) == "can't be read: Is a directory"
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"schema_version: \xff")
    assert message(binary) == "is not UTF-8 at byte 16"
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (2**20 + 1))
    assert message(large) == "can't be read: it is longer than 1048576 bytes"


def test_read_site(tmp_path):
    path = tmp_path / "node.yaml"
    path.write_text(HAND_WRITTEN)
    assert read_site(path, host="any").entries[0].profile == "node"
