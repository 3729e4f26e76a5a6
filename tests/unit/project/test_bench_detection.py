"""The detection benchmark follows alerts as Prometheus does, writes what Prometheus reads, and models the rules."""

import math

import pytest
import yaml

np = pytest.importorskip("numpy", reason="numpy is not installed; it comes with requirements/dev.txt")

from bench import detection_climates as climates  # noqa: E402
from bench import detection_fast as fast  # noqa: E402
from bench import detection_model as model  # noqa: E402
from bench.detection_rules import firing_spans, needed, read_rules  # noqa: E402
from bench.history_store import STALE, Series, labels_of, write_request  # noqa: E402
from support.promtool import run_tests  # noqa: E402
from support.rules import ALERTS, RULES  # noqa: E402

STEPS = [30.0 * k for k in range(40)]


@pytest.mark.parametrize(("for_s", "keep_s"), [(0, 0), (60, 0), (0, 90), (60, 90)])
@pytest.mark.parametrize("present", ["_____###____", "_#_#_###_##__#####", "###__####_____#", "____________"])
def test_for_and_keep_firing_for_are_followed_as_promtool_does(tmp_path, present, for_s, keep_s):
    there = [step for step, sign in zip(STEPS, present, strict=False) if sign == "#"]
    spans = firing_spans(there, STEPS, for_s, keep_s)
    rule = {"alert": "A", "expr": "x > 0", "for": f"{for_s}s", "labels": {"severity": "critical"}}
    if keep_s:
        rule["keep_firing_for"] = f"{keep_s}s"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": [rule]}]}))
    alert = {"exp_labels": {"severity": "critical"}}
    cases = [
        {
            "eval_time": f"{step:.0f}s",
            "alertname": "A",
            "exp_alerts": [alert] if any(start <= step < end for start, end in spans) else [],
        }
        for step in STEPS
    ]
    values = " ".join("1" if step in there else "0" for step in STEPS)
    test = {"interval": "30s", "input_series": [{"series": "x", "values": values}], "alert_rule_test": cases}
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": [test]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(document))
    assert run_tests(tmp_path / "test.yaml") == ""


def test_a_remote_write_is_what_the_protocol_says():
    series = Series(labels_of("up", {"job": "x"}), np.array([1_700_000_000_000]), np.array([1.0]))
    body = write_request([series])
    # length of the message, tag of a literal with four bytes of length, length - 1
    assert body[:1] == bytes([len(body) - 6])
    assert body[1:6] == b"\xfc" + (len(body) - 7).to_bytes(4, "little")
    assert body[6:] == (
        b"\x0a\x2c"
        b"\x0a\x0e\x0a\x08__name__\x12\x02up"
        b"\x0a\x08\x0a\x03job\x12\x01x"
        b"\x12\x10\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x80\xd0\x95\xff\xbc\x31"
    )
    assert np.isnan(STALE)


def test_the_model_is_the_same_for_the_same_seed_and_has_what_it_promises():
    first, second = (model.healthy(np.random.default_rng(7), 2, 1.0) for _ in range(2))
    assert np.array_equal(first.level, second.level)
    calm = model.Climate(hiccups_per_day=0, blips_per_week=0, recoveries_per_week=0)
    history = model.healthy(np.random.default_rng(7), 1, 1.0, calm)
    assert history.level.max() < 1.6
    stepped = model.inject(history, model.STEPS[2], 4000)
    assert np.allclose(stepped.level[0, 4000:] / history.level[0, 4000:], 2)
    assert np.array_equal(stepped.level[0, :4000], history.level[0, :4000])
    edges = np.array([0.5, 1.0, 2.75])
    counts = model.draw(np.random.default_rng(7), history, edges, 10)
    assert counts.shape == (1, 2880, 4)
    assert counts.sum() == pytest.approx(864_000, rel=0.01)
    assert counts[..., -1].sum() / counts.sum() == pytest.approx(0.005, abs=0.003)


