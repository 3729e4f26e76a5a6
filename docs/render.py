#!/usr/bin/env python3
"""Write the generated references: ``docs/metrics.md`` from the specs, ``docs/configuration.md`` from the model,
``docs/checks.md`` from the catalogue of checks, ``docs/workloads.md`` from the catalogue of workloads, and the table of
kinds inside ``docs/probes.md``; ``docs/alerts.md`` and ``docs/rules.md`` from the rendered rules (render those first);
the table of series inside ``docs/sizing.md`` from the recorded hosts, and the alerts of the whole fleet inside
``docs/scale.md``.

Usage: PYTHONPATH=tests python docs/render.py [--check]

``--check`` exits 1 and names the file when a committed reference is not what the code says.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import yaml
from render_alerts import alerts_reference, rules_reference
from render_metrics import metrics_reference
from render_sizing import sizing_table

from plumbline.checks.run import CHECKS
from plumbline.collectors.registry import NAMES
from plumbline.config import model as config
from plumbline.config import probes as probe_configs
from plumbline.config import types as config_types
from plumbline.config import workloads
from support.rules import ALERTS, RULES, rules_of
from support.shardable import local_rules

HERE = Path(__file__).resolve().parent
STRUCTS = (
    (config.Config, "The file", "The file"),
    (config.WebConfig, "`web`", "web"),
    (config.DevicesConfig, "`devices`", "devices"),
    (config.BaselineConfig, "`baseline`", "baseline"),
    (config.GatesConfig, "`gates`", "gates"),
    (config.CephConfig, "`ceph`", "ceph"),
    *(
        (kind, f"A probe of `type: {kind.__struct_config__.tag}`", kind.__struct_config__.tag)
        for kind in get_args(probe_configs.ProbeConfig)
    ),
)


def configuration() -> str:
    """Every key of the configuration file, with type, default and meaning."""
    lines = [
        "# Configuration",
        "",
        "Every key of the configuration file: what it does, its default, what it may be.",
        "",
        "Generated from the code by `make render`. The file is YAML; without one, the defaults below hold. Unknown",
        "keys, wrong types and impossible values are refused with key, value and reason; at a reload (SIGHUP, or a",
        "changed file) the running configuration then stays. `plumbline config check FILE` says what is wrong without",
        "starting anything.",
        "",
        "Durations: `500ms`, `15s`, `5m`, `6h`, `1d`, `1w`. Sizes: bytes, or `64MiB`, `1GiB` (binary units only).",
        "Everything takes effect at a reload but what says *takes effect at a restart*; a probe that did not change",
        "goes on undisturbed. An example follows each table; its values are not the defaults.",
        f"Collectors: {', '.join(f'`{name}`' for name in NAMES)}.",
        "",
        "An example, which is also a test: [deploy/plumbline.yaml](../deploy/plumbline.yaml).",
    ]
    examples = yaml.safe_load((HERE / "configuration.yaml").read_text("utf-8"))
    for struct, title, example in STRUCTS:
        fields = sorted(_fields(struct), key=lambda field: field[0] != "name")
        lines += [
            "",
            f"## {title}",
            "",
            _first_line(struct),
            "",
            "| key | type | default | meaning |",
            "| --- | --- | --- | --- |",
        ]
        lines += [f"| `{name}` | `{kind}` | {default} | {meaning} |" for name, kind, default, meaning in fields]
        if example in examples:
            lines += ["", "```yaml", examples[example].rstrip("\n"), "```"]
    return "\n".join(lines) + "\n"


CHECKS_HEAD = """\
# Checks

Everything that `plumbline check` looks at: what it should be, why, and which command mends it.

Generated from the code by `make render`. Each check is one documented advice. It applies to a host, a device or a
setting by facts, and says nothing where they are not known. `plumbline check` shows what is not met with the command
that mends it and the line that keeps it; `plumbline_finding{check, subject, urgency}` is 1 then, 0 where the advice
is met, absent where it does not apply; the status page has the same. "Lately" is within the last hour for the daemon,
between its two looks for the command.

Exit code of `plumbline check`: 0 no warning, 1 a warning, 2 something critical, 3 the host could not be judged.

Commands and permanent lines are shown in the words of the host's distribution (Debian 12 and 13, Ubuntu 24.04, RHEL 9,
SLES 15, by os-release) and of whoever configures the interface (ifupdown, NetworkManager, systemd-networkd, netplan,
wicked); this page has those of Debian. What they say with the first three was done in a guest that was rebooted: the
rows of `boot` in [lab.md](lab.md).

The severity is the usual one; a check may say more or less by what it finds. Sources: *unnoba-2020* is the thesis of
the baseline profile of that name, *INFN 2025* and *Wroclaw 2017* are the other reports ([profiles.md](profiles.md)),
*Fujitsu, SDC 2013* are the slides on Ceph with InfiniBand and SSDs, *Ceph* is its documentation and source, the others
are the kernel's documentation and manual pages.

