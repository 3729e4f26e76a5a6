from __future__ import annotations

from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.sources.disk.udevdb import decode_enc, parse_udev_database, read_block_properties

FIXTURE = Path(__file__).parents[3] / "fixtures/disks-storage-node"


def test_only_properties_count() -> None:
    data = b"S:disk/by-id/x\nI:42\nE:ID_BUS=ata\nE:ID_MODEL=A=B\nE:EMPTY=\nE:no equals sign\nG:systemd\nQ:x\nV:1\n"
    assert parse_udev_database(data) == {"ID_BUS": b"ata", "ID_MODEL": b"A=B", "EMPTY": b""}


def test_encoded_blanks() -> None:
    assert decode_enc(rb"Samsung\x20SSD\x20883\x20\x20") == b"Samsung SSD 883  "
    assert decode_enc(rb"half\x2 and \xZZ") == rb"half\x2 and \xZZ"


def test_a_disk_of_the_database() -> None:
    properties = read_block_properties(Roots.under(FIXTURE), 8, 16)
    assert properties["ID_SCSI_SERIAL"] == b"ZC1EXAMPLE0000C8370001"


def test_a_disk_udev_does_not_know() -> None:
    assert read_block_properties(Roots.under(FIXTURE), 8, 32) == {}