def test_each_rule_is_evaluated_behind_what_it_reads_though_groups_read_from_each_other():
    order = [rule.name for rule in needed(read_rules([RULES, ALERTS], 60), ["PlumblineFleetLatencyHigh"])]
    chain = ["degradation_fast:ratio", "canary_hour:ratio", "canary_season:ratio", "canary_limit:ratio"]
    chain = [f"plumbline:{name}" for name in [*chain, "canary_near:ratio", "fleet_beyond:ratio"]]
    assert [name for name in dict.fromkeys(order) if name in chain] == chain
    assert order.index("plumbline:canary_limit:ratio") < order.index("plumbline:canary_beyond:bool")
    assert order[-1] == "PlumblineFleetLatencyHigh"


# --- the fast model of the rules -----------------------------------------------------------------------------------

CONFIG = fast.shipped() | {"tolerance": 1.25, "spread": 0.0}
SCRAPES_A_DAY = model.DAY_S // model.SCRAPE_S


def judged(changes=(), slow=()):
    """One even series of nine days; ``changes``: (ratio, first scrape of the ninth day, length), ``slow`` likewise."""
    now, share = np.zeros((1, 9 * SCRAPES_A_DAY), np.float32), np.zeros((1, 9 * SCRAPES_A_DAY), np.float32)
    for values, chosen in ((now, [(math.log(ratio), *when) for ratio, *when in changes]), (share, slow)):
        for value, begin, length in chosen:
            values[0, 8 * SCRAPES_A_DAY + begin : 8 * SCRAPES_A_DAY + begin + length] = value
    return fast.judge(CONFIG, now, share)


def first(flags, every=1):
    """The scrape of the ninth day at which it is set first, ``None``: never."""
    at = np.flatnonzero(flags[0]) * every
    return int(at[0]) - 8 * SCRAPES_A_DAY if len(at) else None


def agreed(hosts):
    beyond, near = (np.concatenate([getattr(host, name) for host in hosts]) for name in ("beyond", "near"))
    return fast.agreed(CONFIG, beyond, near, model.SCRAPE_S)[None]


def test_hosts_agree_after_the_whole_span_and_no_earlier():
    scrapes_needed = fast.scrapes(CONFIG["alerts"]["PlumblineFleetLatencyHigh"]["span"]) + 1
    assert first(agreed([judged([(2, 100, 500)])])) == 100 + scrapes_needed - 1
    assert first(agreed([judged([(2, 100, scrapes_needed - 1)])])) is None


def test_a_majority_has_to_agree_for_longer_where_the_others_are_not_near_their_limits():
    fleet = CONFIG["alerts"]["PlumblineFleetLatencyHigh"]
    slow, calm = judged([(2, 100, 500)]), judged()
    near = judged([(1 + 0.6 * (CONFIG["canary"]["beyond"] - 1), 100, 500)])
    assert first(agreed([slow, slow, calm])) == 100 + fast.scrapes(fleet["mostSpan"])
    assert first(agreed([slow, slow, near])) == 100 + fast.scrapes(fleet["span"])
    assert first(agreed([slow, near, near])) is None


def test_an_even_series_is_out_of_line_from_what_the_rules_say_on():
    limit = CONFIG["canary"]["beyond"]
    assert np.allclose(np.exp(judged().limit[0, -1]), limit)
    assert first(judged([(limit * 0.99, 100, 500)]).beyond) is None
    assert first(judged([(limit * 1.01, 100, 500)]).beyond) is not None


def test_a_ticket_needs_its_share_of_the_span_or_less_time_beyond_the_cap():
    high = CONFIG["alerts"]["PlumblineCanaryLatencyHigh"]
    long, cap, tick = fast.scrapes(high["span"]), fast.scrapes(high["capSpan"]), fast.scrapes(CONFIG["tick"])
    twice = first(judged([(2, 104, 500)]).high[high["span"]], tick)
    assert 0 <= twice - (104 + (1 - high["quantile"]) * long) <= tick
    five_times = first(judged([(5, 104, 500)]).high[high["span"]], tick)
    assert 0 <= five_times - (104 + cap) <= tick
    assert first(judged([(2, 104, int(long * 0.7))]).high[high["span"]], tick) is None


