"""A real Prometheus that asks for TLS, a client certificate and a password, asked by our commands."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
import yaml

from support.certificates import Certificates, make_certificates
from support.daemon import eventually, run
from support.ports import free_port
from support.programs import need

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("private_files")]

PASSWORD = "correct horse"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path)


@pytest.fixture
def url(tmp_path: Path, certificates: Certificates) -> Iterator[str]:
    """Prometheus, guarded in its own way."""
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    web = {
        "tls_server_config": {
            "cert_file": str(certificates.crt("server")), "key_file": str(certificates.key("server")),
            "client_ca_file": str(certificates.crt("ca")), "client_auth_type": "RequireAndVerifyClientCert",
        },
        "basic_auth_users": {"reviews": hashed},
    }  # fmt: skip
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(web))
    (tmp_path / "prometheus.yaml").write_text("{}")
    address = f"127.0.0.1:{free_port()}"
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [need("prometheus"), f"--config.file={tmp_path / 'prometheus.yaml'}", f"--web.listen-address={address}",
             f"--web.config.file={tmp_path / 'web.yaml'}", f"--storage.tsdb.path={tmp_path / 'data'}"],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            eventually(lambda: "Server is ready" in (tmp_path / "log").read_text())
            yield f"https://{address}"
        finally:
            process.terminate()
            process.wait(30)


def test_the_report_gets_in_with_the_file_and_not_without(url: str, certificates: Certificates, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    tls = {
        "ca_file": str(certificates.crt("ca")),
        "cert_file": str(certificates.crt("client")),
        "key_file": str(certificates.key("client")),
    }
    whole = {"tls_config": tls, "basic_auth": {"username": "reviews", "password_file": "password"}}

    def report(**config: object) -> str:
        file = tmp_path / "http.yaml"
        file.write_text(yaml.safe_dump(config))
        done = run("report", "--prometheus", url, "--http.config.file", file, "--days", "1", "--format", "markdown")
        assert done.returncode == 1
        (line,) = done.stderr.strip().splitlines()[-1:]
        return line

    assert "no Plumbline data" in report(**whole)  # it was let in, and knows nothing
    assert "401" in report(tls_config=tls)
    assert "it rejected these credentials" in report(
        **{**whole, "basic_auth": {"username": "reviews", "password": "wrong"}}
    )
    assert "the client certificate in --http.config.file" in report(tls_config={"ca_file": tls["ca_file"]})
    assert "certificate verify failed" in report()

    (tmp_path / "http.yaml").write_text(yaml.safe_dump(whole))
    top = run("ceph", "top", "--once", "--prometheus", url, "--http.config.file", tmp_path / "http.yaml")
    assert "401" not in top.stderr
    assert "certificate" not in top.stderr
