"""RADOS from Python: only the librados calls that the probes need, through ctypes.

https://docs.ceph.com/en/latest/rados/api/librados/ (the C interface, stable since long before Ceph 16)

Ceph's own Python module is compiled for the system's interpreter, which need not be ours; the ``rados`` program takes
longer to start than an operation to run. A shared library loaded at run time works with librados 16 to 20 alike, and a
node without Ceph needs none.

There are two kinds of failure. A missing precondition of a probe (library, configuration, key, monitors, pool) raises
:class:`Unavailable` with advice. A failed operation raises ``OSError`` as a disk does, so that both canaries count
alike: ``TimeoutError``, ``FileNotFoundError``, ``PermissionError``, or one with EDQUOT, EIO …; its file name is
``pool/namespace/object``.

Every wait is bounded by the timeouts of :class:`Access`. Calls still *block*: use them in workers and threads only. The
OSD may complete a write later that timed out here. If a pool is full, writes fail at once and removals work.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Self

from plumbline.core.foreign import Limits, parse_json
from plumbline.core.kernel import read_kernel
from plumbline.errors import KeyTypeUnknown, ParseError, Unavailable
from plumbline.probes.ceph.librados_calls import LIBRARY, Timeval, check, load, release
from plumbline.sources.ceph.keyring import AES256K, READ_AES256K, key_types

_MAY_RENEW, _MUST_RENEW = 1, 2
_PLACES_BYTES, _KEYRING_BYTES = 4096, 1 << 20
_LOCKERS_BYTES = 4096
_ANSWER = Limits(64 << 20, max_values=5_000_000)  # `osd dump` of ten thousand OSDs has some 10 MB


@dataclass(frozen=True, slots=True)
class Access:
    """Which cluster, which user, and which timeouts."""

    user: str
    """``client.plumbline``."""
    conf: str = "/etc/ceph/ceph.conf"
    keyring: str = ""
    """A file; empty: where the configuration says."""
    connect_timeout_s: int = 10
    operation_timeout_s: int = 10
    """For an operation on one object and for a command to the monitors."""

    def __str__(self) -> str:
        return f"{self.conf} as {self.user}"


@dataclass(frozen=True, slots=True)
class Locker:
    """The holder of a lock."""

    client: str
    """``client.4123``: the connection, not the user."""
    cookie: str
    address: str


class Cluster:
    """A connection, made by :func:`connect`. Threads may share it."""

    def __init__(self, library: ctypes.CDLL, handle: c_void_p, access: Access) -> None:
        self._library, self._handle, self.access = library, handle, access

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect; close the pools of this connection first."""
        if self._handle:
            self._library.rados_shutdown(self._handle)
            self._handle = c_void_p()

    def pool(self, name: str, *, namespace: str = "") -> Pool:
        """The pool, confined to a namespace. Raises :class:`Unavailable` without such a pool, or ``OSError``."""
        context = c_void_p()
        code = self._library.rados_ioctx_create(self._handle, name.encode(), byref(context))
        if code == -errno.ENOENT:
            raise Unavailable(f"{self.access.conf}: no pool {name!r}; create it, or name another one")
        check(code, name)
        self._library.rados_ioctx_set_namespace(context, namespace.encode())
        # otherwise librados holds back every write and removal while the pool is full
        self._library.rados_set_pool_full_try(context)
        return Pool(self._library, context, f"{name}/{namespace}" if namespace else name)

    def mon_command(self, prefix: str, arguments: Mapping[str, object] | None = None) -> Any:
        """A monitor command's JSON: ``mon_command("osd map", {"pool": "rbd", "object": "x"})``.

        ``OSError`` with the monitor's message if it refuses; ``TimeoutError`` if none answers; :class:`ParseError` for
        an answer that is no JSON, as ``-nan``.
        """
        command = json.dumps({"prefix": prefix, "format": "json", **(arguments or {})}).encode()
        commands = (c_char_p * 1)(command)
        output, status = c_void_p(), c_void_p()
        output_bytes, said_bytes = c_size_t(), c_size_t()
        code = self._library.rados_mon_command(
            self._handle, commands, 1, None, 0, byref(output), byref(output_bytes), byref(status), byref(said_bytes)
        )
        answer, words = self._copied(output, output_bytes), self._copied(status, said_bytes).decode(errors="replace")
        if code < 0:
            why = f"{os.strerror(-code)}: {words.strip()}" if words.strip() else os.strerror(-code)
            raise OSError(-code, why, f"ceph {prefix}")
        value = parse_json(answer, source=f"ceph {prefix}", limits=_ANSWER)
        if not isinstance(value, dict | list):
            raise ParseError(f"ceph {prefix}", "unexpected answer: neither an object nor a list")
        return value

    def _copied(self, buffer: c_void_p, size: c_size_t) -> bytes:
        if not buffer:
            return b""
        try:
            return ctypes.string_at(buffer, size.value)
        finally:
            self._library.rados_buffer_free(buffer)