def test_the_budget_burns_for_a_page_and_a_ticket():
    burn = CONFIG["alerts"]["PlumblineCanaryBudgetBurn"]
    over = burn["page"]["burn"] * CONFIG["canary"]["slowOperationsBudget"] * 1.1
    verdicts = judged(slow=[(over, 100, 300)])
    assert first(verdicts.burning) == 100 + fast.scrapes(burn["page"]["span"])
    half = 100 + fast.scrapes(burn["ticket"]["span"]) // 2
    assert 0 <= first(verdicts.burnt) - half - fast.scrapes(burn["ticket"]["for"]) <= fast.scrapes(CONFIG["tick"])
    assert first(judged(slow=[(over, 100, 50)]).burnt) is None


def test_what_is_usual_for_a_canary_burns_nothing():
    burn = CONFIG["alerts"]["PlumblineCanaryBudgetBurn"]
    over = burn["page"]["burn"] * CONFIG["canary"]["slowOperationsBudget"] * 1.1
    job = (over, 100 - 7 * SCRAPES_A_DAY, 480)
    again = judged(slow=[job, (over * 0.9 * burn["ticket"]["burstUsual"], 100, 480)])
    assert not again.burning[:, 8 * SCRAPES_A_DAY :].any()
    assert not again.burnt[:, 8 * SCRAPES_A_DAY :].any()
    more = judged(slow=[job, (over * 1.1 * burn["ticket"]["usual"], 100, 480)])
    assert more.burning[:, 8 * SCRAPES_A_DAY :].any()
    assert more.burnt[:, 8 * SCRAPES_A_DAY :].any()


def test_what_is_observed_is_what_is_drawn():
    calm = model.Climate(noise_sigma=0, hiccups_per_day=6, blips_per_week=0, recoveries_per_week=0, weekend_ratio=1)
    history = model.healthy(np.random.default_rng(7), 1, 2.0, calm)
    edges = np.geomspace(0.3, 20, 400)
    edges = np.sort(np.append(edges, 2.75))
    counts = model.draw(np.random.default_rng(8), history, edges, 10)[0]
    grown = np.cumsum(counts, axis=1)
    median = np.log(edges[np.argmax(grown >= grown[:, -1:] / 2, axis=1)])
    slow = 1 - grown[:, edges.tolist().index(2.75)] / grown[:, -1]
    seen, share = fast.observe(np.random.default_rng(9), history, np.array([2.75]), np.array([10.0]))
    assert seen.mean() == pytest.approx(median.mean(), abs=0.01)
    assert np.std(seen[0] - median) == pytest.approx(math.sqrt(2) * 1.2533 * model.BODY_SIGMA / math.sqrt(300), rel=0.1)
    assert share.mean() == pytest.approx(slow.mean(), rel=0.05)


def test_climates_are_data_and_differ_as_they_say():
    found = climates.read_climates(climates.CLIMATES)
    assert all(len(each) == climates.HOSTS for each in found.values())
    assert {each.noise_sigma for each in found["mixed cluster"]} == {0.02, 0.09, 0.15}
    busy = model.healthy(
        np.random.default_rng(1), 1, 7.0,
        model.Climate(
            noise_sigma=0, hiccups_per_day=0, blips_per_week=0, recoveries_per_week=0,
            load_swing=3, scrub_ratio=1, weekend_ratio=1,
        ),
    )  # fmt: skip
    assert busy.level.max() == pytest.approx(0.6 / (1 - 0.4 * 1.5), rel=0.001)
    assert busy.level.min() == pytest.approx(0.6 / (1 - 0.4 * 0.5), rel=0.001)
    assert climates.bound(model.Climate()) == pytest.approx(2.75, rel=0.03)
    # what is recorded at rest knows no load
    assert climates.bound(model.Climate(production_ratio=1.6)) == climates.bound(model.Climate())


