"""Load BPF programs through libbpf 1.x; only the needed parts: open, size, load, attach, map.

https://libbpf.readthedocs.io/en/latest/api.html (since 1.0 functions return ``-errno``, or NULL and set errno)

libbpf 0.x (``libbpf.so.0``) reports errors differently and has other names for maps; it is not supported.
"""

import ctypes
import errno
import logging
import mmap
import os
from collections import deque
from collections.abc import Iterable
from ctypes import c_bool, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from typing import Any

from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.distribution import advice

_log = logging.getLogger(__name__)

LIBRARY = "libbpf.so.1"
_WARN = 0
_TYPEDEF = 8  # BTF_KIND_TYPEDEF
_PRINT = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)

# result and argument types of all functions called
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "libbpf_set_print": (c_void_p, (c_void_p,)),
    "bpf_object__open_mem": (c_void_p, (c_char_p, c_size_t, c_void_p)),
    "bpf_object__load": (c_int, (c_void_p,)),
    "bpf_object__close": (None, (c_void_p,)),
    "bpf_object__find_map_by_name": (c_void_p, (c_void_p, c_char_p)),
    "bpf_object__find_program_by_name": (c_void_p, (c_void_p, c_char_p)),
    "bpf_map__set_max_entries": (c_int, (c_void_p, c_uint32)),
    "bpf_map__set_initial_value": (c_int, (c_void_p, c_char_p, c_size_t)),
    "bpf_map__fd": (c_int, (c_void_p,)),
    "bpf_program__set_autoload": (c_int, (c_void_p, c_bool)),
    "bpf_program__attach": (c_void_p, (c_void_p,)),
    "bpf_program__fd": (c_int, (c_void_p,)),
    "bpf_link__destroy": (c_int, (c_void_p,)),
    "bpf_obj_get": (c_int, (c_char_p,)),
    "btf__load_vmlinux_btf": (c_void_p, ()),
    "btf__find_by_name_kind": (c_int, (c_void_p, c_char_p, c_uint32)),
    "btf__type_by_id": (c_void_p, (c_void_p, c_uint32)),
    "btf__free": (None, (c_void_p,)),
}


class BpfError(PlumblineError):
    """libbpf or the kernel refused; ``errno`` is the reason, ``said`` is libbpf's own output about it."""

    def __init__(self, what: str, number: int, messages: Iterable[str] = ()) -> None:
        self.errno, self.said = number, tuple(messages)
        first = next((line for line in self.said if line), "")
        super().__init__(f"{what}: {os.strerror(number)}" + (f" ({first})" if first else ""))


class _BtfType(ctypes.Structure):
    _fields_ = (("name", c_uint32), ("info", c_uint32), ("type", c_uint32))


class Library:
    """libbpf, with its output kept for errors instead of written to stderr."""

    def __init__(self, name: str = LIBRARY) -> None:
        """:class:`Unavailable` when the library is missing or lacks a function of libbpf 1.x."""
        try:
            self._library = ctypes.CDLL(name, use_errno=True)
            for function, (result, arguments) in _FUNCTIONS.items():
                pointer = getattr(self._library, function)
                pointer.restype, pointer.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            raise Unavailable(f"{name} can't be loaded: {error}; {advice('libbpf')}") from error
        self._said: deque[str] = deque(maxlen=200)
        self._print = _PRINT(self._keep)  # libbpf may call it at any time: it must live as long as this object
        self._format = ctypes.CDLL(None).vsnprintf
        self._format.argtypes = (c_char_p, c_size_t, c_char_p, c_void_p)
        self._library.libbpf_set_print(ctypes.cast(self._print, c_void_p))

    def _keep(self, level: int, form: bytes, arguments: int) -> int:
        # a va_list is passed as a pointer on every 64-bit architecture on which Linux has BPF
        if level == _WARN:
            buffer = ctypes.create_string_buffer(4096)
            self._format(buffer, len(buffer), form, arguments)
            lines = buffer.value.decode("utf-8", "replace").splitlines()
            self._said.extend(line.removeprefix("libbpf: ").strip() for line in lines)
        return 0

    def call(self, function: str, *arguments: object) -> int:
        """Call a function that returns a pointer or ``-errno``; :class:`BpfError` for NULL or a negative result."""
        self._said.clear()
        ctypes.set_errno(0)
        result = getattr(self._library, function)(*arguments)
        if result is None or result < 0:
            number = ctypes.get_errno() if result is None else -result
            for line in self._said:
                _log.debug("libbpf: %s", line)
            raise BpfError(function, number, self._said)
        return int(result)

    def forget(self, function: str, pointer: int) -> None:
        """Call a function that frees ``pointer``."""
        getattr(self._library, function)(pointer)

    def parameters_of(self, typedef: str) -> int | None:
        """Number of parameters of a function-pointer typedef in this kernel; ``None``: it has no such typedef."""
        btf = self.call("btf__load_vmlinux_btf")
        try:
            number = self.call("btf__find_by_name_kind", btf, typedef.encode(), _TYPEDEF)
            for _ in ("typedef", "pointer"):
                number = self._type(btf, number).type
            return int(self._type(btf, number).info & 0xFFFF)
        except BpfError:
            return None
        finally:
            self.forget("btf__free", btf)

    def _type(self, btf: int, number: int) -> _BtfType:
        return _BtfType.from_address(self.call("btf__type_by_id", btf, number))

    def may_call(self) -> bool:
        """Whether this process may make the system call bpf(2) at all: the kernel then misses the file."""
        try:
            self.call("bpf_obj_get", b"/proc/self/none")
        except BpfError as error:
            return error.errno != errno.EPERM
        return True


class BpfObject:
    """One object file: opened, adjusted, loaded, attached. Closing it removes everything from the kernel."""

    def __init__(self, library: Library, image: bytes) -> None:
        self._library, self._image = library, image  # libbpf reads from the image until it has loaded it
        self._object: int | None = library.call("bpf_object__open_mem", image, len(image), None)
        self._links: list[int] = []

    def set_entries(self, name: str, entries: int) -> None:
        """Set a map's size, before loading."""
        self._library.call("bpf_map__set_max_entries", self._map(name), entries)

    def set_constants(self, image: bytes) -> None:
        """Set the content of ``.rodata``, before loading."""
        self._library.call("bpf_map__set_initial_value", self._map(".rodata"), image, len(image))

    def skip(self, program: str) -> None:
        """Do not load this program."""
        self._library.call("bpf_program__set_autoload", self._program(program), False)

    def load(self) -> None:
        self._library.call("bpf_object__load", self._object)

    def attach(self, programs: Iterable[str]) -> None:
        """Start the programs, each attached as its section says."""
        for name in programs:
            self._links.append(self._library.call("bpf_program__attach", self._program(name)))

    def mapped(self, name: str, length: int, *, writable: bool = False) -> mmap.mmap:
        """A map's memory, shared with the kernel. It remains valid after :meth:`close`."""
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        return mmap.mmap(self._library.call("bpf_map__fd", self._map(name)), length, access=access)

    def program_fd(self, name: str) -> int:
        return self._library.call("bpf_program__fd", self._program(name))

    def close(self) -> None:
        """Detach and unload; mapped memory stays readable."""
        while self._links:
            self._library.forget("bpf_link__destroy", self._links.pop())
        if self._object is not None:
            self._library.forget("bpf_object__close", self._object)
            self._object = None

    def _map(self, name: str) -> int:
        return self._library.call("bpf_object__find_map_by_name", self._object, name.encode())

    def _program(self, name: str) -> int:
        return self._library.call("bpf_object__find_program_by_name", self._object, name.encode())
