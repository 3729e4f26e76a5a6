"""Passwords: who is let in, what a check costs whom, and that guesses keep nobody out."""

from __future__ import annotations

import base64
import threading
import time

import bcrypt
import pytest

from plumbline.config.types import Secret
from plumbline.web import access as webauth
from plumbline.web.access import AuthResult, Passwords, Turns, dummy_hash, parse_basic

CHEAP = 4


def hashed(password: str, cost: int = CHEAP) -> Secret:
    return Secret(bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(cost)).decode())


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Checks:
    """Counts, and can hold, what the real bcrypt is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[bytes, bytes]] = []
        self.at_once = self.most_at_once = 0
        self.slow_s = 0.0
        real = bcrypt.checkpw

        def checkpw(password: bytes, against: bytes) -> bool:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.asked.append((password, against))
            time.sleep(self.slow_s)
            try:
                return real(password, against)
            finally:
                self.at_once -= 1

        monkeypatch.setattr(webauth.bcrypt, "checkpw", checkpw)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    return Checks(monkeypatch)


def test_who_is_let_in() -> None:
    users = Passwords({"alice": hashed("secret"), "bob": hashed("other")}, Turns())
    assert users.look(basic("alice", "secret"), "p") is AuthResult.LET_IN
    assert users.look(basic("bob", "other"), "p") is AuthResult.LET_IN
    for user, password in (("alice", "other"), ("alice", ""), ("alice", "secret "), ("carol", "secret"), ("", "")):
        assert users.look(basic(user, password), "p") is AuthResult.REFUSED
    assert users.look(None, "p") is AuthResult.REFUSED


def test_hashes_of_htpasswd_hold() -> None:
    known = Secret("$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi")  # exporter-toolkit's own
    assert Passwords({"a": known}, Turns()).look(basic("a", "fakepassword"), "p") is AuthResult.LET_IN


def test_a_password_longer_than_bcrypt_looks_at() -> None:
    users = Passwords({"a": hashed("x" * 100)}, Turns())
    assert users.look(basic("a", "x" * 100), "p") is AuthResult.LET_IN
    assert users.look(basic("a", "x" * 71), "p") is AuthResult.REFUSED


@pytest.mark.parametrize(
    "header", ["", "Basic", "Basic !", "Bearer abc", "Basic " + base64.b64encode(b"nocolon").decode(), "Basic /w=="]
)
def test_what_is_no_basic_authorization(header: str) -> None:
    assert parse_basic(header) is None


def test_the_scheme_has_no_case_and_the_password_may_hold_colons() -> None:
    assert parse_basic("bASIC " + base64.b64encode(b"a:b:c").decode()) == ("a", b"b:c")


def test_a_good_password_is_checked_once(checks: Checks) -> None:
    users = Passwords({"a": hashed("x"), "b": hashed("y")}, Turns())
    for _ in range(3):
        assert users.look(basic("a", "x"), "p") is AuthResult.LET_IN
        assert users.look(basic("b", "y"), "q") is AuthResult.LET_IN
    assert len(checks.asked) == 2


def test_guesses_push_no_good_password_out_and_are_checked_each_time(checks: Checks) -> None:
    users = Passwords({"a": hashed("x")}, Turns())
    users.look(basic("a", "x"), "p")
    for guess in range(150):  # the toolkit's cache holds 100
        users.look(basic("a", str(guess % 100)), "q")
    assert len(checks.asked) == 151
    assert users.look(basic("a", "x"), "p") is AuthResult.LET_IN
    assert len(checks.asked) == 151


def rounds(checks: Checks) -> int:
    """Of bcrypt, since the last question."""
    total = sum(2 ** int(against[4:6]) for _, against in checks.asked)
    checks.asked.clear()
    return total


@pytest.mark.parametrize("costs", [(4, 4), (4, 5), (4, 7), (7, 4), (5, 6)])
def test_an_unknown_user_costs_what_a_known_one_costs(checks: Checks, costs: tuple[int, int]) -> None:
    """Whatever the costs of their hashes: a question's rounds are those of the dearest."""
    users = Passwords({"a": hashed("x", costs[0]), "b": hashed("y", costs[1])}, Turns())
    for user, password in (("nobody", "x"), ("a", "wrong"), ("b", "wrong"), ("", ""), ("a", "x"), ("b", "y")):
        users.look(basic(user, password), "p")
        assert rounds(checks) == 2 ** max(costs), user
    for user, password in (("a", "other"), ("b", "other"), ("nobody", "other")):  # who was let in costs others the same
        users.look(basic(user, password), "p")
        assert rounds(checks) == 2 ** max(costs), user


