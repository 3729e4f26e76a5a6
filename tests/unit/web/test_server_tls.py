"""TLS, client certificates and passwords on real sockets, with certificates that the real openssl made."""

from __future__ import annotations

import base64
import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bcrypt
import pytest

from plumbline.errors import ConfigError
from plumbline.web import tls as webtls
from plumbline.web.guard import Exposure, Guard, files_of, make_guard
from plumbline.web.routes import Request, Response, text_response
from plumbline.web.server import Refusal, Server
from support.certificates import Certificates, make_certificates

pytestmark = pytest.mark.usefixtures("private_files")

LOG = logging.getLogger("test")
SERVER = "cert_file: server.crt, key_file: server.key"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.0\r\n\r\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def guard_of(made: Certificates, tls: str = "", more: str = "", before: Guard | None = None) -> Guard:
    file = made.folder / "web.yaml"
    file.write_text(f"tls_server_config: {{{SERVER}{tls}}}\n{more}")
    return make_guard(file, before)


def respond(request: Request) -> Response:
    if request.target == "/large":
        return Response(200, b"x" * 50_000_000)
    return text_response(200, f"{request.method} {request.target}", ("X-Frame-Options", "own"))


@contextlib.contextmanager
def serving(guard: Guard, *, max_requests: int = 40, timeout_s: float = 5.0) -> Iterator[Server]:
    server = Server("127.0.0.1", 0, respond, logger=LOG, guard=guard, max_requests=max_requests, timeout_s=timeout_s)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def plain(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(server.address.rpartition(":")[2])), timeout=10)


