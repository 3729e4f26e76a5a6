"""No reader of ours takes without a bound what somebody else can write: each goes through one of a few readers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.core.kernel import TABLE, read_kernel

SOURCE = Path(__file__).parents[3] / "exporter" / "plumbline"
READS = frozenset({"read", "read_text", "read_bytes", "readall", "readline", "readlines", "open", "load_cert_chain"})
BOUNDED = {
    "plumbline.config.yaml": "read_text",
    "plumbline.sources.kernel.sysfs": "read_text, read_bytes",
}
"""Functions of ours with these names, which end at a bound."""
OWN = frozenset({"directory.open", "self.directory.open", "self.files.open", "own.open", "os.open"})
"""An ``OwnDirectory``'s method and the system's: a descriptor, which is read with a length."""
LISTED = {
    "core/files.py": "self.open",
    "probes/run/guard.py": "self.open",
    "baseline/profiles.py": "file.read_text",  # comes with the package
    "sources/net/drivers.py": "file.read_text",
    "sources/disk/blocklatency.py": "(Path(__file__).parents[2] / 'bpf' / 'disk_latency.bpf.o').read_bytes",
    "pages/runbooks.py": "_FOLDER.joinpath(f'{name}.md').read_text, file.read_text",
    "core/keyfiles.py": "open",  # the kernel's table of mounts
    "metrics/default_page.py": "Path(__file__).with_name('default_page.txt').read_text",
    "pages/templates.py": "_FILES.joinpath('style.css').read_text, path.read_text",
    "config/workloads.py": "Path(__file__).with_name('workloads.yaml').read_text",
    "sources/pci/pcidevices.py": "path.open",  # read by pread, 4,096 bytes at most
    "sources/http.py": "opener.open",  # a page, bounded in time and size
    "web/tls.py": "context.load_cert_chain",  # from memory
    "claims/first_write.py": "open",  # to write
    "probes/ceph/ceph_worker.py": "lines.readline",  # the daemon's own words
    "daemon/daemon.py": "store.open",  # no files from here on: methods of ours with these names
    "daemon/running.py": "read",
    "background/host.py": "self.latency.open",
    "probes/canary/canary.py": "self.read",
    "probes/run/gates.py": "read",
    "status/gather.py": "followed.canary.read",
    "probes/run/schedule.py": "running.canary.read, self.canary.read",
    "probes/run/single_run.py": "canary.read",
    "web/http1.py": "self.read",
}
"""All other calls by such a name."""


def unbounded(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each call that opens a file by its name to read it, or reads to an end that may not come."""
    bounded = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in BOUNDED.get(node.module or "", "").split(", ")
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in READS or (name in ("read", "readline") and node.args):  # at most so many
            continue
        called = ast.unparse(node.func)
        if called not in bounded and called not in OWN | {"sysfs.read_text", "sysfs.read_bytes"}:
            yield node.lineno, called


def test_nothing_is_read_without_a_bound() -> None:
    wrong, seen = [], set()
    for file in sorted(SOURCE.rglob("*.py")):
        own = str(file.relative_to(SOURCE))
        listed = LISTED.get(own, "").split(", ") + BOUNDED.get(f"plumbline.{own[:-3].replace('/', '.')}", "").split(
            ", "
        )
        for line, name in unbounded(ast.parse(file.read_text())):
            seen.add((own, name))
            if name not in listed:
                wrong.append(f"{own}:{line}: {name}")
    assert wrong == [], "read it by core.kernel, core.answers or core.files"
    gone = {(own, name) for own, names in LISTED.items() for name in names.split(", ")} - seen
    assert gone == set(), "no longer there"


def test_the_walk_sees_what_it_is_for() -> None:
    lines = [
        "with open(p) as f: f.read()",
        "p.read_text()",
        "os.open(p, 0); f.read(7); sysfs.read_text(p)",
        "Path(p).open('rb')",
        "from plumbline.config.yaml import read_text",
        "read_text(p)",
        "q.read_bytes(); f.readlines()",
    ]
    assert sorted(line for line, _ in unbounded(ast.parse("\n".join(lines)))) == [1, 1, 2, 4, 7, 7]


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_the_kernels_reader_gives_all(tmp_path: Path, size: int) -> None:
    (tmp_path / "attribute").write_bytes(b"x" * size)
    assert read_kernel(tmp_path / "attribute", 100) == b"x" * size


@pytest.mark.parametrize("limit", [100, 16384, 16385, 50_000, 3_000_000])
def test_the_kernels_reader_ends_at_its_bound(tmp_path: Path, limit: int) -> None:
    (tmp_path / "huge").write_bytes(b"x" * (limit + 1))
    (tmp_path / "fits").write_bytes(b"x" * limit)
    with pytest.raises(OSError, match=f"longer than {limit} bytes"):
        read_kernel(tmp_path / "huge", limit)
    assert len(read_kernel(tmp_path / "fits", limit)) == limit
    with pytest.raises(OSError, match=f"longer than {limit} bytes"):
        read_kernel("/dev/zero", limit)


def test_the_kernels_reader_takes_tables_that_come_in_pieces() -> None:
    """The kernel gives whole lines of a page at a time: less than was asked for is no end."""
    table = Path("/proc/crypto") if Path("/proc/crypto").exists() else Path("/proc/filesystems")
    assert read_kernel(table, TABLE) == table.read_bytes()
