"""Basic authentication against bcrypt hashes: cheap for clients accepted before, expensive for guesses.

bcrypt takes 50 ms and more on purpose, so:

- an accepted user is remembered by a keyed digest of user and password, one per user, in memory only: a scrape costs
  some microseconds, and no guess can evict the digest;
- guesses are checked one at a time, client addresses in turn: they use at most one CPU, and a first scrape from another
  address waits for no more checks than there are addresses guessing;
- every check costs as much as the most expensive hash, whether the user exists or not, and comparisons take the same
  time wherever the inputs differ.

Imported where a file has users only: OpenSSL and bcrypt take 4 MiB of resident memory.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from enum import Enum

import bcrypt

from plumbline.config.types import Secret
from plumbline.config.web import MIN_COST, cost_of
from plumbline.web.turns import Turns

# bcrypt uses no more bytes, and neither does htpasswd
_MAX_PASSWORD = 72
# A salt, and a hash with no known password; the cost goes in front
_DUMMY = "abcdefghijklmnopqrstuu" + "e" * 31


class AuthResult(Enum):
    """The result for one request's credentials."""

    LET_IN = "let in"
    REFUSED = "refused"
    TOO_MANY = "too many"  # too many other checks are waiting; these credentials were not checked


class Passwords:
    """Checks credentials. Keeps no password, only a digest under a key that dies with the process."""

    def __init__(self, users: Mapping[str, Secret], turns: Turns, before: Passwords | None = None) -> None:
        """``before``: the previous users; a user accepted with a hash that is unchanged need not wait again."""
        self._users = dict(users)
        self._turns = turns
        self._key: bytes = before._key if before else os.urandom(32)
        known: dict[str, bytes] = before._known if before else {}
        same = {user for user, hashed in self._users.items() if before and before._users.get(user) == hashed}
        self._known: dict[str, bytes] = {user: digest for user, digest in known.items() if user in same}
        self._dummy_digest = os.urandom(hashlib.sha256().digest_size)
        self._dearest = max((cost_of(user) for user in users.values()), default=MIN_COST)

    def look(self, authorization: str | None, peer: str, gone: Callable[[], bool] = lambda: False) -> AuthResult:
        """Check the ``Authorization`` header of a request from ``peer``; may wait for other checks."""
        given = parse_basic(authorization)
        if given is None:
            return AuthResult.REFUSED
        user, password = given[0], given[1][:_MAX_PASSWORD]
        digest = hmac.digest(self._key, user.encode() + b"\0" + password, hashlib.sha256)
        if self._knows(user, digest):
            return AuthResult.LET_IN
        with self._turns.turn(peer, gone) as come:
            if not come:
                return AuthResult.TOO_MANY
            if self._knows(user, digest):  # a check we waited for accepted it: many first scrapes cost one
                return AuthResult.LET_IN
            good = self._check(password, self._users.get(user))
        if good:
            self._known[user] = digest
        return AuthResult.LET_IN if good else AuthResult.REFUSED

    def _check(self, password: bytes, hashed: Secret | None) -> bool:
        """Takes as many rounds as the most expensive hash, for every user: 2^c for the user's own hash, and 2^c +
        2^(c+1) + … + 2^(dearest-1) for the rest."""
        cost = self._dearest if hashed is None else cost_of(hashed)
        good = _matches(password, dummy_hash(cost) if hashed is None else hashed)
        for missing in range(cost, self._dearest):
            _matches(password, dummy_hash(missing))
        return good and hashed is not None

    def _knows(self, user: str, digest: bytes) -> bool:
        return hmac.compare_digest(self._remembered(user), digest)

    def _remembered(self, user: str) -> bytes:
        """The user's digest, or one that nothing matches: another length would compare faster."""
        return self._known.get(user, self._dummy_digest)


def dummy_hash(cost: int) -> Secret:
    """A hash with no known password."""
    return Secret(f"$2b${cost:02d}${_DUMMY}")


def parse_basic(authorization: str | None) -> tuple[str, bytes] | None:
    """Parse ``Basic <base64 of user:password>`` (RFC 7617) into both; ``None`` for anything else."""
    scheme, _, rest = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(rest.strip(), validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None


def _matches(password: bytes, hashed: Secret) -> bool:
    try:
        return bcrypt.checkpw(password, hashed.encode())  # releases the interpreter's lock: other threads go on
    except ValueError:
        return False
