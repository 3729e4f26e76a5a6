"""The state file: whatever stands there, the daemon starts or says one line, and not one byte is lost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.errors import StateError
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.state import SCHEMA_VERSION, DiskRecord, NewerState, ProbeRecord, StateStore, read_state

any_text = st.text(st.characters(codec=None), max_size=8)  # lone surrogates as well
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, 2, 3, 4, -1, 2**63, 2**64, 10**25, "success", "failure", 1_760_000_000.5]),
    st.floats(),
    any_text,
)
KEYS = ["schema_version", "probes", "disks", "counts", "sum", "1000", "0", "read"]
for kind in (ProbeRecord, ProbeResult, OperationResult, DiskRecord):
    KEYS += kind.__struct_fields__
keys = st.one_of(st.sampled_from(KEYS), any_text)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6), max_leaves=20
)
records = st.dictionaries(st.sampled_from(ProbeRecord.__struct_fields__), trees, max_size=5)
files = st.fixed_dictionaries(
    {"schema_version": st.integers(-1, 5), "probes": st.dictionaries(any_text, records, max_size=3)},
    optional={"disks": st.lists(trees, max_size=3)},
)
REAL = (Path(__file__).parents[1] / "fixtures" / "state" / "version-3.json").read_bytes()
written = st.one_of(files, trees).map(lambda tree: json.dumps(tree).encode())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """What a real daemon wrote, with a piece cut out and another put in."""
    begin = draw(st.integers(0, len(REAL)))
    end = draw(st.integers(begin, min(len(REAL), begin + 40)))
    return REAL[:begin] + draw(st.binary(max_size=12)) + REAL[end:]


@contextmanager
def storage(*, marked: bool) -> Iterator[Path]:
    memory = Path("/dev/shm")  # each example syncs some files
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        path = Path(name)
        if marked:
            store = StateStore(path)
            store.open()
            store.close()
        yield path


def contents(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in path.iterdir()]


@given(st.one_of(written, damaged(), st.binary(max_size=64)))
@example(b"[" * 200_000)
@example(b'{"schema_version":3,"probes":' + b'{"a":' * 100_000)
@example(b'{"schema_version":3,"probes":{"a":{"last_skip":"\\u0000dc"}}}')
@example(b'{"schema_version":3,"probes":{"a":{"runs":{"success":1,"success":-1}}}}')
@example(b'{"schema_version":3,"probes":{"a":{"runs":{"success":1}},"a":{}}}')
@example(b'\xef\xbb\xbf{"schema_version":3,"probes":{}}')
def test_the_daemon_starts_or_says_why_and_nothing_is_lost(data: bytes) -> None:
    with storage(marked=True) as path:
        (path / "state.json").write_bytes(data)
        store = StateStore(path)
        try:
            store.open()
        except NewerState:
            assert (path / "state.json").read_bytes() == data
            return
        assert data in contents(path)
        aside = (path / "state.json.damaged-1").exists()
        remembered = dict(store._probes)
        store.put("probe", store.get("probe").with_skip("load", "busy"))
        assert not store.save_failed
        assert read_state(path) == store._probes
        assert remembered.keys() <= read_state(path).keys()
        store.close()
        assert (data in contents(path)) >= aside


@given(st.one_of(written, damaged(), st.binary(max_size=64)))
def test_without_our_mark_the_content_decides(data: bytes) -> None:
    with storage(marked=False) as path:
        (path / "state.json").write_bytes(data)
        store = StateStore(path)
        said = ""
        try:
            store.open()
        except StateError as error:
            said = str(error)
        if said:
            assert "\n" not in said
            assert [each.name for each in path.iterdir()] == ["state.json"]
        else:
            assert b'"probes"' in data
            store.close()
        assert (path / "state.json").read_bytes() == data


@given(name=any_text, message=any_text, device=any_text, serial=any_text)
def test_every_text_comes_back(name: str, message: str, device: str, serial: str) -> None:
    disk = DiskRecord(device, serial, 1.0, 2.0)
    result = ProbeResult(
        probe=name, layer="disk", device_class=device, workload="w", config_hash="h", tool="fio", tool_version="3.33",
        started=1.0, duration=1.0, outcome=Outcome.FAILURE, message=message,
    )  # fmt: skip
    with storage(marked=True) as path:
        store = StateStore(path)
        store.open()
        store.put_disks([disk])
        store.put(name, ProbeRecord().with_result(result).with_skip(message, serial))
        assert not store.save_failed
        store.close()
        again = StateStore(path)
        again.open()
        assert again.disks == (disk,)
        assert again.get(name) == store.get(name)
        again.close()
        assert msgspec.json.decode((path / "state.json").read_bytes())["schema_version"] == SCHEMA_VERSION
