"""One module knows package managers and packages, one what makes a fix last; nobody else words either."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from support.offenders import for_every

PACKAGE = Path(__file__).parents[3] / "exporter" / "plumbline"
PACKAGES = (
    r"\b(?:apt|apt-get|dnf|yum|zypper) (?:-\S+ )*(?:install|purge|remove)\b|\bapt-get\b|\bzypper\b"
    r"|\blinux-cpupower\b|\bkernel-tools\b|\blinux-tools|\blibbpf1\b|\bsmartmontools\b|\binstall ceph-common\b"
)
PERMANENCE = (
    r"/etc/network/interfaces|/etc/netplan|/etc/sysconfig|/etc/NetworkManager|/etc/systemd/network|\bnmcli\b"
    r"|\bnetplan set\b|\bbond-miimon\b|/etc/sysctl\.(?:d/|conf)|/etc/udev/rules|/etc/tmpfiles"
)
MAY = {
    "sources/distribution.py": PACKAGES,
    "checks/fixes.py": PERMANENCE,
    "checks/model.py": PERMANENCE,  # where the file of Debian's usual owner is
}


def texts(file: Path) -> list[str]:
    """All literal texts but docstrings, the pieces of formatted ones included."""
    tree = ast.parse(file.read_text())
    docs = {
        id(node.value)
        for scope in ast.walk(tree)
        if isinstance(scope, ast.Module | ast.ClassDef | ast.FunctionDef)
        for node in scope.body
        if isinstance(node, ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


@for_every("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: file.relative_to(PACKAGE))
def test_only_its_module_words_it(file: Path) -> None:
    may = MAY.get(str(file.relative_to(PACKAGE)), "")
    for pattern in {PACKAGES, PERMANENCE} - {may}:
        if not re.search(pattern, file.read_text()):
            continue  # it takes a while to parse every file
        worded = [text for text in texts(file) if re.search(pattern, text)]
        assert worded == [], "plumbline.sources.distribution and plumbline.checks.fixes word that"


def test_the_modules_that_may_do() -> None:
    for name, pattern in MAY.items():
        assert any(re.search(pattern, text) for text in texts(PACKAGE / name)), name