@contextlib.contextmanager
def connected(server: Server, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    with plain(server) as sock, context.wrap_socket(sock, server_hostname="localhost") as encrypted:
        yield encrypted


def answer(server: Server, context: ssl.SSLContext, data: bytes = LAST) -> bytes:
    """Everything the server says; TLS 1.3 tells a client only now that it was turned away."""
    with connected(server, context) as sock:
        sock.sendall(data)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def turned_away(server: Server, context: ssl.SSLContext) -> bool:
    try:
        return answer(server, context) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def test_a_client_that_trusts_our_authority_is_served(made: Certificates) -> None:
    with serving(guard_of(made)) as server, connected(server, made.client()) as sock:
        assert sock.version() == "TLSv1.3"
        for _ in range(2):
            sock.sendall(GET)
            assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")


def test_one_that_does_not_trust_it_goes_and_is_counted(made: Certificates) -> None:
    with serving(guard_of(made)) as server:
        with pytest.raises(ssl.SSLCertVerificationError), connected(server, ssl.create_default_context()):
            pass
        wait_until(lambda: server.refused[Refusal.TLS] == 1)


@pytest.mark.parametrize(
    ("kind", "ca", "none", "client", "stranger"),
    [
        ("NoClientCert", "", True, True, True),
        ("RequestClientCert", "", True, True, True),
        ("VerifyClientCertIfGiven", ", client_ca_file: ca.crt", True, True, False),
        ("RequireAndVerifyClientCert", ", client_ca_file: ca.crt", False, True, False),
    ],
)
def test_client_certificates(made: Certificates, kind: str, ca: str, none: bool, client: bool, stranger: bool) -> None:
    with serving(guard_of(made, f", client_auth_type: {kind}{ca}")) as server:
        for name, let_in in ((None, none), ("client", client), ("stranger", stranger)):
            assert turned_away(server, made.client(name)) is not let_in, name


@pytest.mark.parametrize(
    ("sans", "let_in"),
    [
        ("prometheus.example", True),
        ("'fd00::1'", True),
        ("ops@example.org", True),
        ("'spiffe://example/prometheus'", True),
        ("other, prometheus.example", True),
        ("prometheus", False),
        ("client", False),  # the common name is none
        ("", False),
    ],
)
@pytest.mark.parametrize("version", ["TLS12", "TLS13"])
def test_only_allowed_names(made: Certificates, sans: str, let_in: bool, version: str) -> None:
    tls = (
        f", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt, client_allowed_sans: [{sans}]"
        f", max_version: {version}"
    )
    with serving(guard_of(made, tls)) as server:
        assert turned_away(server, made.client("client")) is not let_in


def test_versions_suites_and_curves_are_the_files(made: Certificates) -> None:
    old = made.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with serving(guard_of(made, ", min_version: TLS13")) as server:
        assert not turned_away(server, made.client())
        with pytest.raises(ssl.SSLError), connected(server, old):
            pass
    suite = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    with serving(guard_of(made, f", cipher_suites: [{suite}], curve_preferences: [CurveP384]")) as server:
        with connected(server, old) as sock:
            cipher = sock.cipher()
            assert cipher is not None
            assert cipher[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"
        other = made.client()
        other.set_ecdh_curve("prime256v1")
        with pytest.raises(ssl.SSLError), connected(server, other):
            pass


def test_every_suite_of_the_table_is_one_of_openssl() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    assert set(webtls.CIPHERS.values()) <= {each["name"] for each in context.get_ciphers()}


def test_plain_http_is_told_so(made: Certificates) -> None:
    with serving(guard_of(made)) as server, plain(server) as sock:
        sock.sendall(GET)
        got = b"".join(iter(lambda: sock.recv(1000), b""))
    assert got.startswith(b"HTTP/1.0 400 ")
    assert b"requires HTTPS" in got


def test_inline_pem_never_touches_a_disk(made: Certificates, tmp_path: Path) -> None:
    def block(name: str) -> str:
        return "|\n" + "".join(f"    {line}\n" for line in (made.folder / name).read_text().splitlines())

    file = tmp_path / "web.yaml"
    file.write_text(f"tls_server_config:\n  cert: {block('server.crt')}  key: {block('server.key')}")
    with serving(make_guard(file)) as server:
        assert not turned_away(server, made.client())
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize(
    ("tls", "says"),
    [
        (
            "cert_file: none, key_file: server.key",
            "tls_server_config.cert_file = '.+': can't be read: No such file",
        ),
        (
            "cert_file: server.crt, key_file: client.key",
            "cert_file: does not match the certificate's key",
        ),
        ("cert_file: server.key, key_file: server.key", "tls_server_config.cert_file: not a certificate and its key"),
        ("cert_file: server.crt, key_file: server.crt", "tls_server_config.cert_file: not a certificate and its key"),
        (
            "cert_file: server.crt, key_file: locked.key",
            "tls_server_config.key_file: is encrypted; the daemon cannot",
        ),
        (
            f"{SERVER}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.key",
            "no PEM certificate",
        ),
        (f"{SERVER}, cipher_suites: [RC4]", r"cipher_suites = 'RC4': unknown cipher suite; known: TLS_RSA_"),
        (f"{SERVER}, curve_preferences: [X448]", "curve_preferences = 'X448': unknown curve; known: CurveP256"),
        (f"{SERVER}, curve_preferences: [X25519, CurveP256]", "only one curve is supported"),
    ],
)
def test_what_can_not_be_used_is_one_line_without_a_secret(made: Certificates, tls: str, says: str) -> None:
    (made.folder / "locked.key").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n")
    file = made.folder / "bad.yaml"
    file.write_text(f"tls_server_config: {{{tls}}}")
    with pytest.raises(ConfigError, match=says) as caught:
        make_guard(file)
    assert "\n" not in str(caught.value)
    assert "PRIVATE" not in str(caught.value)


# --- crowds


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_half_open_handshakes_keep_no_scrape_out_and_end_in_time(made: Certificates) -> None:
    with serving(guard_of(made), max_requests=2, timeout_s=1.0) as server, contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(plain(server)) for _ in range(200)]
        for sock in crowd[::2]:
            with contextlib.suppress(OSError):
                sock.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a hello, and nothing more
        for _ in range(5):
            assert answer(server, made.client()).startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: len(server._connections._connections) == 0)  # each within its deadline
        assert server.refused[Refusal.CROWDED] > 0


