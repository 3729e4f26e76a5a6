"""A small iSCSI target (RFC 7143) for one device that is no disk: QEMU passes its commands through to a guest.

One connection after another, no digests, no authentication, only data that comes with its command: so much as QEMU's
initiator needs on loopback.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NAME = "iqn.2026-11.lab:enclosure"
Answer = Callable[[bytes, bytes], tuple[int, bytes]]
"""A CDB and the data sent with it → the SCSI status, and the data or sense data."""

_NOP, _COMMAND, _TASK, _LOGIN, _LOGOUT = 0x00, 0x01, 0x02, 0x03, 0x06
_RESPONSE = 0x20  # added to a request's opcode
_DATA_IN = 0x25
_FINAL, _STATUS_TOO = 0x80, 0x01
_SECURITY, _FULL_FEATURE = 0, 3
_CHECK_CONDITION = 0x02
_SERVED = {
    "HeaderDigest": "None", "DataDigest": "None", "MaxConnections": "1", "InitialR2T": "Yes", "ImmediateData": "Yes",
    "MaxBurstLength": "262144", "FirstBurstLength": "65536", "DefaultTime2Wait": "2", "DefaultTime2Retain": "0",
    "MaxOutstandingR2T": "1", "DataPDUInOrder": "Yes", "DataSequenceInOrder": "Yes", "ErrorRecoveryLevel": "0",
    "MaxRecvDataSegmentLength": "262144",
}  # fmt: skip


@contextmanager
def target(answer: Answer) -> Iterator[int]:
    """Serve the device on a port of loopback until the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server, answer), daemon=True).start()
        yield server.getsockname()[1]


def _serve(server: socket.socket, answer: Answer) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return  # closed
        threading.Thread(target=_talk, args=(connection, answer), daemon=True).start()


def _talk(connection: socket.socket, answer: Answer) -> None:
    with connection, contextlib.suppress(EOFError, OSError):
        session = _Session(connection, answer)
        while session.step():
            pass


class _Session:
    def __init__(self, connection: socket.socket, answer: Answer) -> None:
        self._socket, self._answer = connection, answer
        self._status_number = 0

    def step(self) -> bool:
        """Serve one request; whether there may be more."""
        head = self._read(48)
        more, length = head[4] * 4, int.from_bytes(head[5:8])
        self._read(more)
        data = self._read(length + -length % 4)[:length]
        operation = head[0] & 0x3F
        if operation == _LOGIN:
            self._login(head, data)
        elif operation == _COMMAND:
            self._command(head, data)
        elif operation in (_NOP, _TASK, _LOGOUT) and head[16:20] != b"\xff" * 4:  # a NOP without a tag wants no answer
            self._reply(operation + _RESPONSE, head, _FINAL, data=data if operation == _NOP else b"")
        return operation != _LOGOUT

    def _login(self, head: bytes, data: bytes) -> None:
        asked = dict(pair.partition("=")[::2] for pair in data.decode().split("\0") if pair)
        stage = head[1] >> 2 & 3
        answers = {"AuthMethod": "None", "TargetPortalGroupTag": "1"} if stage == _SECURITY else _SERVED
        words = {name: text for name, text in answers.items() if name in asked or name == "TargetPortalGroupTag"}
        session = head[8:14] + (1).to_bytes(2)  # the initiator's part and ours
        text = "".join(f"{name}={value}\0" for name, value in words.items()).encode()
        self._reply(_LOGIN + _RESPONSE, head, head[1] & 0x8F, lun=session, data=text)

    def _command(self, head: bytes, sent: bytes) -> None:
        status, data = self._answer(head[32:48], sent)
        wanted = int.from_bytes(head[20:24])
        if status == _CHECK_CONDITION:
            self._reply(_COMMAND + _RESPONSE, head, _FINAL, status, data=len(data).to_bytes(2) + data)
            return
        if not head[1] & 0x40:  # nothing is read
            self._reply(_COMMAND + _RESPONSE, head, _FINAL, status)
            return
        data = data[:wanted]
        missing = wanted - len(data)
        flags = _FINAL | _STATUS_TOO | (0x02 if missing else 0)  # underflow
        self._reply(_DATA_IN, head, flags, status, data=data, residual=missing)

    def _reply(
        self, code: int, head: bytes, flags: int, status: int = 0, *, lun: bytes = bytes(8), data: bytes = b"",
        residual: int = 0,
    ) -> None:  # fmt: skip
        number = int.from_bytes(head[24:28])  # the command's
        awaited = number if head[0] & 0x40 else number + 1  # an immediate command does not count
        content = struct.pack(
            ">BBBBI8s4s4sIIIIII", code, flags, 0, status, len(data), lun, head[16:20], b"\xff" * 4,
            self._status_number, awaited, awaited + 32, 0, 0, residual,
        )  # fmt: skip
        self._status_number += 1
        self._socket.sendall(content + data + bytes(-len(data) % 4))

    def _read(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            if not (part := self._socket.recv(size - len(content))):
                raise EOFError
            content += part
        return content
