"""The server on real sockets of the loopback, each test on a port of its own."""

import contextlib
import http.client
import logging
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from plumbline import __version__
from plumbline.core import threads
from plumbline.errors import PlumblineError
from plumbline.web.routes import Request, Response, text_response
from plumbline.web.server import Refusal, Server, format_address
from support.daemon import eventually

LOG = logging.getLogger("test")

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def echo(request: Request) -> Response:
    return text_response(200, f"{request.method} {request.target} {request.headers.get('accept')}")


@contextlib.contextmanager
def serving(
    respond: Callable[[Request], Response] = echo,
    *,
    host: str = "127.0.0.1",
    max_requests: int = 40,
    timeout_s: float = 5.0,
    idle_s: float = 5.0,
) -> Iterator[Server]:
    server = Server(host, 0, respond, logger=LOG, max_requests=max_requests, timeout_s=timeout_s, idle_s=idle_s)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def port_of(server: Server) -> int:
    return int(server.address.rpartition(":")[2])


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(server)), timeout=5)


def exchange(server: Server, data: bytes) -> bytes:
    """Everything the server says to ``data`` until it closes."""
    with connect(server) as sock:
        sock.sendall(data)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def test_a_kept_connection_serves_one_request_after_the_other() -> None:
    with serving() as server:
        client = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=5)
        for i in range(3):
            client.request("GET", f"/{i}", headers={"ACCEPT": "a"})
            response = client.getresponse()
            assert (response.status, response.read()) == (200, f"GET /{i} a\n".encode())
            assert response.headers["Server"] == f"plumbline/{__version__}"
            assert response.headers["Connection"] is None
        assert len(server._connections._connections) == 1
        client.close()