def test_the_handshake_has_one_deadline_for_all_of_it(made: Certificates) -> None:
    hello, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = made.client().wrap_bio(hello, out, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    record = out.read()
    with serving(guard_of(made), timeout_s=0.3) as server, plain(server) as sock:
        began = time.monotonic()
        sock.settimeout(0.05)
        ended = False
        for byte in record:
            with contextlib.suppress(TimeoutError):
                try:
                    sock.send(bytes([byte]))
                    ended = sock.recv(100) == b""
                except ConnectionError:
                    ended = True
            if ended:
                break
        assert ended
        assert time.monotonic() - began < 10


def test_a_client_that_does_not_read_holds_no_place(made: Certificates) -> None:
    with serving(guard_of(made), max_requests=1, timeout_s=5.0) as server, contextlib.ExitStack() as stack:

        def sending() -> int:
            return sum(each.in_progress and not each.computing for each in server._connections._connections)

        for number in range(3):
            sock = stack.enter_context(connected(server, made.client()))
            sock.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_until(lambda wanted=number + 1: sending() == wanted)
        assert answer(server, made.client()).startswith(b"HTTP/1.1 200 ")


def test_a_slow_reader_is_ended_by_one_deadline_for_the_whole_answer(made: Certificates) -> None:
    with serving(guard_of(made), timeout_s=2.0) as server, connected(server, made.client()) as sock:
        sock.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        with contextlib.suppress(OSError):
            while server._connections._connections and sock.recv(16384):  # always a little, never enough
                time.sleep(0.02)
        wait_until(lambda: len(server._connections._connections) == 0)


# --- passwords


def basic(user: str, password: str) -> bytes:
    return b"Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()) + b"\r\n"


def users(**passwords: str) -> str:
    lines = (
        f"  {user}: {bcrypt.hashpw(word.encode(), bcrypt.gensalt(4)).decode()}\n" for user, word in passwords.items()
    )
    return "basic_auth_users:\n" + "".join(lines)


def test_every_path_asks_for_the_password(made: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    with serving(guard_of(made, more=users(prometheus="secret"))) as server:
        for path in (b"/metrics", b"/", b"/-/healthy", b"/-/ready", b"/none"):
            head = b"GET " + path + b" HTTP/1.0\r\n"
            for wrong in (b"", basic("prometheus", "hunter2"), basic("hunter2", "secret"), b"Authorization: x\r\n"):
                got = answer(server, made.client(), head + wrong + b"\r\n")
                assert got.startswith(b"HTTP/1.1 401 ")
                assert b'\r\nWWW-Authenticate: Basic realm="plumbline", charset="UTF-8"\r\n' in got
            got = answer(server, made.client(), head + basic("prometheus", "secret") + b"\r\n")
            assert got.startswith(b"HTTP/1.1 200 ")
        assert server.refused[Refusal.AUTHENTICATION] == 20
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "refused a client from 127.0.0.1 (authentication); plumbline_web_requests_refused_total counts them"
    ]


def test_a_flood_of_guesses_does_not_keep_a_scrape_out(made: Certificates) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(9)).decode()
    guard = guard_of(made, more=f"basic_auth_users:\n  prometheus: {hashed}\n")
    good = b"GET / HTTP/1.0\r\n" + basic("prometheus", "secret") + b"\r\n"
    ended = threading.Event()

    def guess(number: int) -> None:
        tried = 0
        while not ended.is_set():
            tried += 1
            with contextlib.suppress(OSError):
                answer(
                    server, made.client(), b"GET / HTTP/1.0\r\n" + basic("prometheus", f"{number} {tried}") + b"\r\n"
                )

    with serving(guard) as server:
        assert answer(server, made.client(), good).startswith(b"HTTP/1.1 200 ")
        threads = [threading.Thread(target=guess, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: server.refused[Refusal.AUTHENTICATION] > 3)
            for _ in range(10):
                assert answer(server, made.client(), good).startswith(b"HTTP/1.1 200 ")
        finally:
            ended.set()
            for thread in threads:
                thread.join(30)


def test_headers_are_added_and_a_responses_own_stay(made: Certificates) -> None:
    headers = "X-Frame-Options: deny, Strict-Transport-Security: max-age=1, X-XSS-Protection: ''"
    more = f"http_server_config: {{headers: {{{headers}}}}}"
    with serving(guard_of(made, more=more)) as server:
        got = answer(server, made.client())
        assert b"\r\nStrict-Transport-Security: max-age=1\r\n" in got
        assert b"\r\nX-Frame-Options: own\r\n" in got
        assert b"deny" not in got
        assert b"XSS" not in got
        assert b"max-age=1" in answer(server, made.client(), b"nonsense\r\n\r\n")


def test_the_rate_limit_is_one_for_all_who_may_come_in(made: Certificates) -> None:
    more = users(a="x") + "rate_limit: {interval: 1h, burst: 2}\n"
    good = b"GET / HTTP/1.0\r\n" + basic("a", "x") + b"\r\n"
    with serving(guard_of(made, more=more)) as server:
        for _ in range(5):
            assert answer(server, made.client()).startswith(b"HTTP/1.1 401 ")  # takes nothing from the others
        assert [answer(server, made.client(), good).split(b" ")[1] for _ in range(3)] == [b"200", b"200", b"429"]


# --- reload


def test_a_new_certificate_holds_at_once_and_an_idle_connection_has_to_come_again(made: Certificates) -> None:
    guard = guard_of(made)
    with serving(guard) as server, connected(server, made.client()) as idle:
        idle.sendall(GET)
        assert idle.recv(1000).startswith(b"HTTP/1.1 200 ")
        before = idle.getpeercert(binary_form=True)
        assert guard_of(made, before=guard) is guard
        made.sign("server", "DNS:localhost")
        try:
            new = guard_of(made, before=guard)
            assert new is not guard
            server.use(new)
            assert idle.recv(10) == b""
            with connected(server, made.client()) as again:
                assert again.getpeercert(binary_form=True) != before
        finally:
            make_certificates(made.folder)


def test_tls_can_be_switched_off_and_on(made: Certificates, tmp_path: Path) -> None:
    with serving(guard_of(made)) as server:
        server.use(make_guard(None))
        with plain(server) as sock:
            sock.sendall(GET)
            assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")
            server.use(guard_of(made))
            assert sock.recv(100) == b""
        assert not turned_away(server, made.client())


def test_the_files_to_watch_are_all_that_is_read(made: Certificates) -> None:
    guard_of(made, ", client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.crt")
    names = {each.name for each in files_of(made.folder / "web.yaml")}
    assert names == {"web.yaml", "server.crt", "server.key", "ca.crt"}
    assert files_of(made.folder / "none") == [made.folder / "none"]
    assert files_of(None) == []


CERTIFICATES = ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt"
LIMIT = "rate_limit: {interval: 1s, burst: 2}\n"


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "rate_limit: {interval: 1s, burst: 2}", "basic_auth_users:"])
@pytest.mark.parametrize("shut_by", ["passwords", "certificates"])
def test_no_reload_opens_a_shut_door(made: Certificates, shut_by: str, text: str) -> None:
    """A file cut to nothing, by an editor or a full disk, is what somebody meant only at a start."""
    tls, more = (CERTIFICATES, "") if shut_by == "certificates" else ("", users(a="x"))
    guard = guard_of(made, tls, more)
    file = made.folder / "web.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        make_guard(file, guard)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="a reload cannot remove all authentication; restart the daemon"):
        make_guard(None, guard)


