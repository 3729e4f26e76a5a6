"""Latency budgets: the table of Fujitsu's slide typed a second time, and what the loader refuses."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from plumbline.baseline import budget, profiles
from plumbline.errors import BaselineError
from support.documented import PROFILES
from support.figure_ledger import read_ledger

FUJITSU = PROFILES["fujitsu-2013"].profile

# Typed from the document a second time: fio write, network, device, ack, code; 4k beside 8k, one ack for both.
SLIDE_47 = """
    1 GbE         2565 2709  182 227  54 64  26  2017 2061
    10 GbE        2555 2584  109 122  54 64  21  2178 2171
    40 GbE        2191 2142   19  22  54 64  15  2024 1959
    40 Gb IPoIB   2392 2357   29  24  54 64  18  2190 2155
    56 Gb IPoIB   1848 1821   19  37  54 64  14  1686 1613
"""


def rows():
    for number, text in enumerate(SLIDE_47.strip().splitlines()):
        *name, f4, f8, n4, n8, d4, d8, ack, c4, c8 = text.split()
        yield " ".join(name), 1308 + number, (f4, n4, d4, ack, c4), (f8, n8, d8, ack, c8)


@pytest.mark.parametrize(("link", "line", "small", "large"), list(rows()))
def test_the_table_of_slide_47(link, line, small, large):
    for one, figures in zip(FUJITSU.budgets, (small, large), strict=True):
        (found,) = [each for each in one.links if each.link == link]
        total, network, device, ack, code = (int(figure) * 1e-6 for figure in figures)
        assert found.line == line
        assert found.total.value == pytest.approx(total, rel=1e-12)
        seconds = {part.stage.name: part.seconds for part in budget.parts(one, found)}
        expected = {"network": 2 * network, "device": device, "ack": 5 * ack, "code": code}
        assert seconds == pytest.approx(expected, rel=1e-12)
        assert budget.over(one, found) == 0  # to the microsecond


def test_every_number_of_the_table_is_in_the_budgets():
    """By value, not by line alone: what the ledger has of the table is what both budgets have."""
    path = Path(__file__).parents[2] / "fixtures/seeds/fujitsu-2013-figures.tsv"
    printed = defaultdict(list)
    for entry in read_ledger(path):
        if 1308 <= entry.line <= 1312 and entry.token.isdigit():
            printed[entry.line].append(int(entry.token))
    kept = defaultdict(list)
    for small, large in zip(FUJITSU.budgets[0].links, FUJITSU.budgets[1].links, strict=True):
        figures = [link.total for link in (small, large)]
        figures += [link.stages[name] for name in ("network", "device", "code") for link in (small, large)]
        figures.append(small.stages["ack"])
        assert large.stages["ack"] == small.stages["ack"]
        kept[small.line] = sorted(int(figure.number) for figure in figures)
    assert {line: sorted(numbers) for line, numbers in printed.items()} == kept


TEXT = """\
schema_version: 1
name: x
title: t
document: {title: d, year: 2013, language: en, text: d.txt}
hardware: {h: {device_class: ssd, description: one}}
series: []
budgets:
- about: one write
  where: slide
  line: 1
  hardware: h
  tool: fio
  command: fio
  workload: rbd-write-4k-qd1-j1
  stages:
  - {name: network, layer: network, printed: Network, times: 2}
  - {name: code, layer: rados, printed: Code}
  links:
  - {link: 1 GbE, device_class: 1g, line: 2, total: 2565 us, stages: {network: 182 us, code: 2201 us}}
"""


def load(text):
    return profiles.parse_profile(text, "x.yaml")


def test_one_operation_has_one_budget():
    """Its stages would be series of the same labels."""
    twice = TEXT + TEXT.partition("budgets:\n")[2]
    with pytest.raises(BaselineError) as caught:
        load(twice)
    assert str(caught.value) == "x.yaml: budgets[1].workload = 'rbd-write-4k-qd1-j1': has a budget already"


def test_a_profile_may_have_no_row():
    loaded = load(TEXT)
    assert (loaded.rows, loaded.entries) == ((), ())
    assert loaded.layers == {"rbd-write-4k-qd1-j1": "rbd"}


def test_rounding_is_no_contradiction():
    load(TEXT.replace("2565 us", "2.6 ms"))
    load(TEXT.replace("2565 us", "2566 us"))  # half a microsecond each: twice the network, the code, the total


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("code: 2201 us", "code: 2101 us",
         "budgets[0].links[0].breaks: the stages are 100us below the total 2565 us; say why"),
        ("times: 2", "times: 3", "budgets[0].links[0].breaks: the stages are 182us above the total 2565 us; say why"),
        ("code: 2201 us}}", "code: 2201 us}, breaks: why}",
         "budgets[0].links[0].breaks = 'why': the stages add up to the total"),
        ("{network: 182 us, ", "{", "budgets[0].links[0].stages = 'code': expected each of: network, code"),
        ("code: 2201 us}", "code: 2201 us, disk: 1 us}",
         "budgets[0].links[0].stages = 'network, code, disk': expected each of: network, code"),
        ("name: code", "name: network", "budgets[0].stages = 'network, network': two stages have the same name"),
        ("layer: rados", "layer: ceph", "budgets[0].stages[1].layer = 'ceph': one of network, disk, osd, "),
        ("printed: Code", "printed: Code, workload: none", "budgets[0].stages[1].workload = 'none': no such workload"),
        ("rbd-write-4k-qd1-j1", "rbd-write-4k-qd1", "budgets[0].workload = 'rbd-write-4k-qd1': no such workload"),
        ("hardware: h\n", "hardware: i\n", "budgets[0].hardware = 'i': the profile has no such hardware"),
        ("stages: {network: 182 us, code: 2201 us}}\n",
         "stages: {network: 182 us, code: 2201 us}}\n"
         "  - {link: 1 GbE again, device_class: 1g, line: 3, total: 3 us, stages: {network: 1 us, code: 1 us}}\n",
         "budgets[0].links = '1g, 1g': two links have the same device_class"),
        ("2565 us", "2565", "budgets[0].links[0].total = 2565: expected a figure with its unit"),
        ("times: 2", "times: 0", "budgets[0].stages[0].times"),
        ("times: 2", "often: 2", "budgets[0].stages[0]"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old, new, said):
    assert old in TEXT
    with pytest.raises(BaselineError) as caught:
        load(TEXT.replace(old, new))
    assert str(caught.value).startswith(f"x.yaml: {said}")
    assert "\n" not in str(caught.value)


def test_a_sum_that_contradicts_is_kept_with_its_reason():
    text = TEXT.replace("code: 2201 us}}", "code: 2101 us}, breaks: a digit was lost}")
    (one,) = load(text).profile.budgets
    assert budget.over(one, one.links[0]) == pytest.approx(-100e-6)
