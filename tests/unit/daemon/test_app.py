"""Where things come from: flag, file, environment; and the slow tier's facts."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from plumbline.background.host import DISK_FACTS, NETWORK_FACTS, HostFacts
from plumbline.baseline.book import Book
from plumbline.claims.claim_file import ClaimState, add_result, identity_of
from plumbline.cli import _parser
from plumbline.commands.node import this_node
from plumbline.config.model import Config, WebConfig
from plumbline.config.options import Overrides, read_config, storage_path
from plumbline.core.roots import Roots
from plumbline.daemon.daemon import Daemon
from plumbline.daemon.running import HostContext, PreparedConfig
from plumbline.errors import ConfigError, Unavailable
from plumbline.probes.run.result import Outcome
from plumbline.probes.run.schedule import Probing
from plumbline.probes.run.state import StateStore
from plumbline.sources.disk.block import BlockDevice
from support.daemon import eventually
from support.hosts import parts, recorded_network, silent_network, tree


@pytest.mark.parametrize(
    ("flag", "file", "environment", "expected"),
    [
        (Path("/a"), "/b", {"STATE_DIRECTORY": "/c", "XDG_STATE_HOME": "/d"}, "/a"),
        (None, "/b", {"STATE_DIRECTORY": "/c", "XDG_STATE_HOME": "/d"}, "/b"),
        (None, None, {"STATE_DIRECTORY": "/c", "XDG_STATE_HOME": "/d"}, "/c"),
        (None, None, {"STATE_DIRECTORY": "/c:/other"}, "/c"),  # systemd lists all that the unit names
        (None, None, {"XDG_STATE_HOME": "/d"}, "/d/plumbline"),
        (None, None, {}, str(Path.home() / ".local/state/plumbline")),
        (Path("here"), None, {}, str(Path.cwd() / "here")),
    ],
)
def test_the_storage_path_is_the_flags_then_the_files_then_the_environments(
    flag: Path | None, file: str | None, environment: dict[str, str], expected: str
) -> None:
    assert storage_path(flag, Config(storage_path=file), environment) == Path(expected)


def test_flags_stand_over_the_file() -> None:
    config = Config(web=WebConfig(listen_address="[::1]:1", max_requests=7), collectors={"disk": False, "link": False})
    held = Overrides(listen_address="127.0.0.1:2", collectors={"disk": True, "ring": False}).apply(config)
    assert held.web == WebConfig(listen_address="127.0.0.1:2", max_requests=7)
    assert held.collectors == {"disk": True, "link": False, "ring": False}
    assert Overrides().apply(config) == config


def test_without_a_file_the_embedded_defaults_hold() -> None:
    assert read_config(None) == Config()


def test_a_bad_address_names_its_flag() -> None:
    with pytest.raises(ConfigError, match=r"^--web\.listen-address = 'x': expected host:port"):
        read_config(None, Overrides(listen_address="x"))


def test_a_collector_that_is_not_known_is_named_with_those_that_are(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("collectors: {softnett: true, tcp: false}")
    with pytest.raises(ConfigError) as caught:
        read_config(file, collectors=("softnet", "tcp"))
    assert str(caught.value) == f"{file}: collectors.softnett: no such collector; there are: softnet, tcp"
    assert read_config(file).collectors == {"softnett": True, "tcp": False}


def test_commands_look_without_writing(tmp_path: Path) -> None:
    options = _parser().parse_args(["probe", "list", "--storage.path", str(tmp_path / "storage")])
    node = this_node(options)
    assert not (tmp_path / "storage").exists()
    assert node.storage == tmp_path / "storage"
    assert [job.name for job in node.plan.continuous] == ["canary"]
    assert "unnoba-2020" in node.profiles
    assert node.sites == ()


def run(facts: HostFacts, name: str) -> None:
    (job,) = [job for job in facts.jobs() if job.name == name]
    job.run(threading.Event())


def test_facts_are_there_once_both_parts_have_been_read(tmp_path: Path) -> None:
    roots = tree(tmp_path, "disks-virtio-vm", "net-virtio-guest")
    network = parts(roots, recorded_network("net-virtio-guest")).network
    facts = HostFacts(network, roots)
    with pytest.raises(Unavailable, match="the disks have not been read yet"):
        _ = facts.devices
    run(facts, NETWORK_FACTS)
    assert not network.wants_refresh
    assert not facts.read_once
    run(facts, DISK_FACTS)
    assert facts.read_once
    assert "vda" in {each.name for each in facts.devices}


def test_a_network_that_does_not_answer_is_told_once_a_look(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    roots = tree(tmp_path, "disks-virtio-vm")
    facts = HostFacts(parts(roots, silent_network()).network, roots)
    run(facts, NETWORK_FACTS)
    run(facts, DISK_FACTS)
    assert facts.read_once
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [NETWORK_FACTS]
    assert facts.devices


def test_disks_that_can_not_be_read_say_why_unless_they_could_before(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    facts = HostFacts(parts(roots, silent_network()).network, roots)
    run(facts, DISK_FACTS)
    with pytest.raises(Unavailable, match=str(tmp_path / "sys")):
        _ = facts.devices

    tree(tmp_path, "disks-virtio-vm")
    run(facts, DISK_FACTS)
    known = facts.devices
    (tmp_path / "sys").rename(tmp_path / "gone")
    run(facts, DISK_FACTS)
    assert facts.devices == known


def test_osds_that_come_and_go_plan_anew_and_are_no_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that is being edited at that moment must not be called a refused reload."""
    file = tmp_path / "plumbline.yaml"
    file.write_text("probes: [{type: canary, name: canary, enabled: false}]")
    store = StateStore(tmp_path / "state")
    store.open()
    world = HostContext(file, store.directory, tree(tmp_path, "disks-virtio-vm"), {}, "node")
    config = read_config(file)
    daemon = Daemon(config, world, store, reread=lambda: read_config(file))

    def outdated(_probing: Probing) -> bool:
        daemon._signals.stop = True  # the last round of the loop
        return True

    prepared: list[Config] = []
    prepare = HostContext.prepare

    def counted(
        world: HostContext, config: Config, disks_before: tuple[BlockDevice, ...] = (), book_before: Book | None = None
    ) -> PreparedConfig:
        prepared.append(config)
        return prepare(world, config, disks_before, book_before)

    monkeypatch.setattr(Probing, "outdated", property(outdated))
    monkeypatch.setattr(HostContext, "prepare", counted)
    running = daemon._wired.running
    file.write_text("probes: [{type: cana")
    daemon._loop()
    eventually(lambda: prepared)
    assert prepared == [running.config], "planned anew, with the configuration in force"
    assert daemon._wired.running is running
    assert daemon._state().reload_ok
    assert "refused" not in caplog.text
    store.close()


