"""The types of the keys in a keyring; the secrets are not kept.

https://docs.ceph.com/en/latest/rados/operations/user-management/#keyring-management (the file)
https://github.com/ceph/ceph/blob/main/src/auth/Crypto.h (a key: type, time of creation, length, secret; in base64)

::

    [client.plumbline]
        key = AgDCOwRrvJ5lEiAA...
"""

import base64
import binascii
import re

AES256K = "aes256k"
READ_AES256K = "Ceph 19.2.6, 20.2.4 and later can: update Ceph's programs and librados to the cluster's release"
"""Who can read such a key, to follow who can't."""

_TYPES = {1: "aes", 2: AES256K}
_SECTION = re.compile(r"\s*\[([^\]]+)\]")
_KEY = re.compile(r"\s*key\s*=\s*[\"']?([A-Za-z0-9+/=]+)")


def key_types(text: str) -> dict[str, str]:
    """User → ``aes``, ``aes256k``, or the number of another type; users without a key are left out."""
    types = {}
    user = ""
    for line in text.splitlines():
        if section := _SECTION.match(line):
            user = section[1].strip()
        elif user and (key := _KEY.match(line)):
            try:
                number = int.from_bytes(base64.b64decode(key[1], validate=True)[:2], "little")
            except binascii.Error:
                continue
            types[user] = _TYPES.get(number, str(number))
    return types
