"""docs/checks.md, made from the catalogue of checks. ``PYTHONPATH=tests python -m support.checks_page`` writes it."""

from __future__ import annotations

from pathlib import Path

from plumbline.checks.network import CHECKS

PAGE = Path(__file__).parent.parent.parent / "docs" / "checks.md"

_HEAD = """\
# Checks

Each check is one documented advice. It applies to a host, a device or a setting by facts, and says nothing where they
are not known. `plumbline check` shows what is not met with the command that mends it and the line that keeps it;
`plumbline_finding{check, subject, severity}` is 1 then, 0 where the advice is met, absent where it does not apply; the
status page has the same. "Lately" is within the last hour for the daemon, between its two looks for the command.

Exit code of `plumbline check`: 0 no warning, 1 a warning, 2 something critical, 3 the host could not be judged.

The severity is the usual one; a check may say more or less by what it finds. Sources: *unnoba-2020* is the thesis of
the baseline profile of that name, *Fujitsu, SDC 2013* are the slides on InfiniBand under Ceph, the others are the
kernel's documentation and manual pages.

| check | severity | advice |
| --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    rows = [f"| [{check.id}](#{check.id.replace('.', '')}) | {check.severity} | {check.advice} |\n" for check in CHECKS]
    parts = [
        f"\n## {check.id}\n\n{check.advice}\n\n"
        f"- Applies to: {check.applies}\n"
        f"- Why: {check.why}\n"
        f"- Mended by: `{check.fix}`\n"
        f"- Source: {check.source}\n"
        for check in CHECKS
    ]
    return _HEAD + "".join(rows) + "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
