"""Types of keys, from keyrings that ceph-authtool 16.2.15 and 20.2.4 made; the secrets belong to nobody."""

from __future__ import annotations

import pytest

from plumbline.sources.ceph.keyring import key_types

AES = "[client.old]\n\tkey = AQBLxb5mAAAAABAAvG5Lv0mSO0Pca6H0MF8Dkg==\n"
AES256K = (
    "[client.plumbline]\n\tkey = AgAXPQRrCpeGDyAAxAODIFk9cPjv4pVNuDp99kiqd+Hddqi6rHUGnu5qFX0=\n\tcaps mon = 'allow r'\n"
)


def test_each_user_has_the_type_of_its_key() -> None:
    assert key_types(AES + AES256K) == {"client.old": "aes", "client.plumbline": "aes256k"}
    assert key_types(AES256K.replace("\tkey = ", "key=")) == {"client.plumbline": "aes256k"}


def test_a_type_of_a_later_release_is_its_number() -> None:
    assert key_types("[client.a]\nkey = CQAXPQRrCpeGDyAA\n") == {"client.a": "9"}


@pytest.mark.parametrize("text", ["", "[client.a]\n", "[client.a]\nkey = A\n", "key = AQBL\n", "[a\nkey = AQBL\n"])
def test_what_is_no_key_is_left_out(text: str) -> None:
    assert key_types(text) == {}
