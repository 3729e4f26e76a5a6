"""Baseline files: whatever stands in one, it is read or refused by BaselineError; what is written is read back."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plumbline.baseline.files import Latencies
from plumbline.baseline.profiles import parse_profile
from plumbline.baseline.record.text import format_record
from plumbline.baseline.site import Device, LoadedSite, SiteEntry, SiteFile, parse_site
from plumbline.baseline.units import Iops, Latency, Throughput, Volume
from plumbline.config.workloads import LAYERS, load_catalogue
from plumbline.errors import BaselineError

CATALOGUE = load_catalogue()
SINGLE = sorted(workload.id for workload in CATALOGUE.by_id.values() if len(workload.operations) == 1)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["84us", "1.5 ms", "0s", "28K IOPS", "202 MB/s", "site", "measured", "randread-4k-qd1-j1", "nvme"]),
    st.datetimes(),
)
keys = st.one_of(
    st.sampled_from([*SiteFile.__struct_fields__, *SiteEntry.__struct_fields__, "p50", "p99", "mean"]),
    st.text(max_size=6),
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=8), max_leaves=20
)
entries = st.dictionaries(keys, documents, max_size=6).map(
    lambda extra: {"workload": "randread-4k-qd1-j1", "device_class": "nvme", "latency": {"p50": "84us"}} | extra
)
files = st.dictionaries(keys, documents, max_size=3).flatmap(
    lambda extra: st.lists(entries, max_size=3).map(lambda rows: {"schema_version": 1, "entries": rows} | extra)
)


def check_message(message):
    assert message.startswith("f.yaml")
    assert "\n" not in message


def read(text):
    try:
        return parse_site(text, where="f.yaml", host="h")
    except BaselineError as error:
        check_message(str(error))
        return None


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text(text):
    assert read(text) is None


@given(st.one_of(documents, files))
def test_any_document(document):
    result = read(yaml.safe_dump(document, allow_unicode=True))
    assert result is None or all(entry.latency or entry.iops or entry.throughput for entry in result.entries)


@given(st.text(max_size=80) | files.map(yaml.safe_dump))
def test_any_text_as_a_profile(text):
    try:
        parse_profile(text, "f.yaml")
    except BaselineError as error:
        check_message(str(error))


base = st.floats(min_value=1e-9, max_value=1e12, allow_nan=False)
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)
recorded = st.builds(
    SiteFile,
    schema_version=st.just(1),
    source=st.just("measured"),
    name=words,
    host=st.just("h"),
    recorded=st.datetimes(min_value=datetime(1970, 1, 2), timezones=st.just(UTC)),
    tools=st.dictionaries(words, words, max_size=2),
    devices=st.lists(st.builds(Device, name=words, device_class=words, model=words, serial=words), max_size=2).map(
        tuple
    ),
    entries=st.lists(
        st.builds(
            SiteEntry,
            workload=st.sampled_from(SINGLE),
            device_class=words.filter(bool),
            latency=st.builds(Latencies, mean=base.map(Latency.of), p50=base.map(Latency.of)),
            iops=st.none() | base.map(Iops.of),
            throughput=st.none() | base.map(Throughput.of),
            mad_ratio=st.none() | st.floats(min_value=0, max_value=1000),
            p50_of_runs=st.lists(base.map(Latency.of), max_size=3).map(tuple),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda entry: (entry.workload, entry.device_class),
    ).map(tuple),
)


@given(recorded)
def test_what_is_written_is_read_back(file):
    result = parse_site(format_record(file), where="f.yaml", host="h")
    assert isinstance(result, LoadedSite)
    bottom_up = sorted(file.entries, key=lambda entry: LAYERS.index(CATALOGUE.by_id[entry.workload].layer))
    assert result.file == msgspec.structs.replace(file, entries=tuple(bottom_up))


@given(st.one_of(scalars, st.text()), st.sampled_from([Latency, Throughput, Iops, Volume]))
def test_units_are_total(value, kind):
    try:
        figure = kind.parse(value)
    except ValueError:
        return
    assert 0 < figure.value < float("inf")
    assert figure.step > 0


@given(base, st.sampled_from([Latency, Throughput, Iops, Volume]))
def test_figures_come_back_to_the_same_float(value, kind):
    assert kind.parse(kind.of(value).text).value == value
