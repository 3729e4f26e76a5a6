"""The evaluator follows Alertmanager: missing labels are empty, and two-sided alerts don't mute each other."""

import pytest

from support.inhibition import InhibitRule, Matcher, audible

DOWN_MUTES_NODE = InhibitRule.of(
    {
        "source_matchers": ["alertname = Down"],
        "target_matchers": ['alertname =~ "Disk.*"'],
        "equal": ["cluster", "instance"],
    }
)


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("layer = disk", {"layer": "disk"}, True),
        ("layer=disk", {"layer": "network"}, False),
        ('layer="disk"', {"layer": "disk"}, True),
        ('name="a \\"b\\""', {"name": 'a "b"'}, True),
        ("layer != disk", {"layer": "network"}, True),
        ("layer != disk", {}, True),
        ('layer = ""', {}, True),
        ('layer =~ "dis"', {"layer": "disk"}, False),
        ('layer =~ "disk|osd"', {"layer": "osd"}, True),
        ('layer =~ "disk|osd"', {"layer": "osd-x"}, False),
        ('layer =~ ".*"', {}, True),
        ('layer !~ "disk|osd"', {"layer": "disk"}, False),
        ('layer !~ "disk|osd"', {}, True),
    ],
)
def test_matchers(text, labels, expected):
    assert Matcher.parse(text).matches(labels) is expected


@pytest.mark.parametrize("text", ["layer", "= disk", 'layer = "disk', "9layer = disk"])
def test_what_is_no_matcher_is_refused(text):
    with pytest.raises(ValueError, match="not a matcher"):
        Matcher.parse(text)


def test_the_old_keys_are_refused():
    with pytest.raises(ValueError, match="source_match"):
        InhibitRule.of({"source_match": {"alertname": "Down"}, "target_matchers": []})


def test_a_source_mutes_a_target_with_the_same_values():
    down = {"alertname": "Down", "instance": "a"}
    slow = {"alertname": "DiskSlow", "instance": "a"}
    assert DOWN_MUTES_NODE.mutes(slow, [down, slow])
    assert audible([DOWN_MUTES_NODE], [down, slow]) == [down]


def test_another_value_of_one_equal_label_is_another_story():
    down = {"alertname": "Down", "instance": "a", "cluster": "north"}
    slow = {"alertname": "DiskSlow", "instance": "a", "cluster": "south"}
    assert not DOWN_MUTES_NODE.mutes(slow, [down, slow])


def test_a_label_missing_on_one_side_differs_from_a_value():
    assert not DOWN_MUTES_NODE.mutes({"alertname": "DiskSlow"}, [{"alertname": "Down", "instance": "a"}])


def test_the_trap_labels_missing_on_both_sides_are_equal():
    assert DOWN_MUTES_NODE.mutes({"alertname": "DiskSlow"}, [{"alertname": "Down"}])


def test_without_a_firing_source_nothing_is_muted():
    assert not DOWN_MUTES_NODE.mutes({"alertname": "DiskSlow", "instance": "a"}, [])


def test_a_muted_source_still_mutes():
    chain = [
        InhibitRule.of({"source_matchers": ["alertname = A"], "target_matchers": ["alertname = B"]}),
        InhibitRule.of({"source_matchers": ["alertname = B"], "target_matchers": ["alertname = C"]}),
    ]
    a, b, c = {"alertname": "A"}, {"alertname": "B"}, {"alertname": "C"}
    assert audible(chain, [a, b, c]) == [a]


def test_an_alert_on_both_sides_is_not_muted_by_its_like_or_itself_but_by_a_pure_source():
    rule = InhibitRule.of({"source_matchers": ["layer =~ network|disk"], "target_matchers": ["layer =~ disk|osd"]})
    network, disk, osd = {"layer": "network"}, {"layer": "disk"}, {"layer": "osd"}
    assert not rule.mutes(disk, [disk])
    assert not rule.mutes(disk, [disk, {"layer": "disk", "device": "sdb"}])
    assert rule.mutes(disk, [disk, network])
    assert rule.mutes(osd, [disk])
