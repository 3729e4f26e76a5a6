"""Every file that a person or a disk can spoil, spoilt: one clear line or accepted, never a traceback, soon, in little
memory. Everything that the examples, the documentation and the profiles show is in the corpus."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
import yaml

from plumbline.baseline.profiles import parse_profile
from plumbline.baseline.site import read_site
from plumbline.config import model
from plumbline.errors import PlumblineError
from plumbline.probes.run.histogram import EDGES, OperationTotals
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.state import ProbeRecord, StateStore, open_storage
from support.mutilated import BOMBS, mutilated

TOP = Path(__file__).parents[2]
EACH_WITHIN_S = 5.0
"""A bomb takes minutes or for ever; a machine that others keep busy is slow, too."""
GROWTH_MIB = 150
"""Of the test process over all files of a test; a bomb takes gigabytes."""


def uncommented(text: str) -> str:
    """The example with what it shows in comments: ``  # - type: rtt`` is a probe, a sentence is none."""
    return re.sub(r"(?m)^( *)# ((?:- )?[a-z_]+:|  [a-z_]+:)", r"\1\2", text)


def shown_in_docs() -> list[bytes]:
    found: list[bytes] = []
    for page in (*sorted((TOP / "docs").glob("*.md")), TOP / "README.md"):
        found += [block.encode() for block in re.findall(r"(?s)```yaml\n(.*?)```", page.read_text())]
    return found


EXAMPLE = (TOP / "deploy/plumbline.yaml").read_text()
CONFIGS = [EXAMPLE.encode(), uncommented(EXAMPLE).encode(), *shown_in_docs()]
PROFILES = sorted((TOP / "exporter/plumbline/baseline/profiles").glob("*.yaml"))
SITE = b"""\
schema_version: 1
source: site
entries:
- workload: randread-4k-qd1-j1
  device_class: ssd
  latency: {p50: 84us, p99: 1.5ms}
  iops: 28K IOPS
- workload: write-1m-qd1-j1
  device_class: ssd
  throughput: 202 MB/s
"""


def result(started: float) -> ProbeResult:
    return ProbeResult(
        probe="fio", layer="disk", device_class="ssd", workload="randread-4k-qd1-j1", config_hash="f8ebba40cbad",
        tool="fio", tool_version="3.33", started=started, duration=10.25, outcome=Outcome.SUCCESS,
        operations=(
            OperationResult(operation="read", iops=812.5, throughput=3_328_000.0, latency={"p50": 0.000412}),
        ),
    )  # fmt: skip


def state_text() -> bytes:
    record = msgspec.structs.replace(
        ProbeRecord().with_result(result(1_700_000_000.5)).with_skip("load", "load 9 per CPU", at=1_700_000_100.0),
        totals={"read": OperationTotals().plus((edge, 3) for edge in EDGES)},
    )
    text = msgspec.json.encode({"schema_version": 3, "probes": {"fio": record}, "disks": []})
    return msgspec.json.format(text, indent=1)


class Bounded:
    """Time of each file, memory of all."""

    def __init__(self) -> None:
        self.before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.refused = self.accepted = 0
        self.slowest_s = 0.0

    def read(self, reader: Callable[[bytes], object], text: bytes) -> None:
        began = time.process_time()
        try:
            reader(text)
        except PlumblineError as error:
            self.refused += 1
            line = str(error)
            assert "\n" not in line, line
            assert 10 < len(line) < 1000, line
            assert line.isprintable(), line
        else:
            self.accepted += 1
        self.slowest_s = max(self.slowest_s, time.process_time() - began)
        assert self.slowest_s < EACH_WITHIN_S, text[:200]

    def check(self) -> None:
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self.before_kib
        assert grown_kib < GROWTH_MIB << 10, f"grown by {grown_kib >> 10} MiB"
        assert self.refused


@pytest.fixture
def bounded() -> Bounded:
    return Bounded()


def read_config(file: Path) -> Callable[[bytes], object]:
    def read(text: bytes) -> object:
        file.write_bytes(text)
        return model.load(file)

    return read


def test_the_corpus_is_real() -> None:
    """What is spoilt below is right before: else only the first mistake would ever be seen."""
    kinds = set(re.findall(r"type: ([a-z0-9-]+)", uncommented(EXAMPLE)))
    assert len(kinds) >= 8, kinds
    for text in CONFIGS[:2]:
        model.parse(text.decode(), where="f")
    assert len(CONFIGS) >= 5