class Pool:
    """Objects and locks in one namespace of a pool, made by :meth:`Cluster.pool`. Threads may share it."""

    def __init__(self, library: ctypes.CDLL, context: c_void_p, name: str) -> None:
        self._library, self._context, self.name = library, context, name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the pool."""
        if self._context:
            self._library.rados_ioctx_destroy(self._context)
            self._context = c_void_p()

    # -- objects, one at a time

    def write_full(self, oid: str, data: bytes) -> None:
        """Replace the whole object; returns when it is on stable storage of every acting OSD."""
        self._check(self._library.rados_write_full(self._context, oid.encode(), data, len(data)), oid)

    def read(self, oid: str, length: int) -> bytes:
        """At most ``length`` bytes; fewer at the object's end."""
        buffer = ctypes.create_string_buffer(length)
        got = self._check(self._library.rados_read(self._context, oid.encode(), buffer, length, 0), oid)
        return buffer.raw[:got]

    def remove(self, oid: str) -> None:
        """Delete the object; ``FileNotFoundError`` if it does not exist."""
        self._check(self._library.rados_remove(self._context, oid.encode()), oid)

    def objects(self) -> Iterator[str]:
        """The names of all objects in the namespace, as they are found. Queries every placement group of the pool."""
        listing, entry = c_void_p(), c_char_p()
        self._check(self._library.rados_nobjects_list_open(self._context, byref(listing)), "")
        try:
            while (code := self._library.rados_nobjects_list_next(listing, byref(entry), None, None)) == 0:
                yield (entry.value or b"").decode(errors="surrogateescape")
            if code != -errno.ENOENT:  # ENOENT: end of the list
                self._check(code, "")
        finally:
            self._library.rados_nobjects_list_close(listing)

    def start_remove(self, oid: str) -> Removal:
        """Start to delete the object."""
        completion = c_void_p()
        self._check(self._library.rados_aio_create_completion2(None, None, byref(completion)), oid)
        code = self._library.rados_aio_remove(self._context, oid.encode(), completion)
        if code < 0:
            self._library.rados_aio_release(completion)
            self._check(code, oid)
        return Removal(self._library, completion, f"{self.name}/{oid}")

    # -- advisory locks: the OSD stores them with the object and expires them by its own clock

    def lock(self, oid: str, name: str, *, cookie: str, description: str = "", lease_s: float) -> bool:
        """Take the exclusive lock for ``lease_s`` seconds; returns whether it is ours now. Creates the object.

        If the lock is already ours under this cookie, the lease restarts.
        """
        code = self._lock(oid, name, cookie, description=description, lease_s=lease_s, flags=_MAY_RENEW)
        return code != -errno.EBUSY and self._check(code, oid) == 0

    def renew(self, oid: str, name: str, *, cookie: str, description: str = "", lease_s: float) -> bool:
        """Restart the lease; ``False`` if the lock is no longer ours, even if nobody else holds it."""
        code = self._lock(oid, name, cookie, description=description, lease_s=lease_s, flags=_MUST_RENEW)
        return code not in (-errno.EBUSY, -errno.ENOENT) and self._check(code, oid) == 0

    def unlock(self, oid: str, name: str, *, cookie: str) -> bool:
        """Release the lock; ``False`` if it was no longer ours."""
        code = self._library.rados_unlock(self._context, oid.encode(), name.encode(), cookie.encode())
        return code != -errno.ENOENT and self._check(code, oid) == 0

    def lockers(self, oid: str, name: str) -> tuple[Locker, ...]:
        """The lock's holders: none, one, or all that share it."""
        exclusive = c_int()
        size = _LOCKERS_BYTES
        while True:
            texts = [ctypes.create_string_buffer(size) for _ in range(4)]  # tag, clients, cookies, addresses
            sizes = [c_size_t(size) for _ in texts]
            places = [part for text, length in zip(texts, sizes, strict=True) for part in (text, byref(length))]
            code = self._library.rados_list_lockers(
                self._context, oid.encode(), name.encode(), byref(exclusive), *places
            )
            if code != -errno.ERANGE:
                break
            size *= 2
        if code == -errno.ENOENT:
            return ()
        count = self._check(code, oid)
        columns = [text.raw.split(b"\0")[:count] for text in texts[1:]]
        return tuple(
            Locker(client.decode(), cookie.decode(), address.decode())
            for client, cookie, address in zip(*columns, strict=True)
        )

    def _lock(self, oid: str, name: str, cookie: str, *, description: str, lease_s: float, flags: int) -> int:
        if lease_s <= 0:
            raise ValueError("a lock without an end would outlive a crash of its holder")
        whole = int(lease_s)
        lease = Timeval(whole, int((lease_s - whole) * 1e6))
        words = (text.encode() for text in (oid, name, cookie, description))
        return int(self._library.rados_lock_exclusive(self._context, *words, byref(lease), flags))

    def _check(self, code: int, oid: str) -> int:
        return check(code, f"{self.name}/{oid}" if oid else self.name)


