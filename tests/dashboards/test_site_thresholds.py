"""A threshold that a site changes moves the alert, the colours of the panels and the numbers in the texts together."""

import importlib.util
import json
import re

import pytest

from support.dashboards import ROOT, data_panels

DAY = 86400

# Path below `_config` → a site's number; none of them is a default's, nor its multiple.
DRAWN = {
    "minimumTolerance": 1.37,
    "canary.beyond": 1.43,
    "capacity.limits.nearfull": 0.81,
    "capacity.limits.backfillfull": 0.87,
    "probe.missedIntervals": 2.3,
    "probe.staleIntervals": 3.7,
    "osd.ratio": 3.3,
    "osd.agreeRatio": 2.9,
    "osd.heartbeat.floorSeconds": 0.037,
    "alerts.PlumblineCapacityGrowthFast.days.default": 197,
    "alerts.PlumblineCapacityHeadroomLow.ratio": 0.71,
    "alerts.PlumblineCapacityHostLossSoon.days": 101,
    "alerts.PlumblineOsdDatabaseFull.fullRatio": 0.83,
    "alerts.PlumblineDiskLatencyOutlier.ratio": 4.3,
    "alerts.PlumblineDiskLatencyRegressed.ratio": 4.7,
    "alerts.PlumblineDiskWearOut.days": 83,
    "alerts.PlumblineInfinibandPortDown.activeState": 5,
    "alerts.PlumblineNetworkLoss.share": 0.0021,
    "alerts.PlumblineNicErrors.share": 2.3e-6,
    "alerts.PlumblineNicIrqsOnOneCpu.share": 0.89,
    "alerts.PlumblineNicLinkSlow.belowShare": 0.93,
    "alerts.PlumblineNicRingDrops.share": 1.7e-5,
    "alerts.PlumblineOsdCapacityMisjudged.ratio": 2.7,
    "alerts.PlumblineOsdHeartbeatSlow.seconds": 0.19,
    "alerts.PlumblineOsdOperationsBlocked.seconds": 67,
    "alerts.PlumblineTcpRetransmits.share": 0.013,
}
# What no alert has: states and counts, "anything at all", and for how long a host's data should be copied again.
CONSTANTS = {0, 1, 2, 1e-9, DAY, 7 * DAY}


def renderer():
    spec = importlib.util.spec_from_file_location("render", ROOT / "render.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def steps(panel):
    """Every value from which a panel, or one column of it, has another colour."""
    field = panel["fieldConfig"]
    found = list(field["defaults"].get("thresholds", {}).get("steps", []))
    for override in field.get("overrides", []):
        for each in override["properties"]:
            found += each["value"]["steps"] if each["id"] == "thresholds" else []
    return [step["value"] for step in found if step["value"] is not None]


def drawn_as(path, number):
    """The steps that a threshold may be drawn as."""
    if path == "canary.beyond":
        return [number * DRAWN["minimumTolerance"]]
    return [number, 1 / number, number * DAY, 4 * number * DAY]


def said_as(number):
    """How an expression or a text may say it."""
    return {
        f"{number:g}",
        f"{100 * number:g}",
        f"{number * DAY:g}",
        f"{number * DAY:d}" if number > 50 else f"{number:g}",
    }


def near(step, known):
    return any(abs(step - each) <= 1e-9 * max(abs(each), 1e-6) for each in known)


def says(text, number):
    return any(re.search(rf"(?<![\w.]){re.escape(form)}(?![\w]|[.]\d)", text) for form in said_as(number))


@pytest.fixture(scope="module")
def defaults():
    """Path → the number of the committed configuration."""
    import _gojsonnet

    fields = ", ".join(f"'{path}': config.{path}" for path in DRAWN)
    source = f"local config = (import '{ROOT / 'alerts/config.libsonnet'}')._config; {{ {fields} }}"
    return json.loads(_gojsonnet.evaluate_snippet("defaults", source))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Panels and alerts as a site with all these numbers has them, and the panels as they are committed."""
    render = renderer()
    if not render.VENDOR.is_dir():
        pytest.skip(render.NO_GRAFONNET)
    file = tmp_path_factory.mktemp("site") / "site.libsonnet"
    config = " + ".join(
        "{ " + "".join(f"{key}+: {{ " for key in path.split(".")[:-1]) + f"{path.split('.')[-1]}: {number}"
        + " }" * path.count(".") + " }"
        for path, number in DRAWN.items()
    )  # fmt: skip
    file.write_text(f"{{ _config+:: {config} }}", "utf-8")

    def panels(site):
        files = render.render("dashboards", site)
        return [
            panel for name in sorted(files) if name != render.MANIFEST for panel in data_panels(json.loads(files[name]))
        ]

    return panels(file), panels(None), render.render("rules", file)


def test_every_colour_follows_the_site_or_is_of_no_alert(site):
    panels, _, _ = site
    known = {form for path, number in DRAWN.items() for form in drawn_as(path, number)} | CONSTANTS
    strange = {(panel["title"], step) for panel in panels for step in steps(panel) if not near(step, known)}
    assert not strange, "drawn from a number that this site cannot change"


@pytest.mark.parametrize("path", DRAWN)
def test_alert_colour_and_text_move_together(site, defaults, path):
    panels, before, rules = site
    number = DRAWN[path]
    moved = [
        (panel, old)
        for panel, old in zip(panels, before, strict=True)
        if any(near(step, drawn_as(path, number)) for step in steps(panel) if step not in steps(old))
    ]
    assert moved, "no panel draws it"
    assert says("".join(rules.values()), number), "no rule judges by it"
    drawn = number if path != "canary.beyond" else drawn_as(path, number)[0]
    assert any(says(panel["description"], drawn) for panel, _ in moved), "no text of these panels says it"
    for panel, was in moved:
        if path != "canary.beyond" and says(was["description"], defaults[path]):
            assert says(panel["description"], number), f"{panel['title']} still says the default"
