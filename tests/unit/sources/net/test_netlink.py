"""Netlink framing, dumps and their endings."""

from __future__ import annotations

import errno
import struct

import pytest

from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.net.netlink import (
    NLM_F_DUMP_INTR,
    Failed,
    Message,
    Netlink,
    NetlinkSocket,
    Refused,
    attribute,
    attributes,
    parse_messages,
    skip_reason,
    unsigned,
)
from support.replay_network import ReplayNetlink, done, error, message

DUMPING = 18


def client(*datagrams: bytes) -> tuple[Netlink, ReplayNetlink]:
    transport = ReplayNetlink({DUMPING: list(datagrams)})
    return Netlink(transport, source="test"), transport


def test_messages_follow_each_other_on_four_byte_boundaries() -> None:
    data = message(16, b"abc", sequence=7) + message(3, b"")
    first, second = parse_messages(data, source="test")
    assert first == Message(type=16, flags=2, sequence=7, data=data, start=16, end=19)
    assert (second.type, second.start, second.end) == (3, 36, 36)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x10\0\0\0", "4 bytes at byte 0"),
        (struct.pack("=IHHII", 15, 1, 0, 0, 0), "claims 15 bytes"),
        (struct.pack("=IHHII", 17, 1, 0, 0, 0), "claims 17 bytes, 16 are left"),
        (message(1, b"") + b"\0", "1 bytes at byte 16"),
    ],
)
def test_truncated_datagrams_are_malformed(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        list(parse_messages(data, source="test"))


def test_attributes_are_walked_without_their_flag_bits() -> None:
    data = attribute(0x8001, b"abcde") + attribute(2, b"")
    assert list(attributes(data, 0, len(data), source="test")) == [(1, 4, 9), (2, 16, 16)]


@pytest.mark.parametrize("length", [0, 3, 9])
def test_an_attribute_that_does_not_fit_is_malformed(length: int) -> None:
    data = struct.pack("=HHI", length, 1, 0)
    with pytest.raises(ParseError, match=f"attribute 1 at byte 0 claims {length} bytes"):
        list(attributes(data, 0, len(data), source="test"))


def test_numbers_come_in_four_widths() -> None:
    assert unsigned(b"\xff", 0, 1, source="test") == 255
    assert unsigned(struct.pack("=H", 515), 0, 2, source="test") == 515
    assert unsigned(struct.pack("=I", 1 << 31), 0, 4, source="test") == 2147483648
    assert unsigned(struct.pack("=Q", 1 << 63), 0, 8, source="test") == 9223372036854775808
    with pytest.raises(ParseError, match="number of 3 bytes"):
        unsigned(b"abc", 0, 3, source="test")


def test_a_dump_goes_on_over_datagrams_until_it_is_done() -> None:
    netlink, transport = client(message(16, b"one!") + message(16, b"two!"), message(16, b"3!!!"), done())
    dump = netlink.dump(DUMPING, b"\0" * 16)
    assert [m.data[m.start : m.end] for m in dump.messages] == [b"one!", b"two!", b"3!!!"]
    assert dump.error == 0
    # length, RTM_GETLINK, REQUEST|DUMP, sequence 1, port 0
    assert transport.requests == [struct.pack("=IHHII", 32, 18, 0x301, 1, 0) + b"\0" * 16]


def test_an_empty_dump_is_a_dump() -> None:
    netlink, _ = client(done())
    assert netlink.dump(DUMPING, b"").messages == ()


def test_a_dump_that_one_device_broke_off_keeps_what_came_before() -> None:
    netlink, _ = client(message(16, b"one!"), done(errno.ENODEV))
    dump = netlink.dump(DUMPING, b"")
    assert (len(dump.messages), dump.error) == (1, errno.ENODEV)
    netlink, _ = client(message(16, b"one!"), error(errno.ENODEV))
    dump = netlink.dump(DUMPING, b"")
    assert (len(dump.messages), dump.error) == (1, errno.ENODEV)


def test_a_refusal_carries_the_errno_by_name() -> None:
    netlink, transport = client(error(errno.EOPNOTSUPP))
    with pytest.raises(Unavailable, match=r"test: EOPNOTSUPP \(Operation not supported\)"):
        netlink.dump(DUMPING, b"")
    assert transport.resets == 1


def test_an_errno_that_is_never_normal_is_an_error_not_an_absence() -> None:
    netlink, _ = client(error(errno.EINVAL))
    with pytest.raises(Failed, match=r"EINVAL \(Invalid argument\)"):
        netlink.dump(DUMPING, b"")


def test_silence_is_an_error_and_the_socket_is_thrown_away() -> None:
    netlink, transport = client(message(16, b"one!"))
    with pytest.raises(PlumblineError, match="no reply"):
        netlink.dump(DUMPING, b"")
    assert transport.resets == 1


def test_a_truncated_reply_is_an_error_and_the_socket_is_thrown_away() -> None:
    netlink, transport = client(message(16, b"one!")[:-2])
    with pytest.raises(ParseError, match="message at byte 0 claims 20 bytes, 18 are left"):
        netlink.dump(DUMPING, b"")
    assert transport.resets == 1


def test_a_late_answer_to_an_earlier_request_is_not_taken_for_this_one() -> None:
    class Late(ReplayNetlink):
        def receive(self) -> bytes:
            late = message(16, b"old!", sequence=4711)
            return late + super().receive()

    netlink = Netlink(Late({DUMPING: [message(16, b"new!") + done()]}), source="test")
    assert [m.data[m.start : m.end] for m in netlink.dump(DUMPING, b"").messages] == [b"new!"]


@pytest.mark.parametrize("disturbances", [1, 2, 5])
def test_a_disturbed_dump_is_done_again_at_most_twice(disturbances: int) -> None:
    class Disturbed(ReplayNetlink):
        def send(self, request: bytes) -> None:
            flags = 2 | NLM_F_DUMP_INTR if len(self.requests) < disturbances else 2
            self.answers[DUMPING] = message(16, b"link", flags=flags) + done()
            super().send(request)

    transport = Disturbed({})
    dump = Netlink(transport, source="test").dump(DUMPING, b"")
    assert len(dump.messages) == 1
    assert len(transport.requests) == min(disturbances + 1, 3)


def test_one_object_is_one_reply_or_a_refusal() -> None:
    netlink, _ = client(message(16, b"one!", flags=0))
    reply = netlink.get(DUMPING, b"")
    assert reply is not None
    assert reply.data[reply.start : reply.end] == b"one!"
    netlink, _ = client(error(errno.ENODEV))
    with pytest.raises(Refused):
        netlink.get(DUMPING, b"")
    netlink, _ = client(error(0))  # an acknowledgement without an object
    assert netlink.get(DUMPING, b"") is None


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Refused(errno.ENODEV, "x"), "vanished"),
        (Refused(errno.EOPNOTSUPP, "x"), "unsupported"),
        (Refused(errno.EPERM, "x"), "permission"),
        (Failed(errno.EBUSY, "x"), "busy"),
        (Failed(errno.EIO, "x"), "failed"),
        (ParseError("x", "y"), "malformed"),
        (PlumblineError("x"), "failed"),
    ],
)
def test_a_skip_has_a_short_reason(failure: PlumblineError, reason: str) -> None:
    assert skip_reason(failure) == reason


def test_the_kernel_answers_and_a_closed_socket_opens_again() -> None:
    sock = NetlinkSocket(0)
    try:
        route = Netlink(sock, source="netlink route")
        first = route.dump(DUMPING, b"\0" * 16)
        sock.reset()
        assert len(route.dump(DUMPING, b"\0" * 16).messages) == len(first.messages) >= 1
    finally:
        sock.close()
    sock.close()


def test_the_real_socket_does_not_wait_for_ever() -> None:
    sock = NetlinkSocket(0, timeout_s=0.05)
    try:
        with pytest.raises(PlumblineError, match="receive without a request"):
            sock.receive()
        sock.send(struct.pack("=IHHII", 16, 1, 0, 1, 0))  # NLMSG_NOOP: never answered
        with pytest.raises(PlumblineError, match=r"no reply within 0\.05 s"):
            sock.receive()
    finally:
        sock.close()


def test_an_unknown_protocol_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="netlink socket: EPROTONOSUPPORT"):
        NetlinkSocket(31).send(b"")
