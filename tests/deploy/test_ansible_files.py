"""``deploy/ansible`` without Ansible: its files agree with each other and with what they hand out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
COLLECTION = REPOSITORY / "deploy/ansible"
ROLES = ("plumbline", "plumbline_monitoring")
TYPES = {"str": str, "path": str, "bool": bool, "int": int, "list": list, "dict": dict}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def options(role: str) -> dict[str, Any]:
    return dict(load(COLLECTION / "roles" / role / "meta/argument_specs.yml")["argument_specs"]["main"]["options"])


def defaults(role: str) -> dict[str, Any]:
    return dict(load(COLLECTION / "roles" / role / "defaults/main.yml"))


def internal(role: str) -> set[str]:
    """Names that are no options: of vars/, of tasks' vars, registered, set, and loop variables."""
    names: set[str] = set()
    folder = COLLECTION / "roles" / role
    if (folder / "vars/main.yml").exists():
        names |= set(load(folder / "vars/main.yml"))

    def look(node: Any) -> None:
        if isinstance(node, list):
            for item in node:
                look(item)
        elif isinstance(node, dict):
            names.update(node.get("vars") or {})
            names.update(node.get("ansible.builtin.set_fact") or {})
            names.update(
                name for name in (node.get("register"), (node.get("loop_control") or {}).get("loop_var")) if name
            )
            for item in node.values():
                look(item)

    for path in [*folder.glob("tasks/*.yml"), *folder.glob("handlers/*.yml")]:
        look(load(path))
    return names


def used(role: str) -> set[str]:
    """Every word in code (no comments, no names of tasks) that starts as the role's variables do."""
    folder = COLLECTION / "roles" / role
    words: set[str] = set()
    for path in [
        *folder.glob("tasks/*.yml"),
        *folder.glob("handlers/*.yml"),
        *folder.glob("templates/*.j2"),
        folder / "defaults/main.yml",
    ]:
        code = re.sub(r"#.*|- name: .*|\bmsg: .*", "", path.read_text())
        words |= set(re.findall(rf"\b{role}_\w+", code))
    return words


@pytest.mark.parametrize("role", ROLES)
def test_each_variable_has_a_default_a_type_and_a_meaning(role: str) -> None:
    specified, given = options(role), defaults(role)

    assert list(specified) == [name for name in specified if specified[name].get("description")]
    assert set(specified) == set(given)
    for name, option in specified.items():
        value = given[name]
        if not (isinstance(value, str) and "{{" in value):
            assert isinstance(value, TYPES[option["type"]]), name
        if "choices" in option and isinstance(value, str):
            assert value in option["choices"], name
        if "default" in option:
            assert option["default"] == value, name
        else:
            assert option["type"] == "dict", f"{name}: only a large dictionary may keep its default to itself"


@pytest.mark.parametrize("role", ROLES)
def test_no_task_or_template_uses_a_variable_that_nobody_knows(role: str) -> None:
    known = set(options(role)) | internal(role)

    assert used(role) - known == set()
    assert set(options(role)) - used(role) == set(), "specified, and used nowhere"


@pytest.mark.parametrize("role", ROLES)
def test_what_a_task_notifies_exists(role: str) -> None:
    folder = COLLECTION / "roles" / role
    handlers = {handler["name"] for handler in load(folder / "handlers/main.yml")}
    notified: set[str] = set()
    for path in folder.glob("tasks/*.yml"):
        for names in re.findall(r"notify: \[?(.*?)\]?$", path.read_text(), re.MULTILINE):
            notified |= set(names.split(", "))

    assert notified == handlers


def test_what_is_handed_out_is_the_repositorys_own() -> None:
    """Links, so that nothing stands twice; one that is missing is made with ``ln -s``."""
    node, monitoring = (COLLECTION / "roles" / role / "files" for role in ROLES)
    pairs = (
        (node, REPOSITORY / "systemd", "*.service"),
        (node / "drop-ins", REPOSITORY / "systemd/drop-ins", "*.conf"),
        (monitoring / "rules", REPOSITORY / "alerts/out", "*.yaml"),
        (monitoring / "rules-native", REPOSITORY / "alerts/out-native", "*.yaml"),
        (monitoring / "dashboards", REPOSITORY / "dashboards/out", "plumbline-*.json"),
    )
    for links, source, pattern in pairs:
        assert {link.name for link in links.iterdir() if link.match(pattern)} == {
            file.name for file in source.glob(pattern)
        }
    for link in (path for folder in (node, monitoring) for path in folder.rglob("*") if not path.is_dir()):
        assert link.is_symlink(), link
        assert link.resolve().is_relative_to(REPOSITORY), link
        assert link.exists(), link


def test_the_choices_are_the_drop_ins_there_are() -> None:
    there = sorted(path.stem for path in (REPOSITORY / "systemd/drop-ins").glob("*.conf"))

    assert options("plumbline")["plumbline_drop_ins"]["choices"] == there
    assert sorted(load(COLLECTION / "roles/plumbline/vars/main.yml")["plumbline_drop_in_packages"]) == there


def test_the_collection_has_the_release_s_version() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

    assert load(COLLECTION / "galaxy.yml")["version"] == project["version"]


def test_every_task_that_handles_a_secret_says_nothing() -> None:
    secret = (
        "plumbline_credentials",
        "plumbline_web_config",
        "plumbline_monitoring_prometheus_config",
        "plumbline_monitoring_receivers",
    )
    for role in ROLES:
        for path in (COLLECTION / "roles" / role / "tasks").glob("*.yml"):
            for task in load(path):
                writes = {"ansible.builtin.template", "ansible.builtin.copy"} & set(task)
                text = str({key: task[key] for key in writes | {"loop", "vars"} & set(task)})
                source = next((str(task[key].get("src", "")) for key in writes), "")
                template = COLLECTION / "roles" / role / "templates" / source
                if writes and template.is_file():
                    text += template.read_text()
                if (
                    writes
                    and any(f"{name} |" in text or f"{name} }}}}" in text for name in secret)
                    and "LoadCredential" not in text
                    and "ARGS" not in text
                ):
                    assert task.get("no_log") is True, f"{path.name}: {task['name']}"
