"""The generated references are what the code says, and the example configuration is one."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import yaml

from plumbline import cli
from plumbline.collectors.registry import COLLECTORS, every_spec
from plumbline.config import types
from plumbline.config.model import Config, load, parse
from plumbline.config.probes import ProbeConfig
from support.offenders import for_every

ROOT = Path(__file__).parents[3]
EXAMPLES: dict[str, str] = yaml.safe_load((ROOT / "docs" / "configuration.yaml").read_text("utf-8"))


def test_the_references_are_fresh():
    argv = [sys.executable, ROOT / "docs" / "render.py", "--check"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_example_configurations_are_good():
    for name in ("deploy/plumbline.yaml", "deploy/demo/plumbline.yaml"):
        assert load(ROOT / name).probes, name


def test_every_key_of_the_references_has_a_meaning():
    rows = [line for line in (ROOT / "docs" / "configuration.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 25
    assert [row for row in rows if row.endswith("|  |")] == []


@for_every("section", EXAMPLES)
def test_every_example_of_the_reference_is_accepted(section: str) -> None:
    config = parse(EXAMPLES[section], where=f"docs/configuration.yaml: {section}")
    assert config != Config()


def test_every_key_has_an_example() -> None:
    written = [yaml.safe_load(text) for text in EXAMPLES.values()]
    missing = set(Config.__struct_fields__) - {key for each in written for key in each}
    for field in msgspec.structs.fields(Config):
        for struct in (field.type, *get_args(field.type)):
            if isinstance(struct, type) and issubclass(struct, types.Strict):
                keys = {key for each in written for key in each.get(field.name, {})}
                missing |= {f"{field.name}.{key}" for key in set(struct.__struct_fields__) - keys}
    probes: dict[str, set[str]] = {}
    for each in written:
        for probe in each.get("probes", ()):
            probes.setdefault(probe["type"], set()).update(probe)
    shared = set.union(*probes.values())  # those of all periodic probes stand in one of them
    for kind in get_args(ProbeConfig):
        own = {field for field in kind.__annotations__ if field in kind.__struct_fields__}
        missing |= {f"{kind.__struct_config__.tag}: {key}" for key in own - probes[kind.__struct_config__.tag]}
        missing |= {key for key in kind.__struct_fields__ if key not in shared}
    assert missing == set(), "docs/configuration.yaml"


def test_every_collector_says_where_its_figures_come_from() -> None:
    assert [each.name for each in COLLECTORS if each.listed and not each.origin] == []


def test_every_label_is_explained() -> None:
    said: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docs" / "metrics.yaml").read_text("utf-8"))
    assert said["labels"].keys() == {label for spec in every_spec() for label in spec.labels}


def test_every_metric_alert_and_record_is_in_its_reference() -> None:
    metrics = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    assert [spec.name for spec in every_spec() if f"| `{spec.name}` |" not in metrics] == []
    for kind, key, form in (("alerts", "alert", "| [{}]("), ("rules", "record", "| `{}` |")):
        page = (ROOT / "docs" / f"{kind}.md").read_text("utf-8")
        groups = yaml.safe_load((ROOT / f"alerts/out/plumbline-{kind}.yaml").read_text("utf-8"))["groups"]
        assert [rule[key] for group in groups for rule in group["rules"] if form.format(rule[key]) not in page] == []


def test_the_sum_of_a_node_s_series_is_that_of_the_table() -> None:
    """What docs/sizing.md reckons for a storage node, from the figures that it shows."""
    page = (ROOT / "docs" / "sizing.md").read_text("utf-8")
    most = {
        cells[1].strip(): int(cells[5])
        for row in page.splitlines()
        if len(cells := row.split("|")) == 8 and cells[5].strip().isdigit()
    }
    cpu, port, bond = most["CPU"], most["network port"], most["bond"]
    disk, health = most["disk or volume: counters, identity, queue, users"], most["disk: health"]
    histogram, pci = most["disk, each operation: latency histograms"], most["PCI Express device"]
    canary = most["canary, each operation"]
    node = sum(figure for name, figure in most.items() if name.startswith("node: "))
    text = (
        f"64 × {cpu} + 4 × {port} + 2 × {bond} + 24 × ({disk} + {health} + 3 × {histogram}) + 24 × 114"
        f" + 30 × {pci} + 2 × {canary} + {node}"
    )
    total = 64 * cpu + 4 * port + 2 * bond + 24 * (disk + health + 3 * histogram + 114) + 30 * pci + 2 * canary + node
    assert f"{text} = {total:,}" in page
    assert f"{20 * total / 30:,.0f}" in page


@for_every("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_a_page_begins_with_what_it_is_for(path: Path) -> None:
    """A sentence, before code, tables, pictures and where the page comes from. The index begins with its headings."""
    text = path.read_text("utf-8")
    assert text.startswith("# ")
    first = text.split("\n\n")[1]
    assert path.stem == "README" or not first.startswith(("#", "```", "|", "!", "Generated", "`")), first
    assert not re.search(r"\bseed \d", text), "a name from where it was written, which means nothing here"


@pytest.mark.parametrize(
    "page",
    [
        "deploy/ansible",
        "deploy/cephadm",
        "deploy/compose",
        "deploy/debian",
        "deploy/kubernetes",
        "deploy/rpm",
        "systemd",
    ],
)
def test_every_way_to_install_ends_with_the_same_check(page: str) -> None:
    text = (ROOT / page / "README.md").read_text("utf-8")
    (command,) = re.findall(r"plumbline doctor (--config\.file [^\n`']+)", text)
    options = cli._parser().parse_args(["doctor", *command.split()])
    assert str(options.config_file) == "/etc/plumbline/plumbline.yaml"
    assert options.prometheus.startswith("http://")
    assert "docs/install.md#is-it-complete" in text
