"""From the staged tree to ``plumbline-<version>-1.<architecture>.rpm``, by one call of rpmbuild (Debian's ``rpm``).

Nothing is compiled, stripped or rewritten: the specification only copies the tree. What the extension modules need of
the C library is found by rpm's own generator.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from deploy.packages.components import copyright_file
from deploy.packages.project import DESCRIPTION, NAME, SUMMARY, BuildError, package_version, project_version
from deploy.packages.staging import CONFFILES, DOC, Staged, normalise, run, set_date

HERE = Path(__file__).resolve().parent
SCRIPTLETS = ("pre", "post", "preun", "postun", "posttrans")
LICENCES = f"usr/share/licenses/{NAME}"
FILES = {
    "systemd/plumbline.service": "usr/lib/systemd/system/plumbline.service",
    "deploy/rpm/README.md": f"{DOC}/README.rpm.md",
    "LICENSE": f"{LICENCES}/LICENSE",
    "exporter/plumbline/completions/_plumbline": f"usr/share/zsh/site-functions/_{NAME}",
}
"""Beside what all packages have."""
RELEASE = "1"
PYTHON = 11
"""The minor version of the CPython 3 that it is for: RHEL 9 has it as ``python3.11``."""
_FIXED = {
    "_buildhost": "plumbline.invalid",
    "_binary_payload": "w6.xzdio",
    "_build_id_links": "none",
    "__os_install_post": "%{nil}",
    "debug_package": "%{nil}",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
    # the environment brings its own Python packages, and nobody else's business is what they are
    "__requires_exclude": "^(python3?[.0-9]*dist|/opt/)",
}
"""rpm's settings that the builder's machine would else decide, or that would change files."""


def missing() -> str:
    """Why no RPM can be built here; empty where one can."""
    return "" if shutil.which("rpmbuild") else "rpmbuild: not found (Debian package rpm)"


def build_rpm(out: Path, staged: Staged, date: int) -> Path:
    """The RPM of what is staged, for this machine's architecture."""
    if reason := missing():
        raise BuildError(reason)
    version = package_version(project_version())
    out = out.resolve()
    with tempfile.TemporaryDirectory(prefix="plumbline-rpm-") as folder:
        top = Path(folder)
        tree = top / "tree"
        staged.copy(tree, FILES, installer="rpm")
        (tree / LICENCES / "DEPENDENCIES").write_text(copyright_file(staged.components))
        normalise(tree)
        set_date(tree, date)
        file = top / f"{NAME}.spec"
        file.write_text(specification(version, python=staged.python))
        settings = {**_FIXED, "_topdir": str(top / "top"), "_dbpath": str(top / "db"), "staged": str(tree)}
        defines = [word for name, value in settings.items() for word in ("--define", f"{name} {value}")]
        # HOME: no ~/.rpmmacros
        run(["rpmbuild", "-bb", *defines, str(file)], SOURCE_DATE_EPOCH=str(date), HOME=str(top), TZ="UTC")
        (built,) = (top / "top" / "RPMS").glob("*/*.rpm")
        return Path(shutil.move(built, out / built.name))


def specification(version: str, *, python: int) -> str:
    """The spec file; https://rpm-software-management.github.io/rpm/manual/spec.html."""
    scriptlets = "".join(f"%{name}\n{(HERE / 'scriptlets' / name).read_text()}\n" for name in SCRIPTLETS)
    configuration = "".join(f"%config(noreplace) {name}\n" for name in CONFFILES)
    return f"""\
Name: {NAME}
Version: {version}
Release: {RELEASE}
Summary: {SUMMARY[0].upper()}{SUMMARY[1:]}
License: Apache-2.0
AutoProv: no
Requires: /usr/bin/python3.{python}
Recommends: fio
Recommends: libbpf
Suggests: ceph-common
Suggests: iperf3
Suggests: smartmontools

%description
{DESCRIPTION}
%install
cp -a %{{staged}}/. %{{buildroot}}/

{scriptlets}%files
%defattr(-,root,root,-)
/opt/plumbline
/usr/bin/{NAME}
/usr/lib/systemd/system/{NAME}.service
/usr/share/{NAME}
/usr/share/man/man1/{NAME}.1.gz
/usr/share/bash-completion/completions/{NAME}
/usr/share/zsh/site-functions/_{NAME}
%doc /{DOC}
%license /{LICENCES}
%dir /etc/{NAME}
{configuration}"""
