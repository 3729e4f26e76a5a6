from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.programs import need


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SSH key without a passphrase."""
    need("ssh-keygen")
    file = tmp_path_factory.mktemp("key") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file], check=True)
    return file


@pytest.fixture(scope="session")
def allowed(key: Path) -> Path:
    file = key.with_name("allowed_signers")
    file.write_text(f"ada@example {key.with_suffix('.pub').read_text()}")
    return file
