from __future__ import annotations

import json
import os
import socket
import stat
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.config.model import parse
from plumbline.config.probes.object import S3CanaryConfig, S3Config
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import Completed
from plumbline.errors import ConfigError, ParseError, ProbeRefused
from plumbline.probes.object import s3_canary
from plumbline.probes.object.s3 import S3Probe, owner_of
from plumbline.probes.object.s3_credentials import open_credentials, parse_credentials
from plumbline.probes.run.model import Host, Run
from plumbline.probes.run.result import Outcome, ProbeResult

CATALOGUE = load_catalogue()
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCY"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text(f"# of the probe\naccess_key = AKIA\nsecret_key = {SECRET}\n")
    path.chmod(0o600)
    return path


class Answer:
    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.argv: Sequence[str] = ()
        self.read = b""

    def run(self, argv: Sequence[str], *, keep_fds: Sequence[int] = (), **_more: object) -> Completed:
        self.argv, self.read = argv, os.pread(keep_fds[-1], 4096, 0)
        answer = self._answer
        return answer if isinstance(answer, Completed) else Completed((), 0, json.dumps(answer).encode())


def run(keys: Path, answer: Answer) -> ProbeResult:
    config = S3Config(
        name="s3", endpoint="http://127.0.0.1:7480", bucket="probe", credentials_file=str(keys), operations=2
    )
    probe = S3Probe(config, CATALOGUE.by_id["s3-ops-4k"], "stor01")
    assert probe.identity.target == "127.0.0.1:7480"
    assert probe.prefix == "plumbline-probe/stor01/s3/"
    return probe.run(Run(runner=answer, clock=lambda: 0.0, stopping=threading.Event()))


def test_figures_and_where_the_keys_go(keys: Path):
    spent = [1_000_000, 3_000_000]
    answer = Answer({"kind": "done", "version": "1", "spent": dict.fromkeys(("put", "get", "list", "delete"), spent)})
    result = run(keys, answer)
    assert result.outcome is Outcome.SUCCESS
    assert [each.operation for each in result.operations] == ["put", "get", "list", "delete"]
    assert result.operations[0].throughput == pytest.approx(2 * 4096 / 0.004)
    assert result.operations[2].throughput is None
    assert SECRET not in " ".join(answer.argv)
    assert SECRET.encode() in answer.read


def host(folder: Path, *, storage: str = "state", machine: str = "") -> Host:
    """A machine (``machine-id``), and the storage path of one of its daemons."""
    etc = folder / f"etc-{machine}"
    etc.mkdir(exist_ok=True)
    if machine:
        (etc / "machine-id").write_text(f"{machine}\n")
    return SimpleNamespace(storage=folder / storage, roots=SimpleNamespace(etc=etc))  # type: ignore[return-value]


def test_daemons_of_one_hostname_have_objects_of_their_own(tmp_path: Path) -> None:
    """Each removes what lies below its prefix when it starts."""
    daemons = [host(tmp_path), host(tmp_path, machine="a"), host(tmp_path, machine="b")]
    daemons.append(host(tmp_path, machine="b", storage="other"))
    owners = [owner_of(each) for each in daemons]
    assert len(set(owners)) == len(owners)
    assert all(each.startswith(f"{socket.gethostname()}-") for each in owners)
    assert owner_of(host(tmp_path, machine="a")) == owners[1]  # after a restart


def test_the_canarys_endpoint_is_no_local_device(keys: Path):
    config = S3CanaryConfig(
        name="s3", endpoint="http://127.0.0.1:7480", bucket="probe", credentials_file=str(keys), workload="s3-ops-4k"
    )
    (job,) = s3_canary.build(config, CATALOGUE.by_id["s3-ops-4k"], host(keys.parent)).continuous
    canary = job.make({})
    reading = canary.read()
    canary.close()
    assert (reading.target, reading.device) == ("127.0.0.1:7480", "")
    assert [(each.target, each.device) for each in job.identities()] == [("127.0.0.1:7480", "")]


