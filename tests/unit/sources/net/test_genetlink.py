"""The process that asks the kernel for the numbers of a family; tests/integration asks a real kernel."""

import sys
from collections.abc import Callable

import pytest

from plumbline.errors import ParseError, Unavailable
from plumbline.sources.net import genetlink
from plumbline.sources.net.netlink import KernelError

Answer = Callable[[str], None]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Makes the process run this code."""
    genetlink._ask.cache_clear()
    return lambda code: monkeypatch.setattr(
        genetlink, "argv_of", lambda *_arguments, **_options: (sys.executable, "-c", code)
    )


def test_the_number_is_asked_for_once(process: Answer) -> None:
    process("print('{\"number\": 21}')")
    assert genetlink.resolve_family("test") == 21
    process("print('{\"number\": 22}')")
    assert genetlink.resolve_family("test") == 21
    genetlink._ask.cache_clear()


def test_a_kernel_without_the_family(process: Answer) -> None:
    process("print('{\"code\": 2}')")
    with pytest.raises(Unavailable, match=r"^generic netlink family test: ENOENT"):
        genetlink.resolve_family("test")
    genetlink._ask.cache_clear()


def test_what_may_pass_is_asked_again(process: Answer) -> None:
    process("print('{\"code\": 105}')")
    with pytest.raises(KernelError, match="ENOBUFS"):
        genetlink.resolve_family("test")
    process("print('{\"number\": 21}')")
    assert genetlink.resolve_family("test") == 21
    genetlink._ask.cache_clear()


def test_a_process_that_fails_is_named_with_its_last_line_and_asked_again(process: Answer) -> None:
    process("import nothing_of_that_name")
    with pytest.raises(ParseError, match=r"for it failed: ModuleNotFoundError: No module named 'nothing_of_that"):
        genetlink.settings_group()
    process('print(\'{"groups": {"monitor": 6}}\')')
    assert genetlink.settings_group() == 6
    genetlink._ask.cache_clear()


def test_a_kernel_without_the_group_for_settings(process: Answer) -> None:
    process("print('{\"number\": 21}')")
    with pytest.raises(Unavailable, match=r"^generic netlink family ethtool: group monitor: ENOENT"):
        genetlink.settings_group()
    genetlink._ask.cache_clear()
