"""Every file of a secret or of trust is read through :mod:`plumbline.core.keyfiles`: read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import plumbline
from plumbline.cli import main
from plumbline.config.model import Config
from plumbline.config.options import check_key_files
from plumbline.config.probes.object import S3CanaryConfig, S3Config
from plumbline.errors import ConfigError

SOURCE = Path(plumbline.__file__).parent
DOOR = {"read_secret", "read_anchor", "open_secret", "open_credentials"}
# Function that reads a file which the administrator named, and not through the door → what it is
NO_SECRET = {
    ("config/yaml.py", "read_text"): "its callers say by `read`",
    ("commands/serve.py", "check_config"): "as below",
    ("config/model.py", "load"): "the configuration: it names secrets and holds none",
    ("baseline/site.py", "site_text"): "a baseline",
    ("baseline/signature.py", "check_signed"): "a signature",
    ("commands/ceph/keyring.py", "read_keyring"): "compared with what Ceph has, not used",
    ("commands/fleet_node.py", "_file"): "a baseline",
    ("fleet/inventory.py", "read_inventory"): "an inventory",
    ("probes/ceph/ceph_access.py", "key_file"): "ceph.conf; the keyring goes through the door",
    ("sources/ceph/ceph_conf.py", "read_ceph_conf"): "ceph.conf",
    ("core/keyfiles.py", "read_secret"): "the door",
    ("core/keyfiles.py", "read_anchor"): "the door",
    ("core/keyfiles.py", "open_secret"): "the door",
}
# Field that names such a file → the function that reads it through the door
FIELDS = {
    "allowed_signers": ("baseline/signature.py", "signer"),
    "ca_file": ("probes/object/s3_credentials.py", "open_credentials"),
    "cert_file": ("web/tls.py", "_pem"),
    "client_ca_file": ("web/tls.py", "_pem"),
    "credentials_file": ("probes/object/s3_credentials.py", "open_credentials"),
    "key_file": ("web/tls.py", "_pem"),
    "keyring": ("probes/ceph/ceph_access.py", "_key_problem"),
    "osd_bench_keyring": ("probes/ceph/ceph_access.py", "_key_problem"),
    "password_file": ("sources/prometheus/access.py", "_secret"),
    "config_file": ("config/web.py", "load"),
}
NAMES_A_KEY = re.compile(r"(^|_)(key|keyring|credentials?|password|token|signers|ca|cert|secret)(_file)?$")
NO_FILE = {"key", "password", "credentials", "cert", "access_key", "secret_key", "client_ca", "token"}
"""Texts themselves, whose files have names of their own."""


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for file in sorted(SOURCE.rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                yield str(file.relative_to(SOURCE)), function


def uses_door(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Name) and node.id in DOOR for node in ast.walk(function))


def reads_named_file(function: ast.FunctionDef) -> bool:
    """Calls :func:`read_named`, :func:`open_named` or the configuration's ``read_text`` without the door."""
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            words = {keyword.arg for keyword in call.keywords}
            if call.func.id in {"read_named", "open_named"}:
                return True
            if call.func.id == "read_text" and "max_bytes" in words and "read" not in words:
                return True
    return False


def test_what_is_read_beside_the_door_is_no_secret() -> None:
    beside = {(module, function.name) for module, function in functions() if reads_named_file(function)}
    assert beside - set(NO_SECRET) == set()
    assert set(NO_SECRET) - beside - {("config/yaml.py", "read_text")} == set(), "no longer there"


def test_every_field_that_names_a_key_has_its_reader() -> None:
    through = {(module, function.name) for module, function in functions() if uses_door(function)}
    fields = set()
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and ("config" in str(file) or file.name == "access.py"):
                fields |= {
                    each.target.id
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
    named = {field for field in fields if NAMES_A_KEY.search(field)} - NO_FILE
    assert named <= set(FIELDS), "a field that names a key, and no reader is listed"
    assert set(FIELDS.values()) - through == set()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text("access_key = a\nsecret_key = b\n")
    path.chmod(0o600)
    return path


def s3(**files: str) -> dict[str, object]:
    given = {"credentials_file": "/none", **files}
    return {"type": "s3", "name": "s3", "endpoint": "http://x", "bucket": "probes", **given}


CASES = {
    "allowed signers": (0o646, lambda path: {"baseline": {"allowed_signers": path}}, "baseline.allowed_signers"),
    "keyring": (0o644, lambda path: {"ceph": {"keyring": path}}, "ceph.keyring"),
    "bench keyring": (
        0o644, lambda path: {"ceph": {"osd_bench_user": "x", "osd_bench_keyring": path}}, "ceph.osd_bench_keyring"
    ),
    "S3 keys": (0o640, lambda path: {"probes": [s3(credentials_file=path)]}, "probes[0].credentials_file"),
    "S3 CA": (0o666, lambda path: {"probes": [s3(ca_file=path)]}, "probes[0].ca_file"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_config_check_refuses_what_the_reader_would(
    case: str, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mode, made, where = CASES[case]
    file = tmp_path / "plumbline.yaml"
    file.write_bytes(msgspec.json.encode(made(str(key))))
    assert main(["config", "check", str(file)]) == 0
    key.chmod(mode)
    capsys.readouterr()
    assert main(["config", "check", str(file)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"plumbline: {file}: {where} = {str(key)!r}: ")
    assert said.count("\n") == 1
    assert "chmod" in said


def test_every_secret_of_the_configuration_is_checked(key: Path) -> None:
    """Each field of ``secrets`` and ``anchors``, of whatever probe has them."""
    for kind in (S3Config, S3CanaryConfig):
        assert set(kind.anchors) <= set(kind.secrets)
    key.chmod(0o666)
    for name in Config().ceph.secrets:
        config = Config(ceph=msgspec.structs.replace(Config().ceph, **{name: str(key)}))
        with pytest.raises(ConfigError, match=f"ceph.{name}"):
            check_key_files(config, "x")