def test_a_hash_that_bcrypt_refuses_costs_the_same(checks: Checks) -> None:
    broken = Secret("$2b$05$" + "!" * 53)  # as no file may have it
    users = Passwords({"a": broken, "b": hashed("y", 6)}, Turns())
    assert users.look(basic("a", "x"), "p") is AuthResult.REFUSED
    assert rounds(checks) >= 2**6


def test_nothing_is_remembered_of_an_unknown_user_that_could_be_compared_faster() -> None:
    """Comparing digests of different lengths ends at once, so there is one for everybody."""
    users = Passwords({"a": hashed("x")}, Turns())
    users.look(basic("a", "x"), "p")
    assert len(users._remembered("nobody")) == len(users._remembered("a")) == 32
    assert users._remembered("nobody") != users._remembered("a")


def test_nobodys_hash_is_one_that_bcrypt_takes() -> None:
    for cost in (4, 5):
        assert bcrypt.checkpw(b"x", dummy_hash(cost).encode()) is False


def test_no_password_stays_in_memory(checks: Checks) -> None:
    users = Passwords({"a": hashed("hunter2")}, Turns())
    assert users.look(basic("a", "hunter2"), "p") is AuthResult.LET_IN
    assert b"hunter2" not in repr((users._known, users._key, users._users)).encode()


def test_a_reload_keeps_who_was_let_in_and_no_one_else(checks: Checks) -> None:
    turns, same, other = Turns(), hashed("x"), hashed("y")
    before = Passwords({"a": same, "b": other, "c": other}, turns)
    for user, password in (("a", "x"), ("b", "y"), ("c", "y")):
        before.look(basic(user, password), "p")
    after = Passwords({"a": same, "b": hashed("new")}, turns, before)
    asked = len(checks.asked)
    assert after.look(basic("a", "x"), "p") is AuthResult.LET_IN
    assert len(checks.asked) == asked
    assert after.look(basic("b", "y"), "p") is AuthResult.REFUSED
    assert after.look(basic("c", "y"), "p") is AuthResult.REFUSED


def test_a_crowd_of_first_scrapes_costs_one_check(checks: Checks) -> None:
    checks.slow_s = 0.05
    users = Passwords({"a": hashed("x")}, Turns())
    found: list[AuthResult] = []
    threads = [threading.Thread(target=lambda: found.append(users.look(basic("a", "x"), "p"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [AuthResult.LET_IN] * 20
    assert len(checks.asked) == 1


def test_a_scrape_waits_for_no_more_checks_than_addresses_guess(checks: Checks) -> None:
    checks.slow_s = 0.02
    users = Passwords({"a": hashed("x")}, Turns(wait_s=30))
    guessing = [
        threading.Thread(target=users.look, args=(basic("a", f"guess {n}"), "attacker"), daemon=True) for n in range(40)
    ]
    for thread in guessing:
        thread.start()
    while len(checks.asked) < 3:
        time.sleep(0.001)
    before = len(checks.asked)
    assert users.look(basic("a", "x"), "prometheus") is AuthResult.LET_IN
    assert len(checks.asked) - before <= 4  # its own, the one under way, one of the other address; one for the race
    for thread in guessing:
        thread.join(30)
    assert checks.most_at_once == 1
    assert len(checks.asked) == 41


def test_who_waits_too_long_or_is_gone_is_not_checked(checks: Checks) -> None:
    turns = Turns(wait_s=0.05)
    users = Passwords({"a": hashed("x")}, turns)
    with turns.turn("other", lambda: False) as come:
        assert come
        assert users.look(basic("a", "x"), "p") is AuthResult.TOO_MANY
        assert users.look(basic("a", "x"), "p", gone=lambda: True) is AuthResult.TOO_MANY
    assert checks.asked == []
    assert users.look(basic("a", "x"), "p") is AuthResult.LET_IN
    assert turns._waiting == {}