def test_a_claim_measured_by_a_job_is_judged_by_a_baseline(tmp_path: Path) -> None:
    """Its file appears while the daemon runs; the next plan has its baseline."""
    figures = tmp_path / "claims.yaml"
    entry = "{workload: claim-1g-write-4k, operation: total, device_class: rook-ceph-block, latency: {mean: 4s}}"
    figures.write_text(f"schema_version: 1\nentries: [{entry}]\n")
    file = tmp_path / "plumbline.yaml"
    file.write_text(f"probes: []\nbaseline: {{files: [{figures}]}}")
    store = StateStore(tmp_path / "state")
    store.open()
    world = HostContext(file, store.directory, tree(tmp_path, "disks-virtio-vm"), {}, "node")
    config = read_config(file)
    daemon = Daemon(config, world, store, reread=lambda: config)
    wired = daemon._wired
    assert wired.outdated == ""
    wired.claims.slot.refresh()
    assert wired.outdated == ""
    identity = identity_of("fast", "rook-ceph-block")
    result = identity.result(
        tool_version="v1.34.4", started=1.0, duration=1.0, outcome=Outcome.FAILURE, message="no room in the pool"
    )
    add_result(store.directory, ClaimState("fast", "rook-ceph-block", 60.0, 9.0), result)
    wired.claims.slot.refresh()
    assert wired.outdated == "the claims of volumes changed"
    daemon._apply(world.prepare(config))
    assert wired.outdated == ""
    judged = {each.target.operation: each.in_force is not None for each in wired.running.book.selection.verdicts}
    assert judged == {"bind": False, "mount": False, "write": False, "total": True}
    shown = {each.spec.name: each.labels for each in wired.exposition.scrape().families}
    assert shown["plumbline_probe_success"] == (("claim/fast",),)
    assert "no room in the pool" in daemon._status_page()
    store.close()