def test_nor_does_one_that_leaves_tls_alone(made: Certificates) -> None:
    """The file's end is lost, where the users stood."""
    guard = guard_of(made, more=users(a="x"))
    with pytest.raises(ConfigError, match=r"Currently active: TLS, passwords$"):
        guard_of(made, before=guard)
    encrypted = guard_of(made)
    with pytest.raises(ConfigError, match=r"a reload cannot remove all protection .*Currently active: TLS$"):
        make_guard(None, encrypted)


@pytest.mark.parametrize(
    ("tls", "more", "lost"),
    [
        (CERTIFICATES + ", client_allowed_sans: [a]", LIMIT, {"passwords"}),
        (CERTIFICATES, LIMIT, {"passwords", "client_allowed_sans"}),
        ("", users(a="x"), {"client certificates", "client_allowed_sans", "rate_limit"}),
        (None, users(a="x") + LIMIT, {"TLS", "client certificates", "client_allowed_sans"}),
    ],
    ids=["passwords", "passwords and names", "clients and limit", "TLS"],  # a hash differs in each process of xdist
)
def test_a_guard_that_goes_is_remembered_until_it_is_back(
    made: Certificates, tls: str | None, more: str, lost: set[str]
) -> None:
    every = (CERTIFICATES + ", client_allowed_sans: [a]", users(a="x") + LIMIT)
    before = guard_of(made, *every)
    assert before.lost == set()
    if tls is None:
        file = made.folder / "web.yaml"
        file.write_text(more)
        after = make_guard(file, before)
    else:
        after = guard_of(made, tls, more, before)
    assert after.lost == lost
    warning = Exposure.of("127.0.0.1", after).warning
    assert warning == f"a reload removed {', '.join(sorted(lost))}; restart the daemon if this is intended"
    again = guard_of(made, tls or "", more, after)
    assert again.lost == (lost - {"TLS"} if tls is None else lost), "a second look forgets nothing"
    assert guard_of(made, *every, again).lost == set()