@pytest.mark.parametrize(
    ("answer", "outcome", "says"),
    [
        ({"kind": "failed", "message": "AccessDenied"}, Outcome.FAILURE, "AccessDenied"),
        ({"kind": "failed", "message": "late", "timeout": True}, Outcome.TIMEOUT, "late"),
        ({"kind": "done", "version": "1", "spent": {"put": [1]}}, Outcome.FAILURE, "put: 1 of 2 operations"),
        (Completed((), None, timed_out=True), Outcome.TIMEOUT, "not finished in time"),
        (Completed((), 1, b"", f"ValueError: {SECRET}".encode()), Outcome.FAILURE, "ValueError"),
    ],
)
def test_what_goes_wrong(keys: Path, answer: object, outcome: Outcome, says: str):
    result = run(keys, Answer(answer))
    assert (result.outcome, result.operations) == (outcome, ())
    assert says in result.message
    assert SECRET not in result.message


@pytest.mark.parametrize(("mode", "says"), [(0o640, "chmod 600"), (0o604, "chmod 600"), (0o660, "chmod 600")])
def test_keys_that_others_can_read_are_refused(keys: Path, mode: int, says: str):
    keys.chmod(mode)
    with pytest.raises(ProbeRefused, match=says) as refusal:
        open_credentials(str(keys))
    assert refusal.value.reason == "credentials"


OWNER, USER, GROUP_OBJ, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20


@pytest.mark.parametrize(
    ("entry", "refused"),
    [((USER, 4, 65328), False), ((GROUP_OBJ, 4, -1), True), ((GROUP, 4, 65328), True), ((OTHER, 4, -1), True)],
)
def test_an_acl_may_let_a_user_in_but_no_group(keys: Path, entry: tuple[int, int, int], refused: bool):
    """As systemd 257 hands over a credential: ``user:65328:r--``, and the mask as the mode's group bits."""
    keys.chmod(0o400)
    entries = {(OWNER, -1): 4, (GROUP_OBJ, -1): 0, (MASK, -1): 4, (OTHER, -1): 0}
    entries[entry[0], entry[2]] = entry[1]
    acl = b"".join(struct.pack("<HHi", tag, allowed, who) for (tag, who), allowed in sorted(entries.items()))
    os.setxattr(keys, "system.posix_acl_access", struct.pack("<I", 2) + acl)
    assert stat.S_IMODE(keys.stat().st_mode) & 0o770 == 0o440
    if refused:
        with pytest.raises(ProbeRefused, match="accessible to others"):
            open_credentials(str(keys))
    else:
        os.close(open_credentials(str(keys)))


def test_keys_through_a_link_or_missing_are_refused(keys: Path, tmp_path: Path):
    (tmp_path / "link").symlink_to(keys)
    for path in (tmp_path / "link", tmp_path / "none", tmp_path):
        with pytest.raises(ProbeRefused) as refusal:
            open_credentials(str(path))
        assert refusal.value.reason == "credentials"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "access_key is missing"),
        ("access_key = a", "secret_key is missing"),
        ("access_key = a\naccess_key = b", "keys:2: access_key is given twice"),
        (f"access_key = a\n{SECRET}", "keys:2: expected"),
        (f"password = {SECRET}", "keys:1: expected"),
        ("access_key =", "keys:1: access_key is empty"),
    ],
)
def test_credentials_that_are_wrong(text: str, says: str):
    with pytest.raises(ParseError, match=says) as error:
        parse_credentials(text, source="keys")
    assert SECRET not in str(error.value)


@given(st.text(max_size=200))
def test_credentials_are_read_or_refused_without_a_word_of_them(text: str):
    try:
        found = parse_credentials(text, source="keys")
    except ParseError:
        return
    assert found.access_key
    assert found.secret_key
    assert repr(found) == "Credentials(…)"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("endpoint: 'http://user:pass@host'", "http:// or https:// with a host and nothing else"),
        ("endpoint: 'ftp://host'", "with a host and nothing else"),
        ("endpoint: 'http://host/path'", "with a host and nothing else"),
        ("bucket: Upper", "lower-case"),
        ("credentials_file: keys", "absolute path"),
    ],
)
def test_configuration_mistakes(change: str, says: str):
    given = {"endpoint": "http://h", "bucket": "abc", "credentials_file": "/k"}
    key, _, value = change.partition(": ")
    given[key] = value.strip("'")
    lines = "".join(f"    {name}: '{text}'\n" for name, text in given.items())
    with pytest.raises(ConfigError, match=says) as error:
        parse(f"probes:\n  - type: s3\n    name: s3\n{lines}", where="test")
    assert "pass" not in str(error.value)
