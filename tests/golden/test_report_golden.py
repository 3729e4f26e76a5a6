"""A report in Markdown, character for character: a small recorded baseline beside a small one the site wrote."""

from __future__ import annotations

from pathlib import Path

from plumbline.baseline.site import read_site
from plumbline.commands import reporting
from plumbline.report.baseline.report import build, render_markdown
from support.golden import check_golden

HERE = Path(__file__).parent / "reports"


def test_markdown() -> None:
    files = (HERE / name for name in ("storage7.yaml", "site.yaml"))
    loaded = [read_site(path, host=None) for path in files]
    subjects = []
    for path in loaded:
        found = reporting.subject(path)
        found.shown.facts["file"] = Path(found.shown.facts["file"]).name  # wherever the tests lie
        subjects.append(found)
    report = build(subjects, title="Rack 7", made="2026-10-03 10:00 UTC", version="1.2.3")
    check_golden(HERE / "small.md", render_markdown(report).encode())
