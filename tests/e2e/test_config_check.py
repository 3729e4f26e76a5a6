"""``plumbline config check`` says good where the daemon starts, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.daemon import run, running, write_config

ACCEPTED: dict[str, str] = {
    "empty": "",
    "no probes": "probes: []\n",
    "a collector that is off": "collectors: {softnet: false}\n",
    "a document that judges": "baseline:\n  judge: {ssd: unnoba-2020}\n",
}
REFUSED: dict[str, tuple[str, ...]] = {
    "web: {listen_adress: x}\nvantage: vmm\n": (
        ":1: web.listen_adress: no such key; see the configuration reference; did you mean listen_address?",
        ":2: vantage = 'vmm': invalid enum value 'vmm'; did you mean vm? allowed: container, host, vm",
    ),
    "probes:\n  - type: canary\n    direktory: /x\n  - type: fio\n    interval: 5\n": (
        ":3: probes[0].direktory: no such key; see the configuration reference; did you mean directory?",
        ":5: probes[1].interval = 5: expected a duration such as 500ms, 15s, 5m, 6h or 1d",
    ),
    "collectors: {softnett: false}\n": (": collectors.softnett: no such collector; there are: ",),
    "baseline:\n  files: [/nonexistent/one.yaml, /nonexistent/two.yaml]\n": (
        "/nonexistent/one.yaml: can't be read", "/nonexistent/two.yaml: can't be read",
    ),
    "baseline:\n  judge: {ssd: unnoba-2002}\n": ("unnoba-2002",),
    "probes: [\n": (": not valid YAML: ",),
    "web: {config_file: /nonexistent/web.yaml}\n": ("/nonexistent/web.yaml: can't be read",),
}  # fmt: skip


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_what_it_accepts_starts(tmp_path: Path, text: str) -> None:
    checked = run("config", "check", write_config(tmp_path, text))
    assert (checked.returncode, checked.stderr) == (0, "")
    with running(tmp_path, config=text) as daemon:
        assert daemon.get("/metrics").status == 200


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_it_refuses_does_not_start(tmp_path: Path, text: str) -> None:
    file = write_config(tmp_path, text)
    checked = run("config", "check", file)
    assert checked.returncode == 1
    assert "good" not in checked.stdout
    lines = checked.stderr.splitlines()
    assert len(lines) == len(REFUSED[text])
    for line, says in zip(lines, REFUSED[text], strict=True):
        assert says in line
    started = run(
        "serve", "--config.file", file, "--storage.path", tmp_path / "state", "--web.listen-address", "[::1]:0"
    )
    assert started.returncode == 1


def test_a_baseline_of_no_version_is_refused(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("entries: []\n")
    file = write_config(tmp_path, f"baseline:\n  files: [{site}]\n")
    checked, started = (
        run("config", "check", file),
        run("serve", "--config.file", file, "--storage.path", tmp_path / "s"),
    )
    assert (checked.returncode, started.returncode) == (1, 1)
    assert f"plumbline: {site}: " in checked.stderr
