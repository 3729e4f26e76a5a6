from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.disk.blocktree import BlockTree, node_at, read_block_tree

NODE = Path(__file__).parents[3] / "fixtures" / "ceph-package-node"


@pytest.fixture(scope="module")
def tree() -> BlockTree:
    return read_block_tree(Roots.under(NODE))


def test_a_partition_belongs_to_its_disk(tree: BlockTree) -> None:
    assert tree.nodes["sdg1"].disk == tree.nodes["sdg"].disk == "sdg"
    assert tree.nodes["sdi2"].property("ID_PART_ENTRY_NAME") == "ceph block"
    assert tree.nodes["sdg1"].property("ID_PART_ENTRY_NAME") == ""


def test_below_and_above(tree: BlockTree) -> None:
    assert tree.below("dm-5") == ("dm-5", "dm-3", "sdg")
    assert tree.below("dm-16") == ("dm-16", "dm-15", "dm-14", "md0", "sdq", "sdr")
    assert tree.below("gone") == ()
    assert tree.direct_above("sdg") == ("sdg1",)
    assert tree.direct_above("sdg1") == ("dm-3",)
    assert tree.direct_above("md0") == ("dm-13", "dm-14")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/dev/sdg1", "sdg1"),
        ("/dev/mapper/luks-sdg1", "dm-3"),
        ("/dev/mapper/vg0-thin--root", "dm-16"),
        ("/dev/vg0/thin-root", "dm-16"),
        ("/dev/disk/by-partuuid/0f1e2d3c-0000-4000-8000-000000000073", "sdi2"),
        ("/dev/gone", None),
        ("/dev/gone/too", None),
        ("/srv/file", None),
        ("sdg1", None),
        ("/dev/", None),
        ("/dev/\0", None),
    ],
)
def test_the_device_behind_a_path(tree: BlockTree, path: str, name: str | None) -> None:
    found = node_at(path, tree, Roots.under(NODE))
    assert (found and found.name) == name


def test_hidden_paths_are_no_devices() -> None:
    nodes = read_block_tree(Roots.under(NODE.parent / "disks-storage-node")).nodes
    assert "nvme1n1" in nodes
    assert "nvme1c1n1" not in nodes
    assert nodes["cciss/c0d0"].disk == "cciss/c0d0"


def test_devices_of_this_machine() -> None:
    """Without a look by name: the nodes are there."""
    here = Roots.under(Path("/"))
    tree = read_block_tree(here)
    for name, node in tree.nodes.items():
        if Path("/dev", name).is_block_device():
            assert node_at(f"/dev/{name}", tree, here) == node
