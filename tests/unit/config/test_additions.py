"""A configuration is extended without a change of anything else in it, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.config.additions import added, block
from plumbline.config.model import Config, parse
from plumbline.config.workloads import load_catalogue
from plumbline.errors import ConfigError

ROOT = Path(__file__).parents[3]
CATALOGUE = load_catalogue()
PROBE = {"type": "fio", "name": "more", "workload": "randread-4k-qd4-j1", "interval": "1h"}
JUDGE = {"ssd": "unnoba-2020"}


def extended(text: str, judge: dict[str, str] = JUDGE) -> tuple[str, Config, Config]:
    new = added(text, where="f", probes=[PROBE], judge=judge, catalogue=CATALOGUE)
    return new, parse(text, where="f", catalogue=CATALOGUE), parse(new, where="f", catalogue=CATALOGUE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "schema_version: 1",
        "{}",
        '{"probes": []}',
        '{"probes": [{"type": "canary", "name": "c"}], "baseline": {"judge": {}}}\n',
        "probes: []\nbaseline: {files: []}\n",
        "probes:\n- type: canary\n  name: c  # mine\n\n# the end\n",
        "baseline:\n  files: []\n  # a remark\nprobes:\n    - {type: canary, name: c}\n",
        "baseline:\n  judge:\n    hdd: infn-2025\n",
        "baseline: {judge: {hdd: infn-2025}}\n",
        (ROOT / "deploy/packages/plumbline.yaml").read_text(),
        (ROOT / "deploy/compose/plumbline.yaml").read_text(),
    ],
)
def test_only_the_additions_change_the_meaning_and_no_line_is_lost(text: str) -> None:
    new, before, after = extended(text)
    assert [each.name for each in after.probes] == [*(each.name for each in before.probes), "more"]
    assert after.probes[:-1] == before.probes
    assert after.baseline.judge == {**before.baseline.judge, **JUDGE}
    assert (after.web, after.devices, after.baseline.files) == (before.web, before.devices, before.baseline.files)
    if "{" not in text.replace("{type", ""):  # a flow is changed within its line
        assert [line for line in text.splitlines() if line not in new.splitlines()] == []


def test_the_example_with_every_section_keeps_its_comments() -> None:
    text = (ROOT / "deploy/plumbline.yaml").read_text()
    new, _, _ = extended(text, {"hdd": "unnoba-2020"})
    lost = [line for line in text.splitlines() if line not in new.splitlines()]
    assert lost == ["  judge: {ssd: unnoba-2020}"]
    assert "  judge: {ssd: unnoba-2020, hdd: unnoba-2020}" in new


@pytest.mark.parametrize(
    "text",
    [
        "probes: [{type: canary, name: c},]\n",  # one more item would make two commas
        "baseline: &b {judge: {}}\n...\n",  # nothing can follow the end of a document
        "probes: [{type: fio, name: more, workload: randread-4k-qd4-j1}]\n",  # its name is taken
    ],
)
def test_what_cannot_be_extended_safely_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="add the printed lines by hand"):
        extended(text)


def test_a_wrong_file_stays_the_users_mistake() -> None:
    with pytest.raises(ConfigError, match="no such key"):
        extended("probs: []\n")


def test_the_block_for_a_person_is_what_is_added() -> None:
    config = parse(block([PROBE], JUDGE), where="block", catalogue=CATALOGUE)
    assert [each.name for each in config.probes] == ["more"]
    assert config.baseline.judge == JUDGE
    assert block([], {}) == ""