def test_configurations(tmp_path: Path, bounded: Bounded) -> None:
    read = read_config(tmp_path / "plumbline.yaml")
    for seed, original in enumerate(CONFIGS):
        for text in mutilated(original, seed=seed, count=60):
            bounded.read(read, text)
    bounded.check()
    assert bounded.accepted


@pytest.mark.parametrize("bomb", BOMBS)
def test_configurations_that_explode(bomb: str, tmp_path: Path, bounded: Bounded) -> None:
    text = BOMBS[bomb].encode()
    bounded.read(read_config(tmp_path / "plumbline.yaml"), text)
    bounded.check()


@pytest.mark.parametrize("bomb", BOMBS)
def test_site_files_that_explode(bomb: str, tmp_path: Path, bounded: Bounded) -> None:
    file = tmp_path / "site.yaml"
    for text in (BOMBS[bomb], "schema_version: 1\nentries:\n" + BOMBS[bomb]):
        file.write_text(text)
        bounded.read(lambda _: read_site(file, host="h"), b"")
    bounded.check()


def test_profiles(bounded: Bounded) -> None:
    smallest = min(PROFILES, key=lambda each: each.stat().st_size).read_bytes()
    for text in mutilated(smallest, seed=1, count=25):
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            continue  # they come with the package; a site's own files are read below
        bounded.read(lambda _, decoded=decoded: parse_profile(decoded, "profile.yaml"), text)  # type: ignore[misc]
    bounded.check()


def test_site_files(tmp_path: Path, bounded: Bounded) -> None:
    file = tmp_path / "site.yaml"
    file.write_bytes(SITE)
    read_site(file, host="h")
    for text in mutilated(SITE, seed=2, count=300):
        file.write_bytes(text)
        bounded.read(lambda _: read_site(file, host="h"), text)
    bounded.check()
    assert bounded.accepted


def test_state_files(tmp_path: Path, bounded: Bounded) -> None:
    """Set aside or taken; what is taken can be shown and counted on."""
    folder = tmp_path / "state"
    open_storage(folder).close()

    def read(text: bytes) -> object:
        (folder / "state.json").write_bytes(text)
        store = StateStore(folder)
        store.open()
        try:
            record = store.get("fio")
            for totals in record.totals.values():
                totals.histogram()
            store.put("fio", record.with_result(result(1.0)))
        finally:
            store.close()
        return store

    for text in mutilated(state_text(), seed=3, count=100):
        bounded.accepted += 1
        read(text)
        for aside in folder.glob("*damaged*"):
            assert aside.read_bytes() == text
            aside.unlink()
            bounded.refused += 1
    bounded.check()


def test_numbers_no_clock_and_no_file_can_hold() -> None:
    for text in ("99999999999d", "9" * 400 + "s"):
        with pytest.raises(PlumblineError, match="at most 3650d"):
            model.parse(f"devices: {{health_interval: '{text}'}}", where="f")
    with pytest.raises(PlumblineError, match="at most 1048576TiB"):
        model.parse("probes: [{type: canary, name: a, file_size: 99999999999TiB}]", where="f")


def test_aliases_may_be_used() -> None:
    first = "probes:\n- {type: canary, name: a, device_class: &class ssd}\n"
    text = first + "- {type: canary, name: b, device_class: *class}\n"
    found = model.parse(text, where="f")
    assert [each.name for each in found.probes] == ["a", "b"]
    assert yaml.safe_load(text)["probes"][1]["device_class"] == "ssd"


def test_what_is_refused_is_named() -> None:
    said: Mapping[str, str] = {
        "aliases as probes": "f:7: not valid here: more than 100000 values, aliases counted each time",
        "brackets": "f:1: not valid here: nested deeper than 50 levels",
        "an alias of itself": "f:1: not valid here: *a is inside the value that it repeats",
        "a line of 8 MiB": "f: is longer than 4 MiB; is this a configuration file?",
    }
    for bomb, line in said.items():
        with pytest.raises(PlumblineError) as refused:
            model.parse(BOMBS[bomb], where="f")
        assert str(refused.value) == line
