"""Review, acceptance and choice over the files of 200 simulated nodes of two classes, with a real key."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import Source
from plumbline.baseline.signature import sign, signer
from plumbline.baseline.site import parse_site
from plumbline.errors import BaselineError
from plumbline.fleet.acceptance import Accepted, accept, review
from plumbline.fleet.classes import class_file
from plumbline.fleet.node import FileState, NodeState
from plumbline.fleet.push import choose
from plumbline.fleet.recording import due
from plumbline.fleet.store import ACCEPTED, CLASSES, RECORDED, Acceptance, Store, sha256
from support.fleet_files import LATENCIES_S, node_text

NAMES = [f"stor{number:03}" for number in range(200)]
LAME, CACHED = "stor077", "stor150"


def class_of(name: str) -> str:
    return "r740-hdd" if NAMES.index(name) < 150 else "r760-hdd"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = Store(tmp_path_factory.mktemp("recorded") / "fleet")
    for name in NAMES:
        text = node_text(
            name,
            fleet_class=class_of(name),
            slow=1.6 if name == LAME else 1.0,
            fast_osd=2.5 if name == CACHED else 1.0,
        )
        store.write(RECORDED, f"{name}.yaml", text)
    return store.path


@pytest.fixture(scope="module")
def accepted(recorded: Path, tmp_path_factory: pytest.TempPathFactory, key: Path) -> Path:
    """All but the two that are out of line."""
    path = tmp_path_factory.mktemp("accepted") / "fleet"
    shutil.copytree(recorded, path)
    accept_all(Store(path), key, without=(LAME, CACHED))
    return path


def accept_all(store: Store, key: Path, **more: tuple[str, ...]) -> Accepted:
    reviewed = review(store, without=more.get("without", ()))
    return accept(
        store,
        reviewed,
        by="Ada",
        key=key.name,
        sign=lambda text: sign(text, key, environment=os.environ),
        although=more.get("although", ()),
    )


def test_the_lame_and_the_cached_node_are_found_and_no_other(recorded: Path) -> None:
    reviewed = review(Store(recorded))
    assert {row.node for row in reviewed.outliers} == {LAME, CACHED}
    worst = max(reviewed.outliers, key=lambda row: row.ratio)
    assert worst.node == LAME
    assert worst.ratio == pytest.approx(1.6, rel=0.2)
    assert worst.middle == pytest.approx(LATENCIES_S[worst.entry.workload], rel=0.02) or worst.figure == "iops"


def test_nothing_is_signed_as_long_as_a_node_is_out_of_line(recorded: Path, key: Path) -> None:
    store = Store(recorded)
    with pytest.raises(BaselineError, match=f"out of line with their class: {LAME}, {CACHED}"):
        accept_all(store, key)
    assert not store.names(ACCEPTED, ".yaml")


def test_the_set_is_signed_each_file_verifies_and_classes_have_the_medians(
    recorded: Path, tmp_path: Path, key: Path, allowed: Path
) -> None:
    shutil.copytree(recorded, tmp_path / "fleet")
    store = Store(tmp_path / "fleet")
    done = accept_all(store, key, without=(LAME,), although=(CACHED,)).acceptance
    assert len(done.nodes) == 199
    assert store.names(RECORDED, ".yaml") == [LAME]
    assert any(CACHED in text for text in done.outliers)
    assert any("its class" in text for text in done.nodes["stor000"].beside)
    for folder, files in ((ACCEPTED, done.nodes), (CLASSES, done.classes)):
        for name in list(files)[:5]:
            found = store.accepted(folder, files, name)
            assert found is not None
            text, signature = found
            assert signer(text.encode(), signature.encode(), allowed, environment=os.environ) == "ada@example"
    (_, site) = store.loaded(CLASSES)["r740-hdd"]
    assert len(site.file.hosts) == 149
    entry = next(entry for entry in site.entries if entry.workload == "randread-4k-qd1-j1")
    assert entry.source is Source.CLASS
    assert entry.latency["p50"] == pytest.approx(8e-3, rel=0.02)
    assert entry.tolerance_ratio == pytest.approx(1.25)
    assert CACHED not in store.loaded(CLASSES)["r760-hdd"][1].file.hosts


def test_an_entry_without_a_figure_is_in_no_class() -> None:
    bare = "- {workload: icmp-rtt-56, operation: round-trip, device_class: 25g, latency: {p99: 1ms}}\n"
    texts = {name: node_text(name, fleet_class="box") + bare for name in NAMES[:3]}
    sites = {name: parse_site(text, where=name, host=None) for name, text in texts.items()}
    file = class_file("box", sites, when=datetime(2026, 11, 25, tzinfo=UTC), by="Ada")
    assert {entry.device_class for entry in file.entries} == {"10g", "hdd"}


def test_a_file_that_was_changed_since_is_not_given_out(accepted: Path, tmp_path: Path) -> None:
    shutil.copytree(accepted, tmp_path / "fleet")
    store = Store(tmp_path / "fleet")
    done = last(store)
    text = store.text(ACCEPTED, "stor000.yaml") or ""
    store.write(ACCEPTED, "stor000.yaml", text.replace("1.25", "9"))
    with pytest.raises(BaselineError, match="changed since it was accepted"):
        store.accepted(ACCEPTED, done.nodes, "stor000")


def test_a_class_that_drifts_over_a_release_is_said_with_what_else_changed(
    accepted: Path, tmp_path: Path, key: Path
) -> None:
    shutil.copytree(accepted, tmp_path / "fleet")
    store = Store(tmp_path / "fleet")
    for name in NAMES[:150]:
        text = node_text(name, fleet_class=class_of(name), seed=1, slow=1.5, ceph="19.2.3")
        store.write(RECORDED, f"{name}.yaml", text)
    done = accept_all(store, key, without=(CACHED,))
    assert "class r740-hdd: hdd randread-4k-qd1-j1 read: latency.p50 is 1.5" in done.drifted[0]
    assert "meanwhile ceph 18.2.7 → 19.2.3" in done.drifted[0]
    assert all("r740-hdd" in line for line in done.drifted)
    assert len(store.names("acceptances", ".json")) == 2


def last(store: Store) -> Acceptance:
    found = store.last_acceptance()
    assert found is not None
    return found


def state(name: str, text: str = "", **more: object) -> NodeState:
    measured = FileState(sha256=sha256(text), recorded="2026-11-25T12:00:00+00:00") if text else None
    values = {"fingerprint": Fingerprint(ceph="18.2.7", kernel="6.12.48", disks={f"S-{name}": "HGST HUS72"})} | more
    return NodeState(host=name, version="0.1.0", measured=measured, **values)  # type: ignore[arg-type]


def test_who_gets_what(accepted: Path) -> None:
    store = Store(accepted)
    done = last(store)
    own = store.text(ACCEPTED, "stor000.yaml") or ""
    other = Fingerprint(disks={"S-new": "HGST HUS72"})
    assert choose("stor000", "r740-hdd", state("stor000", own), done).there
    assert choose("stor000", "r740-hdd", state("stor000"), done).kind == "measured"  # reinstalled, the same disks
    assert choose("stor000", "r740-hdd", state("stor000", fingerprint=other), done).kind == "class"  # replaced
    assert choose(LAME, "r740-hdd", state(LAME), done).kind == "class"
    assert choose("new", "unknown", state("new"), done).kind == ""
    newer = FileState(sha256="x", recorded="2026-11-26T00:00:00+00:00")
    assert choose("stor000", "r740-hdd", _newer(newer), done).kind == ""


def _newer(measured: FileState) -> NodeState:
    return NodeState(host="stor000", version="0.1.0", measured=measured)


def test_only_what_changed_is_due(recorded: Path) -> None:
    kept = {name: site for name, (_, site) in Store(recorded).loaded(RECORDED).items()}
    states = {name: state(name) for name in NAMES}
    assert due(kept, states, everything=False) == {}
    for name in NAMES[:3]:
        states[name] = state(name, fingerprint=Fingerprint(ceph="19.2.3", kernel="6.12.48"))
    states["new"] = state("new")
    found = due(kept, states, everything=False)
    assert sorted(found) == ["new", *NAMES[:3]]
    assert found["stor000"] == "ceph: 18.2.7 → 19.2.3"
    assert len(due(kept, states, everything=True)) == 201


def test_the_acceptance_says_who_when_and_on_what(accepted: Path) -> None:
    store = Store(accepted)
    (name,) = store.names("acceptances", ".json")
    said = json.loads(store.text("acceptances", f"{name}.json") or "")
    assert said["accepted_by"] == "Ada"
    assert said["nodes"]["stor000"]["fingerprint"]["ceph"] == "18.2.7"