def test_head_has_the_length_and_no_body() -> None:
    with serving() as server:
        got = exchange(server, b"HEAD /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"\r\nContent-Length: 13\r\n" in got
    assert got.endswith(b"\r\n\r\n")


def test_pipelined_requests_are_answered_in_order() -> None:
    with serving() as server:
        got = exchange(server, GET + b"GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert got.index(b"GET / ") < got.index(b"GET /b")


@pytest.mark.parametrize("request_head", [b"GET /x HTTP/1.0\r\n\r\n", b"\r\n\r\nGET /x HTTP/1.0\r\n\r\n"])
def test_http_1_0_and_empty_lines_before_it(request_head: bytes) -> None:
    with serving() as server:
        got = exchange(server, request_head)
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nConnection: close\r\n" in got
    assert got.endswith(b"\r\n\r\nGET /x None\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/2.0\r\n\r\n", b"505"),
        (b"GET / HTTP/x\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 20000, b"431"),
        (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"431"),
    ],
)
def test_bad_requests_get_an_answer_and_the_connection_ends(data: bytes, status: bytes) -> None:
    with serving() as server:
        assert exchange(server, data).split(b" ")[1] == status
        assert exchange(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("headers", [b"Content-Length: 27\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_body_is_not_taken_for_another_request(headers: bytes) -> None:
    with serving() as server:
        got = exchange(server, b"POST /a HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
    assert got.count(b"HTTP/1.1 200") == 1
    assert b"POST /a" in got
    assert b"Connection: close" in got


def test_a_slow_request_is_ended_by_a_deadline_for_the_whole_of_it() -> None:
    with serving(timeout_s=0.3) as server, connect(server) as sock:
        began = time.monotonic()
        got = b""
        sock.settimeout(0.05)
        for byte in b"GET / HTTP/1.1\r\nX-Slow: " + b"z" * 100:  # 0.05 s a byte: each one well within the timeout
            with contextlib.suppress(OSError):
                sock.send(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                got = sock.recv(1000)
                break
        assert got.startswith(b"HTTP/1.1 408 ")
        assert 0.25 < time.monotonic() - began < 10


def test_an_idle_connection_is_closed_without_a_word() -> None:
    with serving(idle_s=0.1) as server, connect(server) as sock:
        assert sock.recv(100) == b""


def test_a_client_that_does_not_read_is_let_go() -> None:
    done = threading.Event()

    def large(_request: Request) -> Response:
        done.set()
        return Response(200, b"x" * 50_000_000)

    with serving(large, timeout_s=1.0, max_requests=1) as server, connect(server) as sock:
        sock.sendall(GET)
        assert done.wait(5)
        wait_until(lambda: not server._connections._connections)


class Gate:
    """A site that answers ``/slow`` only when it is let."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.leave = threading.Event()

    def respond(self, request: Request) -> Response:
        if request.target == "/slow":
            self.entered.release()
            assert self.leave.wait(10)
        return text_response(200, "done")


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_one_request_too_many_is_told_so_and_health_is_always_answered() -> None:
    gate = Gate()
    with serving(gate.respond, max_requests=2) as server, connect(server) as one, connect(server) as two:
        for sock in (one, two):
            sock.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            assert gate.entered.acquire(timeout=5)
        refused = exchange(server, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 1\r\n" in refused
        assert refused.endswith(b"2 requests are already in progress; raise web.max_requests if this is normal here\n")
        assert exchange(server, b"GET /-/healthy HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        gate.leave.set()
        for sock in (one, two):
            assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: not any(each.in_progress for each in server._connections._connections))
        assert exchange(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_crowd_of_idle_connections_does_not_keep_a_scrape_out() -> None:
    with serving(max_requests=1) as server, contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(connect(server)) for _ in range(70)]  # more than 1 + 64
        assert exchange(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: len(server._connections._connections) <= 65)
        assert crowd[0].recv(10) == b""  # the longest idle one went


def test_when_the_system_gives_no_more_threads_a_waiting_connection_gives_its_own_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 10

    class Scarce(threading.Thread):
        def start(self) -> None:
            if self.name == "http-request" and sum(each.name == self.name for each in threading.enumerate()) >= limit:
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr("plumbline.web.server.threading.Thread", Scarce)
    with serving() as server, contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(connect(server))
        for _ in range(3):
            assert exchange(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        assert server.refused[Refusal.CROWDED] >= 20


def test_running_out_of_file_descriptors_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        waiting = [socket.socket() for _ in range(3)]
        try:
            probe = socket.socket()
            resource.setrlimit(resource.RLIMIT_NOFILE, (probe.fileno(), hard))  # no descriptor is left
            for sock in waiting:
                sock.settimeout(5)
                sock.connect(("127.0.0.1", port_of(server)))
            wait_until(lambda: bool(caplog.records))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            probe.close()
        waiting[0].sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert waiting[0].recv(100).startswith(b"HTTP/1.1 200 ")
        for sock in waiting:
            sock.close()
    assert [record.getMessage() for record in caplog.records] == ["cannot accept connections: Too many open files"]


def test_a_mistake_in_the_site_is_an_answer_and_is_logged_once_until_it_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = True

    def respond(_request: Request) -> Response:
        if broken:
            raise KeyError("nic")
        return text_response(200, "fine")

    with serving(respond) as server:
        for _ in range(3):
            got = exchange(server, b"GET /?x=1 HTTP/1.0\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 500 ")
            assert b"nic" not in got
        assert [record.getMessage() for record in caplog.records] == ["answering /: KeyError"]
        broken = False
        assert exchange(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_failures_on_hostile_paths_leave_room_in_the_log_for_our_own(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand different paths that fail, then the metrics: one line for each kind of path."""

    def respond(request: Request) -> Response:
        if request.target == "/-/healthy":
            return text_response(200, "fine")
        raise OSError(36, "File name too long")

    with serving(respond) as server:
        client = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=5)
        for number in range(1000):
            client.request("GET", f"/runbooks/{number}" if number % 2 else f"/nonsense{number}?{number}")
            assert client.getresponse().read() == b"internal error; see the plumbline log\n"
        for path in ("/metrics", "/", "/metrics", "/-/healthy", "/"):
            client.request("GET", path)
            client.getresponse().read()
        client.close()
    assert [record.getMessage() for record in caplog.records] == [
        "answering an unknown path: OSError",
        "answering /runbooks/: OSError",
        "answering /metrics: OSError",
        "answering /: OSError",
    ]


def test_what_works_and_fails_in_turn_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    def respond(request: Request) -> Response:
        if request.target.endswith("bad"):
            raise KeyError("x")
        return text_response(200, "fine")

    with serving(respond) as server:
        client = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=5)
        for path in ("/runbooks/bad", "/runbooks/good") * 100:
            client.request("GET", path)
            client.getresponse().read()
        client.close()
    assert [record.getMessage() for record in caplog.records] == ["answering /runbooks/: KeyError"]


def test_a_mistake_that_ends_every_connection_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        monkeypatch.setattr(server, "_guard", None)
        for _ in range(20):
            with contextlib.suppress(ConnectionResetError):
                assert exchange(server, GET) == b""
        # The client sees the end of its connection before the thread that served it has been counted.
        eventually(lambda: threads.PROCESS.failures["http-request"] >= 20)
    assert [record.getMessage() for record in caplog.records] == ["serving a connection: AttributeError"]


def test_requests_are_not_logged_above_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with serving() as server:
        exchange(server, b"GET / HTTP/1.0\r\n\r\n")
        exchange(server, b"nonsense\r\n\r\n")
    assert caplog.records == []


def test_a_port_in_use_is_one_clear_line() -> None:
    with serving() as first:
        second = Server("127.0.0.1", port_of(first), echo, logger=LOG)
        with pytest.raises(PlumblineError) as caught:
            second.start()
        second.stop()
        assert str(caught.value) == (
            f"127.0.0.1:{port_of(first)}: address already in use; choose another with --web.listen-address"
        )


def test_an_address_of_another_host() -> None:
    with pytest.raises(PlumblineError, match=r"^192\.0\.2\.1:10047: this host does not have that address; choose"):
        Server("192.0.2.1", 10047, echo, logger=LOG).start()


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(PlumblineError, match=r"^name\.invalid:10047: .+; choose another with --web\.listen-address"):
        Server("name.invalid", 10047, echo, logger=LOG).start()


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="this host has no IPv6 loopback")
def test_ipv6() -> None:
    with serving(host="::1") as server:
        assert server.address == f"[::1]:{port_of(server)}"
        with socket.create_connection(("::1", port_of(server)), timeout=5) as sock:
            sock.sendall(GET)
            assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("host", ["", "0.0.0.0"])
def test_every_address(host: str) -> None:
    with serving(host=host) as server:
        assert exchange(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_the_address_before_the_start_is_the_one_asked_for() -> None:
    assert Server("::1", 10047, echo, logger=LOG).address == "[::1]:10047"
    assert format_address("", 10047) == ":10047"


def test_stop_closes_idle_connections_at_once_and_refuses_new_ones() -> None:
    with serving() as server, connect(server) as idle:
        wait_until(lambda: len(server._connections._connections) == 1)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 10
        assert idle.recv(10) == b""
        with pytest.raises(ConnectionRefusedError):
            connect(server)


def test_stop_lets_a_request_under_way_finish() -> None:
    gate = Gate()
    with serving(gate.respond) as server, connect(server) as sock:
        sock.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        assert gate.entered.acquire(timeout=5)
        threading.Timer(0.1, gate.leave.set).start()
        server.stop()
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_stop_does_not_wait_for_a_request_that_hangs() -> None:
    gate = Gate()
    with serving(gate.respond) as server, connect(server) as sock:
        sock.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        assert gate.entered.acquire(timeout=5)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 10
        gate.leave.set()


def test_the_port_is_free_again_after_stop() -> None:
    with serving() as server:
        port = port_of(server)
        exchange(server, b"GET / HTTP/1.0\r\n\r\n")
    again = Server("127.0.0.1", port, echo, logger=LOG)
    again.start()
    again.stop()
