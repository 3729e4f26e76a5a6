from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from plumbline.baseline.signature import check_signed, sign, signer
from plumbline.errors import BaselineError

TEXT = b"schema_version: 1\n"


def test_who_signed_is_said(key: Path, allowed: Path) -> None:
    signature = sign(TEXT, key, environment=os.environ)
    assert signer(TEXT, signature, allowed, environment=os.environ) == "ada@example"


def test_another_text_another_key_another_purpose_and_no_signature_are_refused(
    key: Path, allowed: Path, tmp_path: Path
) -> None:
    signature = sign(TEXT, key, environment=os.environ)
    with pytest.raises(BaselineError, match="by ada@example, but not of this text"):
        signer(TEXT + b"#", signature, allowed, environment=os.environ)
    nobody = tmp_path / "nobody"
    nobody.write_text("")
    with pytest.raises(BaselineError, match="not by a key of"):
        signer(TEXT, signature, nobody, environment=os.environ)
    with pytest.raises(BaselineError, match="not by a key of"):
        signer(TEXT, b"no signature", allowed, environment=os.environ)
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", key, "-n", "file"]
    foreign = subprocess.run(command, input=TEXT, capture_output=True, check=True).stdout
    with pytest.raises(BaselineError, match="not of this text"):
        signer(TEXT, foreign, allowed, environment=os.environ)


def test_a_missing_key_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="nothing was signed") as caught:
        sign(TEXT, tmp_path / "none", environment=os.environ)
    assert "\n" not in str(caught.value)


def test_either_of_the_two_signatures_beside_a_file_counts(key: Path, allowed: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.yaml"
    with pytest.raises(BaselineError, match=r"baseline.yaml.sig is missing"):
        check_signed(file, TEXT.decode(), allowed, environment=os.environ)
    (tmp_path / "baseline.yaml.sig").write_bytes(sign(b"the one before", key, environment=os.environ))
    with pytest.raises(BaselineError, match=r"baseline.yaml.sig: by ada@example, but not of this text"):
        check_signed(file, TEXT.decode(), allowed, environment=os.environ)
    (tmp_path / "baseline.yaml.sig.new").write_bytes(sign(TEXT, key, environment=os.environ))
    assert check_signed(file, TEXT.decode(), allowed, environment=os.environ) == "ada@example"
