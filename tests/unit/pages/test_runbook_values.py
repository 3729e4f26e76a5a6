"""The labels of an alert in the commands of its runbook: what they replace, and what may not."""

import html
import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

from plumbline.pages import runbooks
from plumbline.pages.runbook_values import filled, usable
from support.metrics import ROOT
from support.offenders import for_every

DISK = {"cluster": "north", "instance": "stor07:10047", "device": "sdq", "ceph_daemon": "osd.31"}


def script(line: str, **labels: str) -> str:
    return filled(f"```sh\n{line}\n```\n", usable(labels)).removeprefix("```sh\n").removesuffix("\n```\n")


@pytest.mark.parametrize(
    ("line", "labels", "becomes"),
    [
        ("DEVICE=sdg", {"device": "nvme3n1"}, "DEVICE=nvme3n1  # from the alert"),
        ("INSTANCE=stor01.example:10047   # label of the alert", {"instance": "[2001:db8::7]:10047"},
         "INSTANCE=[2001:db8::7]:10047    # from the alert"),
        ("OSD=71   # from the description", {"ceph_daemon": "osd.4"}, "OSD=4    # from the alert"),
        ("OSD=osd.71", {"ceph_daemon": "osd.4"}, "OSD=osd.4  # from the alert"),
        ("OSD=osd.12", {"probe": "rados/osd.9"}, "OSD=osd.9  # from the alert"),
        ("OSD=osd.12", {"target": "192.0.2.1", "probe": "rtt/192.0.2.1"}, "OSD=osd.12"),
        ("POOL=vms", {"pool": "cephfs.data"}, "POOL=cephfs.data  # from the alert"),
        ("PROMETHEUS=http://localhost:9090", {"prometheus": "https://prom.example.org/x/", "instance": "a:1"},
         "PROMETHEUS=https://prom.example.org/x  # from the alert"),
        ("PROMETHEUS=prom.example:9090", {"prometheus": "http://p:9090", "instance": "p:9090"},
         "PROMETHEUS=p:9090           # from the alert"),
        ("NODE=${INSTANCE%:*}", {"instance": "[2001:db8::7]:10047"}, "NODE=2001:db8::7"),
        ('ssh "${INSTANCE%:*}" ss -tin', {"instance": "[2001:db8::7]"}, 'ssh "2001:db8::7" ss -tin'),
        ("NODE=${INSTANCE%:*}", {"instance": "[-x]:10047"}, "NODE=${INSTANCE%:*}"),
        # nothing of theirs
        ("DEVICE=sdg", {"instance": "stor07:10047"}, "DEVICE=sdg"),
        ("NODE=${INSTANCE%:*}", {"instance": "stor07:10047", "hostname": "x"}, "NODE=${INSTANCE%:*}"),
        ("PLUMBLINE=plumbline", {"device": "sda"}, "PLUMBLINE=plumbline"),
        ("DEVICE=sdg ssh x", {"device": "sda"}, "DEVICE=sdg ssh x"),
    ],
)  # fmt: skip
def test_an_example_is_replaced(line: str, labels: dict[str, str], becomes: str) -> None:
    assert script(line, **labels) == becomes


@for_every(
    "value",
    [
        "$(reboot)",
        "sda;reboot",
        "`reboot`",
        "--all",
        "a b",
        "",
        "sda\nreboot",
        "sda'",
        'sda"',
        "sda\\",
        "a" * 300,
        "~",
        "sdа",
        "sda/../sdb",
        "/mnt/..",
        "sda/./device",
        "sd[a-z]",
        "[0-9]",
        "sd*",
        "sd?",
        "{a,b}",
        "!!",
        "[2001:db8::7]",
    ],
)
def test_what_a_shell_or_a_program_would_understand_is_not_filled_in(value: str) -> None:
    assert script("DEVICE=sdg", device=value) == "DEVICE=sdg"


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_what_is_filled_in_stays_itself_in_the_remote_shell_too(tmp_path: Path, shell: str) -> None:
    """``ssh HOST cmd "$DEVICE"`` gives the remote shell the value without quotes."""
    if which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for name in ("sda", "a", "b", "1", "2", "x:y"):
        (tmp_path / name).touch()
    printable = [chr(code) for code in range(33, 127)]
    values = [f"sd{char}a" for char in printable] + [f"{char}sda" for char in printable] + ["sd[a-z]", "[12]", "sd[!b]"]
    taken = [value for value in values if usable({"device": value})]
    assert len(taken) > 100
    script = "".join(f"printf '%s\\n' {value}\n" for value in taken)
    done = subprocess.run([shell, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == taken


def test_an_address_in_brackets_is_in_no_remote_command() -> None:
    for file in sorted((ROOT / "alerts/runbooks").glob("*.md")):
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("ssh "):
                rest = line.replace('ssh "${INSTANCE%:*}"', "")
                assert not re.search(r"\$\{?(INSTANCE|ALERTMANAGER|PROMETHEUS)\b", rest), f"{file.name}: {line}"


@pytest.mark.parametrize(
    "value",
    ["javascript:x", "http://[a-z]/", "http://a[0-9]", "http://a b", "http://$(x)", "ftp://a", "http://a/?x=1&y"],
)
def test_what_is_no_plain_address_is_not_asked(value: str) -> None:
    assert usable({"prometheus": value}) == {}


def test_only_what_stands_in_a_script_is_replaced() -> None:
    text = "DEVICE=sdg\n\n```promql\nDEVICE=sdg\n```\n\n```sh\nDEVICE=sdg\n```\n"
    assert filled(text, {"device": "sda"}).count("DEVICE=sda") == 1


def test_a_page_names_its_alert_in_commands_and_links() -> None:
    page = runbooks.page("PlumblineDiskLatencyOutlier", DISK | {"severity": "warning"})
    assert page is not None
    text = html.unescape(page)
    for line in ("INSTANCE=stor07:10047 ", "DEVICE=sdq ", "OSD=31 "):
        assert line in text
    assert not re.search(r"^(INSTANCE|DEVICE|OSD)=(stor01|sdg|71)", text, re.MULTILINE)
    assert "instance <b>stor07:10047</b>" in page
    links = re.findall(r'<a href="(Plumbline[^"]+)"', page)
    assert links
    assert {link.partition("?")[2] for link in links} == {
        "cluster=north&amp;instance=stor07%3A10047&amp;device=sdq&amp;ceph_daemon=osd.31"
    }


def test_what_runbooks_share_is_filled_in_too() -> None:
    page = runbooks.page("PlumblineCanaryLatencyExtreme", {"probe": "rados/osd.9", "prometheus": "http://p:9090/"})
    assert page is not None
    assert "OSD=osd.9 " in page
    assert "PROMETHEUS=http://p:9090 " in page


def test_without_labels_a_page_is_as_written() -> None:
    assert runbooks.page("PlumblineDiskHung", {}) == runbooks.page("PlumblineDiskHung")
    assert runbooks.page("PlumblineDiskHung", {"severity": "x"}) == runbooks.page("PlumblineDiskHung")