EVEN = {
    "daily_amplitude": 0, "weekend_ratio": 1, "noise_sigma": 0, "scrub_ratio": 1, "hiccups_per_day": 0,
    "blips_per_week": 0, "recoveries_per_week": 0,
}  # fmt: skip


def world(days, hosts=2, **changes):
    return model.healthy(np.random.default_rng(5), hosts, days, model.Climate(**EVEN, **changes)).level


def test_a_third_of_the_worlds_only_examine_and_none_is_both():
    tuning, examination = (
        climates.read_climates(climates.CLIMATES, uses) for uses in (["tuning"], ["examination"])
    )  # fmt: skip
    assert not tuning.keys() & examination.keys()
    assert len(examination) * 3 >= len(tuning) + len(examination)
    assert climates.read_climates(climates.CLIMATES).keys() == tuning.keys() | examination.keys()


def test_a_job_comes_at_its_times_for_its_hours_and_with_its_delay():
    hour = 3600 // model.SLOT_S
    weekly = world(21, jobs=(model.Job(168, (2, 4), 4),))
    starts = np.flatnonzero(np.diff((weekly[0] == 4).astype(int)) == 1)
    assert [int(each) for each in np.diff(starts)] == [168 * hour] * (len(starts) - 1)
    assert len(starts) in {2, 3}
    assert np.array_equal(weekly[0], weekly[1])
    assert set(np.unique(weekly)) == {1.0, 4.0}
    late = world(21, jobs=(model.Job(24, (1, 1), 2, late_h=1.5),))
    gaps = np.diff(np.flatnonzero(np.diff((late[0] == 2).astype(int)) == 1)) / hour
    assert 22.5 <= gaps.min() < 24 < gaps.max() <= 25.5
    new = world(21, jobs=(model.Job(24, (2, 2), 2, first_day=15),))
    assert new[:, : 15 * model.SLOTS_PER_DAY].max() == 1
    assert new[:, 16 * model.SLOTS_PER_DAY :].max() == 2


def test_a_clock_change_moves_a_job_by_an_hour():
    hour = 3600 // model.SLOT_S
    moved = world(10, clock_change_day=5, jobs=(model.Job(24, (1, 1), 2),))
    gaps = np.diff(np.flatnonzero(np.diff((moved[0] == 2).astype(int)) == 1)).tolist()
    assert sorted(set(gaps)) == [23 * hour, 24 * hour]
    assert gaps.count(23 * hour) == 1


def test_days_weeks_and_hosts_differ_as_the_world_says():
    days = world(400, day_sigma=0.1)[:, :: model.SLOTS_PER_DAY]
    assert np.log(days[0]).std() == pytest.approx(0.1, rel=0.15)
    assert np.array_equal(days[0], days[1])
    own = world(3, day_sigma=0.1, own_days=True)
    assert not np.allclose(own[0], own[1])
    quiet = world(21, periods=((14, 7, 0.75),))
    assert set(np.unique(quiet[:, : 14 * model.SLOTS_PER_DAY])) == {1.0}
    assert set(np.unique(quiet[:, 14 * model.SLOTS_PER_DAY :])) == {0.75}
    assert world(1, production_ratio=1.6).max() == 1.6
    assert world(14, growth_per_week=0.03)[0, -1] == pytest.approx(1.03**2, rel=1e-4)
    stalls = world(30, stalls_per_day=4)
    assert stalls.max() >= 20
    assert not np.array_equal(stalls[0] > 1, stalls[1] > 1)


def test_an_interval_holds_its_count_and_is_wider_where_clusters_differ():
    assert climates.interval(np.array([0, 0, 0])) == pytest.approx((0, 3.7), abs=0.1)
    assert climates.interval(np.array([3, 3, 2, 2])) == pytest.approx((4.8, 18.4), abs=0.1)
    low, high = climates.interval(np.array([10, 0, 0, 0]))
    assert low < 1
    assert high > 30
