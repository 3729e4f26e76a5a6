"""``make release``: everything of one commit into one folder, the same bytes each time, summed and signed.

Usage: python -m deploy.release --key FILE [--out DIR]

Wheel, Debian packages, RPM, Helm chart, rules and dashboards, bill of materials; ``SHA256SUMS`` of these, its detached
signature by ssh-keygen, and ``verify``, which checks both (README.md).
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from deploy.kubernetes import chart
from deploy.packages.build import build_all
from deploy.packages.folders import SUMS, make_empty, sums
from deploy.packages.project import NAME, ROOT, BuildError, package_version, project_version, source_date
from deploy.rpm import build as rpm
from requirements.locks import SHIPPED, LockError, read_lock
from requirements.sbom import SbomError, bill, text_of

NAMESPACE = "plumbline-release"
"""What the signature is for (ssh-keygen -Y), and the name of the signer: as ``verify`` has it."""
MONITORING = (
    "alerts/out/*.yaml",
    "alerts/out-native/*.yaml",
    "alerts/alertmanager/*.yaml",
    "alerts/runbooks/*.md",
    "dashboards/out/plumbline-*.json",
)


def refusals(root: Path, key: Path) -> str:
    """Why nothing is released, in one line; empty where all is well."""
    if not key.is_file():
        return f"{key}: no such key; make one: ssh-keygen -t ed25519 -f FILE"
    if shutil.which("ssh-keygen") is None:
        return "ssh-keygen: not found (Debian package openssh-client)"
    if reason := rpm.missing():
        return reason
    done = subprocess.run(
        ["git", "-C", str(root), "status", "--porcelain"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"{root}: no git repository; a release is that of a commit"
    if changed := done.stdout.splitlines():
        return f"{len(changed)} changed or unknown file(s), the first {changed[0][3:]}: a release is that of a commit"
    return ""


def archive(files: Mapping[str, bytes], date: int) -> bytes:
    """A compressed tar of ``files`` by their paths; the same bytes each time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), date, 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), 9, mtime=0)


def release(out: Path, key: Path, date: int) -> None:
    """Fill ``out``. What an earlier release put there is removed first; with any other file, nothing is done."""
    make_empty(out, f"{SUMS}.sig")
    wheel, *_ = build_all(out, date)
    version = project_version()
    charted = {f"{NAME}/{name}": text.encode() for name, text in chart.chart().items()}
    # as `helm package` names it
    (out / f"{NAME}-{chart.semantic_version(version)}.tgz").write_bytes(archive(charted, date))
    named = f"{NAME}-monitoring-{package_version(version)}"
    watching = {
        f"{named}/{path.relative_to(ROOT)}": path.read_bytes() for each in MONITORING for path in ROOT.glob(each)
    }
    (out / f"{named}.tar.gz").write_bytes(archive(watching, date))
    document = bill(wheel, {name: read_lock(name) for name in SHIPPED}, date)
    (out / "sbom.cdx.json").write_text(text_of(document), "utf-8")
    shutil.copy(Path(__file__).with_name("verify"), out / "verify")
    (out / SUMS).write_text(sums(out), "utf-8")
    sign(out / SUMS, key)


def sign(file: Path, key: Path) -> None:
    """``file`` + ``.sig``. A key with a passphrase asks at the terminal, or the agent."""
    done = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, str(file)],
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise BuildError(f"not signed: {said[-1] if said else f'ssh-keygen: exit {done.returncode}'}")


def main(argv: list[str]) -> int:
    """Exit status: 0 released, 1 one line says why not."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="private key for ssh-keygen -Y sign")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "release", metavar="DIR", help="(dist/release)")
    options = parser.parse_args(argv)
    try:
        if reason := refusals(ROOT, options.key):
            raise BuildError(reason)
        release(options.out, options.key, source_date(os.environ))
    except (BuildError, chart.ChartError, SbomError, LockError, OSError, zipfile.BadZipFile) as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    print(f"{options.out}: {len(list(options.out.iterdir()))} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
