"""The detection benchmark follows alerts as Prometheus does, and writes what Prometheus reads."""

import subprocess

import pytest
import yaml

from support.programs import need

np = pytest.importorskip("numpy", reason="numpy is not installed; it comes with requirements/dev.txt")

from bench import detection_model as model  # noqa: E402
from bench.detection_rules import duration_s, firing_spans  # noqa: E402
from bench.history_store import STALE, Series, labels_of, write_request  # noqa: E402

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
    done = subprocess.run(
        [need("promtool"), "test", "rules", tmp_path / "test.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_durations():
    assert duration_s("1h30m") == 5400
    assert duration_s("90s") == 90
    assert duration_s("") == 0


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
