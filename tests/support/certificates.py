"""Certificates for tests, made by the real ``openssl``: an authority, a server, a client, and a stranger."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .programs import need


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files in one folder: ``ca``, ``server``, ``client`` (named ``prometheus.example``), ``stranger``."""

    folder: Path

    def crt(self, name: str) -> Path:
        """The certificate of one of them."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Its key."""
        return self.folder / f"{name}.key"

    def sign(self, name: str, names: str) -> None:
        """A new key and a certificate of our authority, for the alternative names ``names``."""
        _run(self.folder, *_key_of(name), "-addext", f"subjectAltName={names}", "-out", f"{name}.csr")
        _run(
            self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-days", "1",
            "-copy_extensions", "copy", "-out", f"{name}.crt",
        )  # fmt: skip

    def client(self, name: str | None = None) -> ssl.SSLContext:
        """What a client connects with: trusting our authority, showing the certificate of ``name``."""
        context = ssl.create_default_context(cafile=str(self.crt("ca")))
        if name is not None:
            context.load_cert_chain(self.crt(name), self.key(name))
        return context


def make_certificates(folder: Path) -> Certificates:
    """All of them, valid for a day; skips the test where there is no ``openssl``."""
    need("openssl")
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificates(folder)
    _run(folder, *_key_of("ca"), "-x509", "-days", "1", "-addext", "keyUsage=critical,keyCertSign", "-out", "ca.crt")
    made.sign("server", "DNS:localhost,IP:127.0.0.1,IP:::1")
    made.sign("client", "DNS:prometheus.example,IP:fd00::1,email:ops@example.org,URI:spiffe://example/prometheus")
    names = "subjectAltName=DNS:prometheus.example"
    _run(folder, *_key_of("stranger"), "-x509", "-days", "1", "-addext", names, "-out", "stranger.crt")
    return made


def _key_of(name: str) -> list[str]:
    return [
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key",
        "-subj", f"/CN={name}",
    ]  # fmt: skip


def _run(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