class Removal:
    """A removal under way, made by :meth:`Pool.start_remove`. Call :meth:`result` once."""

    def __init__(self, library: ctypes.CDLL, completion: c_void_p, where: str) -> None:
        self._library, self._completion, self._where = library, completion, where

    def result(self) -> None:
        """Wait for the end, at most the operation timeout; ``OSError``."""
        self._library.rados_aio_wait_for_complete(self._completion)
        code = int(self._library.rados_aio_get_return_value(self._completion))
        self._library.rados_aio_release(self._completion)
        check(code, self._where)


def connect(access: Access, *, library: str = LIBRARY) -> Cluster:
    """Connect within ``access.connect_timeout_s``. Raises :class:`Unavailable` with the reason and advice."""
    loaded = load(library)
    # check first: librados would print its own, less helpful messages
    for path in filter(None, (access.conf, access.keyring)):
        if not os.access(path, os.R_OK):
            what = "not there" if not os.path.exists(path) else "not readable for us"  # noqa: PTH110 (pathlib is heavy)
            raise Unavailable(f"{path}: {what}; name the cluster's configuration and {access.user}'s keyring")
    handle = c_void_p()
    code = loaded.rados_create2(byref(handle), b"ceph", access.user.encode(), 0)
    if code < 0:
        raise Unavailable(f"{access}: not a user's name ({os.strerror(-code)}); write it as client.plumbline")
    try:
        code = loaded.rados_conf_read_file(handle, access.conf.encode())
        if code < 0:
            raise Unavailable(f"{access.conf}: librados can't use it ({os.strerror(-code)})")
        for option, value in _options(access).items():
            code = loaded.rados_conf_set(handle, option.encode(), value.encode())
            if code < 0:
                raise Unavailable(f"{access}: librados refuses {option} = {value} ({os.strerror(-code)})")
        code = loaded.rados_connect(handle)
        if code == -errno.EIO:
            _check_key_types(loaded, handle)
        if code < 0:
            raise Unavailable(_refusal(access, -code))
    except Unavailable:
        loaded.rados_shutdown(handle)
        raise
    return Cluster(loaded, handle, access)


def _options(access: Access) -> dict[str, str]:
    options = {
        "client_mount_timeout": str(access.connect_timeout_s),
        "rados_mon_op_timeout": str(access.operation_timeout_s),
        "rados_osd_op_timeout": str(access.operation_timeout_s),
        # the configured log and socket may be where only root writes; ours would accumulate
        "log_file": "",
        "log_to_stderr": "false",
        "err_to_stderr": "false",
        "log_to_syslog": "false",
        "admin_socket": "",
    }
    return options | ({"keyring": access.keyring} if access.keyring else {})


def _check_key_types(library: ctypes.CDLL, handle: c_void_p) -> None:
    """Raise :class:`KeyTypeUnknown` if a keyring holds a key of the newer type.

    A librados that does not know the type refuses the whole file with EIO, whoever's key it is.
    """
    places = ctypes.create_string_buffer(_PLACES_BYTES)
    if library.rados_conf_get(handle, b"keyring", places, len(places)) < 0:
        return
    for path in re.split(r"[,; ]+", places.value.decode(errors="replace")):
        try:
            types = key_types(read_kernel(path, _KEYRING_BYTES).decode(errors="replace"))
        except OSError:
            continue
        for user, kind in types.items():
            if kind == AES256K:
                library_name = f"librados {release(library)}".rstrip()
                raise KeyTypeUnknown(
                    f"{path}: the key of {user} is of type {kind}, which {library_name} here can't read; {READ_AES256K}"
                )


def _refusal(access: Access, number: int) -> str:
    waited = f"no monitor answered within {access.connect_timeout_s} s; is the cluster up, the network open?"
    no_key = "no key for this user; name its keyring, or create the user"
    reasons = {
        errno.ETIMEDOUT: waited,
        errno.EACCES: "the monitors refuse it; does the keyring hold this user's key, of this cluster?",
        errno.EPERM: "the monitors refuse the user; does it have 'allow r' on mon?",
        errno.ENOENT: f"{no_key} (or no monitors in the configuration)",
        errno.EINVAL: "the configuration names no monitors that can be used (mon_host), or the key is malformed",
        errno.EOPNOTSUPP: no_key,
        errno.EIO: f"{access.keyring or 'the keyring'} is not a keyring",
    }
    return f"{access}: {reasons.get(number, os.strerror(number))}"
