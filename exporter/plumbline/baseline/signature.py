"""Detached signatures of baselines, by ``ssh-keygen -Y`` with anybody's SSH key.

``NAME.sig`` beside a file is its signature. A file and its signature can't be replaced in one step, so the next
signature is first written as ``NAME.sig.new``: whichever of the two fits the file counts.
"""

import base64
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from plumbline.config.yaml import read_text
from plumbline.core.answers import in_memory
from plumbline.core.escape import excerpt, visible
from plumbline.core.files import read_whole
from plumbline.core.keyfiles import read_anchor, read_secret
from plumbline.core.process import named_environment
from plumbline.core.storage_names import NEXT_SIGNATURE, SIGNATURE
from plumbline.errors import BaselineError, ConfigError

NAMESPACE = "plumbline-baseline"  # What the signature is for: a signature for anything else is not valid here
BEGINNING, _END = b"-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_MAGIC = b"SSHSIG\0\0\0\1"
_FIELDS = ("public key", "namespace", "reserved", "hash", "signature")
_PROGRAM = "ssh-keygen"
_WITHIN_S = 20.0
_MAX_BYTES = 1 << 16


def sign(text: bytes, key: Path, *, environment: Mapping[str, str]) -> bytes:
    """The signature by ``key``: a private key, or a public one whose private half the agent holds. A passphrase is
    asked for at the terminal. Raises :class:`BaselineError`."""
    try:
        if b"PRIVATE KEY" in read_anchor(key, _MAX_BYTES):
            read_secret(key, _MAX_BYTES)
    except OSError as error:
        raise BaselineError(str(key), f"nothing was signed: {error.strerror}") from None
    done = _run(["sign", "-q", "-f", str(key), "-n", NAMESPACE], text, environment, timeout_s=None)
    if done.returncode:
        raise BaselineError(str(key), f"nothing was signed: {_reason(done)}")
    return done.stdout


def is_signature(data: bytes) -> bool:
    """Whether ``data`` is a whole SSH signature of a baseline, by any key and of any text: its armour, its fields and
    the namespace in it (PROTOCOL.sshsig of OpenSSH)."""
    lines = data.decode("ascii", "replace").split("\n")
    if len(data) > _MAX_BYTES or [lines[0].encode(), *lines[-2:]] != [BEGINNING, _END, ""]:
        return False
    try:
        blob = base64.b64decode("".join(lines[1:-2]), validate=True)
    except ValueError:
        return False
    fields, at = [], len(_MAGIC)
    while at < len(blob):
        end = at + 4 + int.from_bytes(blob[at : at + 4], "big")
        fields.append(blob[at + 4 : end])
        at = end
    key, namespace, _, digest, signed = fields if len(fields) == len(_FIELDS) else (b"",) * len(_FIELDS)
    whole = blob.startswith(_MAGIC) and at == len(blob) and all((key, digest, signed))
    return whole and namespace == NAMESPACE.encode()


def holds_signature(descriptor: int) -> bool:
    """Whether an open file is a signature of a baseline."""
    return is_signature(read_whole(descriptor, _MAX_BYTES, "signature"))


def signer(text: bytes, signature: bytes, allowed: Path, *, environment: Mapping[str, str]) -> str:
    """Who signed ``text``, as ``allowed`` names them. Raises :class:`BaselineError` with the reason if nobody in there
    did."""
    try:
        signers = read_anchor(allowed, _MAX_BYTES)
    except OSError as error:
        raise BaselineError(str(allowed), f"can't be used: {error.strerror}", key="allowed_signers") from None
    # ssh-keygen reads what was checked
    with in_memory(signature) as signed, in_memory(signers) as trusted:
        keep, by = (_descriptor(signed), _descriptor(trusted)), ["-s", signed, "-f", trusted]
        answer = _run(["find-principals", *by], b"", environment, keep=keep)
        who = answer.stdout.decode("utf-8", "replace").split("\n")[0].strip()
        if answer.returncode or not who:
            raise BaselineError("signature", f"not by a key of {allowed} ({_reason(answer)})")
        done = _run(["verify", *by, "-I", who, "-n", NAMESPACE], text, environment, keep=keep)
        if done.returncode:
            raise BaselineError("signature", f"by {visible(who)}, but not of this text ({_reason(done)})")
        return visible(who)


def _descriptor(path: str) -> int:
    return int(path.rpartition("/")[2])


def check_signed(path: Path, text: str, allowed: Path, *, environment: Mapping[str, str]) -> str:
    """Who signed the file at ``path`` with this ``text``. Raises :class:`BaselineError` that names the file."""
    reason = f"is not signed: {path.name}{SIGNATURE} is missing"
    for suffix in (SIGNATURE, NEXT_SIGNATURE):
        signature_file = path.with_name(path.name + suffix)
        if not signature_file.exists():
            continue
        try:
            return signer(
                text.encode(),
                read_text(signature_file, max_bytes=_MAX_BYTES).encode(),
                allowed,
                environment=environment,
            )
        except (BaselineError, ConfigError) as error:
            reason = f"{signature_file.name}: {error.reason}"
    raise BaselineError(str(path), f"{reason}; baseline.allowed_signers asks for it, so the file is not used")


def _run(
    words: Sequence[str],
    text: bytes,
    environment: Mapping[str, str],
    *,
    keep: Sequence[int] = (),
    timeout_s: float | None = _WITHIN_S,
) -> subprocess.CompletedProcess[bytes]:
    agent = {name: environment[name] for name in ("SSH_AUTH_SOCK", "SSH_ASKPASS", "DISPLAY") if name in environment}
    try:
        return subprocess.run(
            [_PROGRAM, "-Y", *words],
            input=text,
            capture_output=True,
            env=named_environment(environment) | agent,
            pass_fds=keep,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError:
        raise BaselineError("signature", f"{_PROGRAM} is missing; install Debian's openssh-client") from None
    except subprocess.TimeoutExpired:
        raise BaselineError("signature", f"{_PROGRAM} did not end within {_WITHIN_S:g} s") from None


def _reason(done: "subprocess.CompletedProcess[bytes]") -> str:
    """The last line of what it said: the reason."""
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return excerpt(lines[-1]) if lines else f"{_PROGRAM}: exit {done.returncode}"
