"""The status page: one HTML document without scripts or outside parts, for a person in a hurry.

From the general to the particular: what is wrong, in which layer, then each part of the host, the worst first and what
is too much folded away. Every text is escaped by construction, see :mod:`plumbline.htmltext`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from plumbline import status_findings, status_host, status_probes, status_top
from plumbline.core.units import seconds_text
from plumbline.htmltext import Html, tag
from plumbline.status_layers import judge_layers
from plumbline.status_model import StatusModel
from plumbline.status_parts import link, sign
from plumbline.status_style import STYLE
from plumbline.status_verdict import judge

__all__ = ["render_status"]


def render_status(model: StatusModel) -> str:
    """The whole page."""
    verdict = judge(model)
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<link rel="icon" href="data:,">'),
        tag("title", f"{sign(verdict.level)} {model.host} – Plumbline"),
        Html(f"<style>{STYLE}</style>"),
    )
    sections = (
        ("layers", "Layers", status_top.layers(judge_layers(model))),
        ("probes", f"Probes {len(model.probes)}", status_probes.probes(model)),
        ("failing", "What fails", status_probes.failing(model)),
        ("findings", f"Findings {sum(not each.met for each in model.findings or ())}", status_findings.findings(model)),
        ("osds", f"OSDs {len(model.osds)}", status_host.osds(model)),
        ("disks", f"Disks {len(model.disks)}", status_host.disks(model)),
        ("network", f"Network {len(model.nics)}", status_host.network(model)),
        ("softnet", "Softnet", status_host.softnet(model)),
        ("unavailable", "Not available", status_probes.unavailable(model)),
        ("collectors", f"Collectors {len(model.collectors)}", status_probes.collectors(model)),
    )
    first, *rest = [content for _, _, content in sections]
    shown = [(place, name) for place, name, content in sections[1:] if content]
    body = tag(
        "body",
        tag("a", "Skip to the verdict", href="#main", class_="skip"),
        _header(model),
        tag(
            "main",
            status_top.verdict(verdict),
            first,
            status_top.contents(shown),
            *rest,
            id="main",
            tabindex="-1",
        ),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _header(model: StatusModel) -> Html:
    now = datetime.fromtimestamp(model.now_ts, UTC)
    up_s = max(0.0, model.now_ts - model.started_ts)
    return tag(
        "header",
        tag("h1", f"Plumbline on {model.host}"),
        tag("p", f"{now:%Y-%m-%d %H:%M:%S} UTC, version {model.version}, up for {seconds_text(up_s)}"),
        tag("p", f"The door: {model.door}") if model.door else "",
        tag("nav", *(link(path, path) for path in ("/metrics", "/-/ready", "/-/healthy")), aria_label="Other pages"),
    )
