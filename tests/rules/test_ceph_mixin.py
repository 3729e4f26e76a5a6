"""The comparison with ceph-mixin names alerts of ours that exist, and leaves none of theirs out."""

import re

from support.rules import ROOT

PAGE = (ROOT / "docs" / "ceph-mixin.md").read_text("utf-8")
THEIRS = 89
"""Alerts of the copy of October 2025."""


def rows():
    every = PAGE.split("## All of them", 1)[1]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in every.splitlines()
        if re.match(r"\| (Ceph|Hardware|Prometheus|NVMeoF)", line)
    ]


def test_every_alert_of_ours_that_it_names_exists(alerts):
    named = set(re.findall(r"`(Plumbline\w+)`", PAGE))
    assert named <= {rule["alert"] for rule in alerts}, named - {rule["alert"] for rule in alerts}
    # and every one about Ceph itself stands there
    assert {rule["alert"] for rule in alerts if rule["alert"].startswith("PlumblineCeph")} - named <= {
        "PlumblineCephUnreachable"  # of the probes' own user
    }


def test_each_of_theirs_is_told_or_has_a_reason():
    assert len({row[0] for row in rows()}) == len(rows()) == THEIRS
    for theirs, tells, ours, how in rows():
        assert tells, theirs
        assert "`Plumbline" in ours or how.startswith("not"), theirs


def test_a_check_that_it_says_is_told_is_told(alerts):
    """`PlumblineCephHealth` passes over what has an alert of its own: no check may fall between the two."""
    exprs = {rule["alert"]: rule["expr"] for rule in alerts if rule["labels"]["severity"] != "info"}
    for theirs, _, ours, how in rows():
        for check in re.findall(r"checks? ((?:`[A-Z_]+`[^;`]*?)+)", how):
            for name in re.findall(r"`([A-Z_]+)`", check):
                (alert,) = re.findall(r"`(Plumbline\w+)`", ours)
                patterns = re.findall(r'name=~"([^"]+)"', exprs[alert])
                assert any(re.fullmatch(pattern, name) for pattern in patterns), (theirs, name)
