#!/usr/bin/env python3
"""Make what cephadm's Prometheus, Alertmanager and Grafana take, from the committed rules, routes and dashboards.

``deploy/cephadm/render.py --out DIR`` writes ``custom_alerts.yml`` (recording rules and alerts in one file, as cephadm
has one place for them), ``alertmanager.yml.j2`` (our routes and inhibition beside the Ceph dashboard's receiver),
``prometheus.yml.j2``, ``dashboards/*.json`` and ``size``: how many bytes a config-key has to take. It needs PyYAML.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

try:
    import yaml
except ModuleNotFoundError:
    sys.exit("deploy/cephadm/render.py: this Python has no PyYAML: install python3-yaml")

ROOT = Path(__file__).resolve().parents[2]
KEY_DEFAULT = 64 * 1024
"""mon_config_key_max_entry_size, unless it was raised."""
CEPHS = "ceph-dashboard", "ceph-default"
"""Receivers of cephadm's own template, which stay: the dashboard, and the webhooks of the alertmanager's spec."""
TAIL = """\
- name: ceph-dashboard
{% if dashboard_urls is defined and dashboard_urls %}
  webhook_configs:
{% for url in dashboard_urls %}
  - url: '{{ url }}/api/prometheus_receiver'
{% if secure is defined and not secure %}
    http_config: {tls_config: {insecure_skip_verify: true}}
{% endif %}
{% endfor %}
{% endif %}
- name: ceph-default
{% if default_webhook_urls is defined and default_webhook_urls %}
  webhook_configs:
{% for url in default_webhook_urls %}
  - url: '{{ url }}'
{% endfor %}
{% endif %}
"""
"""The dashboard's certificate is self-signed; only its own receiver is spared the look at it."""


class RenderError(Exception):
    """One line: what is wrong, and where."""


def custom_alerts(texts: list[str]) -> str:
    """Several rule files as one: the same groups in the same order."""
    groups = []
    for text in texts:
        head, mark, rest = text.partition("\ngroups:\n")
        if not mark or any(line and not line.startswith("#") for line in head.splitlines()):
            raise RenderError("a rule file that does not begin with `groups:`")
        groups.append(rest)
    return "groups:\n" + "".join(groups)


def alertmanager(ours: dict[str, Any]) -> str:
    """Our configuration as a template of cephadm's. Every alert goes to the Ceph dashboard, as before; those that are
    not ours go nowhere else than before."""
    named = {receiver["name"] for receiver in ours["receivers"]}
    if named & set(CEPHS):
        raise RenderError(f"receivers called {', '.join(CEPHS)} are cephadm's: call yours otherwise")
    dashboard = {"receiver": CEPHS[0], "group_by": ["alertname"], "group_wait": "10s", "group_interval": "10s",
                 "repeat_interval": "1h", "continue": True}  # fmt: skip
    others = {"receiver": CEPHS[1], "matchers": ['alertname !~ "Plumbline.*"'], "group_by": ["alertname"]}
    route = {**ours["route"], "routes": [dashboard, others, *ours["route"].get("routes", [])]}
    whole = {**{key: value for key, value in ours.items() if key != "receivers"}, "route": route}
    text = yaml.safe_dump({**whole, "receivers": ours["receivers"]}, sort_keys=False, allow_unicode=True, width=2**16)
    if "{% endraw" in text:
        raise RenderError("`{% endraw` in the Alertmanager configuration")
    # raw: Alertmanager's own templates are written as Jinja's are
    return "# {{ cephadm_managed }}\n{% raw %}\n" + text + "{% endraw %}\n" + TAIL


def rendered(rules: Path, routes: Path, dashboards: Path) -> dict[str, str]:
    """File name → text."""
    found = [path.read_text("utf-8") for path in sorted(rules.glob("*.yaml"), reverse=True)]  # rules before alerts
    files = {
        "custom_alerts.yml": custom_alerts(found),
        "alertmanager.yml.j2": alertmanager(yaml.safe_load(routes.read_text("utf-8"))),
        "prometheus.yml.j2": (Path(__file__).parent / "prometheus.yml.j2").read_text("utf-8"),
    }
    largest = max(len(text.encode()) for text in files.values())
    needed = KEY_DEFAULT
    while needed <= largest:
        needed *= 2
    files["size"] = f"{needed}\n"
    for path in sorted(dashboards.glob("plumbline-*.json")):
        files[f"dashboards/{path.name}"] = json.dumps(json.loads(path.read_text("utf-8")), ensure_ascii=False) + "\n"
    return files


def main(argv: list[str]) -> int:
    """Exit status: 0 written, 1 nothing written, with one line that says why."""
    parser = argparse.ArgumentParser(prog="deploy/cephadm/render.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write")
    parser.add_argument("--rules", type=Path, default=ROOT / "alerts" / "out", help="rule files (default: alerts/out)")
    parser.add_argument(
        "--alertmanager", type=Path, default=ROOT / "alerts" / "alertmanager" / "alertmanager.yaml",
        help="your Alertmanager configuration, receivers filled in",
    )  # fmt: skip
    parser.add_argument("--dashboards", type=Path, default=ROOT / "dashboards" / "out", help="pages as JSON")
    arguments = parser.parse_args(argv)
    try:
        files = rendered(arguments.rules, arguments.alertmanager, arguments.dashboards)
    except (RenderError, OSError, ValueError, KeyError, yaml.YAMLError) as error:
        print(f"deploy/cephadm/render.py: {error}", file=sys.stderr)
        return 1
    for name, text in files.items():
        path = arguments.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
