"""Every alert has a page that can be followed: its commands exist, its queries parse, its links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plumbline.metrics.default_page import NAMES
from support.metrics import known_metrics
from support.offenders import for_every
from support.programs import need
from support.rules import ROOT
from support.runbooks import PAGES, RUNBOOKS, code_blocks, commands, script_of, section, variables, whole

SHARED = sorted(set(RUNBOOKS.glob("*.md")) - set(PAGES))


def queries(text: str) -> list[str]:
    """PromQL that the page sends to Prometheus, with the page's own example values."""
    found = []
    for block in code_blocks(text):
        for words in commands(script_of(block)):
            found += [word.removeprefix("query=") for word in words if word.startswith("query=")]
    values = variables(text)
    return [re.sub(r"\$\{?([A-Z_]+)\}?", lambda name: values[name[1]], query) for query in found]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert(alerts: list[dict[str, Any]]) -> None:
    pages, names = {path.stem for path in PAGES}, {rule["alert"] for rule in alerts}
    missing = [f"write alerts/runbooks/{name}.md" for name in sorted(names - pages)]
    assert missing + [f"remove alerts/runbooks/{name}.md" for name in sorted(pages - names)] == []


@for_every("path", PAGES, ids=lambda path: path.stem)
def test_it_says_the_four_things_and_what_to_type(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith(f"# {path.stem}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Meaning", "Impact", "Diagnosis", "Mitigation"]
    for heading in ("Meaning", "Impact", "Diagnosis", "Mitigation"):
        assert len(section(text, heading).split()) >= 5, heading
    assert code_blocks(section(text, "Diagnosis")), "commands to run"
    for block in code_blocks(whole(path)):
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{block}"
        assert not re.search(r"<[a-z-]+>|TODO|\.\.\. ", block), "a placeholder can't be run"


@for_every("path", PAGES, ids=lambda path: path.stem)
def test_its_variables_are_set_before_they_are_used(path: Path) -> None:
    known: set[str] = set()
    for block in code_blocks(whole(path)):
        for line in re.sub(r"(?m)(^|\s)#.*$", "", block).splitlines():
            # single quotes keep a dollar sign from the shell here; a function does until it is called
            here = "" if re.match(r"\w+\(\) ", line) else re.sub(r"'[^']*'", "", line).replace("ceph_daemon ", "$NODE ")
            used = set(re.findall(r"\$\{?([A-Z][A-Z_]+)\b", here))
            assert used <= known, f"{used - known} in: {line}"
            known |= set(re.findall(r"(?:^|\s|;)([A-Z][A-Z_]+)=", line)) | set(re.findall(r"for ([A-Z]+) in", line))


def test_the_commands_of_this_project_exist() -> None:
    from plumbline import cli

    checked = 0
    for path in PAGES:
        for block in code_blocks(whole(path, setup=False)):
            for words in commands(script_of(block)):
                if words[0] == "plumbline" and len(words) > 1:
                    try:
                        cli._parser().parse_args([re.sub(r"\$\w+", "word", word) for word in words[1:]])
                    except SystemExit:
                        pytest.fail(f"{path.name}: plumbline knows no such command: {shlex.join(words)}")
                    checked += 1
    assert checked > 30


def test_a_command_that_does_not_exist_would_be_found() -> None:
    script = "ssh \"$NODE\" 'sudo plumbline disks --all' | head; X=1 plumbline chek"
    assert [words for words in commands(script) if words[0] == "plumbline"] == [
        ["plumbline", "disks", "--all"],
        ["plumbline", "chek"],
    ]


def test_the_queries_parse_and_ask_for_what_exists(tmp_path: Path) -> None:
    found = [(path, query) for path in PAGES for query in queries(whole(path, setup=False))]
    assert len(found) > 10
    rules = [{"record": f"q:{number}", "expr": query} for number, (_, query) in enumerate(found)]
    file = tmp_path / "queries.json"
    file.write_text(json.dumps({"groups": [{"name": "runbooks", "rules": rules}]}), "utf-8")
    done = subprocess.run([need("promtool"), "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    known = known_metrics()
    for path, query in found:
        assert set(re.findall(r"\bplumbline[_:][a-z0-9_:]+", query)) <= known, (path.name, query)


@for_every("path", [*PAGES, *SHARED], ids=lambda path: path.stem)
def test_metrics_in_commands_exist(path: Path) -> None:
    """Patterns of grep, too: ``plumbline_nic_(drops|errors)_total``."""
    known = known_metrics()
    for block in code_blocks(path.read_text("utf-8")):
        for name in (each for word in re.findall(r"plumbline_[a-z0-9_()|]+", block) for each in alternatives(word)):
            assert any(metric.startswith(name) for metric in known), name


@for_every("path", [*PAGES, *SHARED], ids=lambda path: path.stem)
def test_commands_ask_the_default_page_for_what_is_on_it(path: Path) -> None:
    """Prometheus has no other, where a site did not ask for the full one."""
    for line in (line for block in code_blocks(path.read_text("utf-8")) for line in block.splitlines()):
        if "profile=full" not in line:
            for name in (each for word in re.findall(r"plumbline_[a-z0-9_()|]+", line) for each in alternatives(word)):
                assert any(metric.startswith(re.sub("_(bucket|sum|count)$", "", name)) for metric in NAMES), line


def alternatives(pattern: str) -> list[str]:
    """``a_(b|c)_d`` → ``a_b_d``, ``a_c_d``. An end without its bracket is left out."""
    match = re.search(r"\(([^()]*)\)", pattern)
    if match is None:
        return [re.sub(r"[()|].*", "", pattern)]
    before, after = pattern[: match.start()], pattern[match.end() :]
    return [each for choice in match[1].split("|") for each in alternatives(before + choice + after)]


DISRUPTIVE = re.compile(r"ceph osd (out|down|primary-affinity)\b|ceph_daemon (stop|restart) .*\bosd\b")
NOBODY_IS_SERVED = {
    "PlumblineCephPgUnavailable": "the OSD is down already",
    "PlumblineCephExporterDown": "the OSD does not answer, or its placement groups peer within seconds",
    "PlumblineOsdQueueing": "only reads go elsewhere, and only half of them",
}
"""Where the question would be none."""
UNDO = {
    r"ceph osd out (\S+)": r"ceph osd in {}",
    r"ceph osd primary-affinity (\S+) (?!1$)": r"ceph osd primary-affinity {} 1",
    r"ceph osd set (\w+)": r"ceph osd unset {}",
    r"ceph osd add-(\w+) ": r"ceph osd rm-{}",
    r"ceph osd set-(\w+)-ratio ": r"ceph osd set-{}-ratio 0",
    r"ceph osd pool set-quota (\S+) (\w+) ": r"ceph osd pool set-quota {} {} 0",
    r"ceph osd reweight-by-utilization()": r"ceph osd reweight OSD 1{}",
    r"ceph config set (\S+ \S+) ": r"ceph config rm {}",
    r"ceph balancer (on)": r"ceph balancer off",
}
"""What changes the cluster → what changes it back."""


@for_every("path", [*PAGES, *SHARED], ids=lambda path: path.stem)
def test_a_mitigation_waits_for_the_answer_to_its_question(path: Path) -> None:
    """Pasted as a block, the second line runs whatever the first one says."""
    for block in code_blocks(path.read_text("utf-8")):
        for line in (line for line in block.splitlines() if not line.startswith("#")):
            assert not re.search(r"ok-to-stop\b(?!.*&&)", line), line
            if DISRUPTIVE.search(line.partition("#")[0]) and path.stem not in NOBODY_IS_SERVED:
                assert re.search(r"ok-to-stop .+ && ", line), line


@for_every("path", [*PAGES, *SHARED], ids=lambda path: path.stem)
def test_what_changes_the_cluster_says_how_to_undo_it(path: Path) -> None:
    text = path.read_text("utf-8")
    for block in code_blocks(text):
        for line in block.splitlines():
            command = line.partition("#")[0].strip()
            for change, undo in UNDO.items():
                for found in re.finditer(change, command):
                    back = undo.format(*found.groups())
                    assert back in text.replace(command, ""), f"after {line!r} say how to undo it: {back}"


def test_each_exception_is_needed() -> None:
    for name in NOBODY_IS_SERVED:
        commands = [
            line.partition("#")[0]
            for block in code_blocks((RUNBOOKS / f"{name}.md").read_text("utf-8"))
            for line in block.splitlines()
        ]
        assert any(DISRUPTIVE.search(each) and "ok-to-stop" not in each for each in commands), name


@for_every("path", [*PAGES, *SHARED], ids=lambda path: path.stem)
def test_what_it_points_to_is_there(path: Path) -> None:
    text = path.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (RUNBOOKS / target).exists(), target
    for file in re.findall(r"(?<![\w./-])((?:docs|alerts|deploy|systemd|dashboards|exporter)/[\w./-]*\w)", text):
        assert (ROOT / file).exists(), file
    for metric in re.findall(r"`(plumbline[_:][a-z0-9_:]+)`", text):
        assert metric in known_metrics() or any(each.startswith(metric) for each in known_metrics()), metric