| check | severity | advice |
| --- | --- | --- |
"""


def checks() -> str:
    """Every check: to what it applies, why, what mends it, who says so."""
    rows = [f"| [{check.id}](#{check.id.replace('.', '')}) | {check.severity} | {check.advice} |\n" for check in CHECKS]
    parts = [
        f"\n## {check.id}\n\n{check.advice}\n\n"
        f"- Applies to: {check.applies}\n"
        f"- Why: {check.why}\n"
        f"- Mended by: `{check.fix}`\n"
        f"- Source: {check.source}\n"
        for check in CHECKS
    ]
    return CHECKS_HEAD + "".join(rows) + "".join(parts)


def workloads_reference() -> str:
    """Every workload: what it is called, what a result of it holds, whence it comes."""
    lines = [
        "# Workloads",
        "",
        "Every workload that a probe can run, with its exact parameters.",
        "",
        "Generated from `exporter/plumbline/config/workloads.yaml` by `make render`.",
        "A result and a baseline are compared only when layer, device class, workload, operation and the hash of all",
        "parameters agree. Block workloads are",
        "named `<pattern>-<block size>-qd<in flight>-j<processes>[-dsync|-buffered]`, after `rbd-`, `fs-` or `rados-`",
        "where that is not the disk. In brackets: the document that a workload comes from, and where it stands there.",
        "UNNOBA 2020, INFN 2025, Fujitsu 2013, ICN-UNAM and Wroclaw 2017 are in [profiles.md](profiles.md).",
    ]
    known = list(workloads.load_catalogue().by_id.values())
    for layer in workloads.LAYERS:
        rows = [each for each in known if each.layer == layer]
        if rows:
            lines += ["", f"## {layer}", "", "| workload | operations | what it is |", "| --- | --- | --- |"]
            lines += [f"| `{each.id}` | {', '.join(each.operations)} | {each.description} |" for each in rows]
    return "\n".join(lines) + "\n"


KINDS_BEGIN, SERIES_BEGIN, END = "<!-- generated: kinds -->\n", "<!-- generated: series -->\n", "<!-- end -->"
FLEET_BEGIN = "<!-- generated: fleet-wide alerts -->\n"


def probes(written: str) -> str:
    """The page as it is written, with the table of kinds as the code has it."""
    lines = ["| type | layer | runs | what it does |", "| --- | --- | --- | --- |"]
    for kind in get_args(probe_configs.ProbeConfig):
        runs = "by a schedule" if issubclass(kind, probe_configs.base.Periodic) else "always"
        lines.append(f"| `{kind.__struct_config__.tag}` | {kind.layer} | {runs} | {_first_line(kind)} |")
    return _inserted(written, KINDS_BEGIN, "\n".join(lines) + "\n")


def _inserted(written: str, begin: str, table: str) -> str:
    """The page with what stands between its marks replaced."""
    before, found, rest = written.partition(begin)
    assert found, begin
    return before + begin + table + END + rest.partition(END)[2]


def _first_line(struct: type) -> str:
    return (struct.__doc__ or "").strip().splitlines()[0].replace("``", "`")


def _fields(struct: type) -> Iterator[tuple[str, str, str, str]]:
    """(key, type, default, meaning) from the class bodies: the string below a field is its meaning; inherited last."""
    own: set[str] = set()
    for each in struct.__mro__:
        if each is config_types.Strict:
            return
        for row in _own_fields(each):
            if row[0] not in own:
                own.add(row[0])
                yield row


def _own_fields(struct: type) -> Iterator[tuple[str, str, str, str]]:
    (body,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(body, ast.ClassDef)
    for node, after in zip(body.body, [*body.body[1:], ast.Pass()], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if node.target.id not in struct.__struct_fields__:  # of the class
            continue
        meaning = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            meaning = " ".join(str(after.value.value).replace("``", "`").split())
        yield (
            node.target.id,
            _type(node.annotation),
            _default(node.value).replace("|", "\\|"),
            meaning.replace("|", "\\|"),
        )


def _type(annotation: ast.expr) -> str:
    text = ast.unparse(annotation)
    if text.startswith("Annotated["):
        text = text.removeprefix("Annotated[").split(", Meta(")[0] + text.rpartition("]")[2]
    return text.replace("|", "or")


def _default(value: ast.expr | None) -> str:
    if value is None:
        return "required"
    text = ast.unparse(value)
    known = {"DEFAULT_LISTEN_ADDRESS": config.DEFAULT_LISTEN_ADDRESS, "None": "see meaning", "()": "none", "{}": "none"}
    if text.endswith("default_factory=dict)"):
        return "none"
    if text in known:
        return known[text]
    for kind, show in (("Duration(", _duration_text), ("Size(", _size_text)):
        if text.startswith(kind):
            return show(eval(compile(ast.Expression(value), "default", "eval"), {**vars(config_types)}))  # noqa: S307
    return "see below" if text.endswith("Config()") or "default_factory" in text else f"`{text}`"


def _duration_text(seconds: float) -> str:
    for unit, scale in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % scale == 0:
            return f"{seconds / scale:g}{unit}"
    return f"{seconds:g}s"


def _size_text(size: int) -> str:
    return f"{size >> 20}MiB"


def fleet_wide() -> str:
    """The alerts that compare nodes, which no shard with a part of them may judge."""
    alerts = rules_of(ALERTS)
    names = sorted({rule["alert"] for rule in alerts} - local_rules([*rules_of(RULES), *alerts]))
    return textwrap.fill(", ".join(f"`{name}`" for name in names) + ".", 120, break_on_hyphens=False) + "\n"


def main() -> int:
    """0: written, or (``--check``) fresh."""
    stale = 0
    for name, text in (
        ("metrics.md", metrics_reference()),
        ("alerts.md", alerts_reference()),
        ("rules.md", rules_reference()),
        ("configuration.md", configuration()),
        ("checks.md", checks()),
        ("workloads.md", workloads_reference()),
        ("sizing.md", _inserted((HERE / "sizing.md").read_text("utf-8"), SERIES_BEGIN, sizing_table())),
        ("scale.md", _inserted((HERE / "scale.md").read_text("utf-8"), FLEET_BEGIN, fleet_wide())),
        ("probes.md", probes((HERE / "probes.md").read_text("utf-8"))),
    ):
        path = HERE / name
        if "--check" not in sys.argv[1:]:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            print(f"stale: docs/{name}; run `make render`", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
