"""A guest that runs: booted, asked, given faults. Emulated, no KVM: a boot takes a minute or two."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lab import hardware, image, iscsi
from lab.ses import Enclosure
from support.debian_host import BASES
from support.ports import free_port
from support.scraped import Scrape

T = TypeVar("T")
BOOTS_WITHIN_S = 1800.0
ANSWERS_WITHIN_S = 300.0
DAEMON = "127.0.0.1:10047"
INSIDE = "/lab"  # where QEMU's tree sees .debian/

# The guest's firmware and processor do not say that they are emulated: the daemon asks a hypervisor's disks less.
_MACHINE = (
    "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off,-svm",
    "-smp", "2,sockets=2,cores=1", "-m", f"{hardware.MEMORY_MIB}M", "-nodefaults", "-no-user-config",
    "-display", "none", "-smbios", "type=0,vendor=Lab", "-smbios", "type=1,manufacturer=Lab,product=Bench",
    "-smbios", "type=2,manufacturer=Lab", "-smbios", "type=3,manufacturer=Lab",
    "-device", "virtio-rng-pci,bus=pcie.0",
)  # fmt: skip
_KERNEL = (
    "root=/dev/vda rw console=ttyS0 systemd.show_status=0 mitigations=off audit=0 "
    "systemd.default_timeout_start_sec=1800 udev.event_timeout=1800"  # a busy machine gives a guest little
)
_SSH = (
    "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=60",
    "ServerAliveInterval=20",
)  # fmt: skip
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class GuestError(Exception):
    """The guest did not do what a row needs; says what, in one line."""


class NoAnswer(GuestError):
    """The daemon did not answer, where the guest did."""


@dataclass(frozen=True, slots=True)
class Guest:
    """One running guest: ``folder`` has its disks, its monitor and its console's log."""

    suite: str
    folder: Path
    port: int
    enclosure: Enclosure

    def run(self, command: str, *, check: bool = True, timeout_s: float = ANSWERS_WITHIN_S) -> str:
        """Standard output of a shell command inside, as root. GuestError when it fails or takes too long."""
        try:
            done = subprocess.run(
                [*self.client("ssh", "-p"), "root@127.0.0.1", command], stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise GuestError(f"no answer within {timeout_s:.0f} s: {command}") from None
        if check and done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()[-1:]
            raise GuestError(f"exit {done.returncode}: {' '.join(command.split())[:80]} …: {' '.join(said)}")
        return done.stdout

    def json(self, command: str) -> Any:
        """What a command inside prints as JSON."""
        return json.loads(self.run(command))

    def value(self, path: str) -> str:
        """A file of one line inside, as in /sys."""
        return self.run(f"cat {shlex.quote(path)}").strip()

    def put(self, source: Path, target: str, *, timeout_s: float = ANSWERS_WITHIN_S) -> None:
        """Copy a file or folder into the guest. GuestError when that fails."""
        argv = [*self.client("scp", "-P"), "-q", "-r", str(source), f"root@127.0.0.1:{target}"]
        try:
            subprocess.run(argv, stdin=subprocess.DEVNULL, check=True, timeout=timeout_s)
        except subprocess.SubprocessError as error:
            raise GuestError(f"{source.name} can't be copied: {error}") from None

    def scrape(self, address: str = DAEMON) -> Scrape:
        """What the daemon inside exposes now."""
        return Scrape.of_text(self.get("/metrics?profile=full", address))

    def get(self, path: str, address: str = DAEMON) -> str:
        """What the daemon inside answers to a GET, over SSH's own forwarding: that costs the guest no process.
        NoAnswer for anything but 200."""
        request = f"GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n"
        argv = [*self.client("ssh", "-p"), "-W", address, "root@127.0.0.1"]
        try:
            done = subprocess.run(
                argv, input=request.encode(), capture_output=True, timeout=ANSWERS_WITHIN_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"no answer within {ANSWERS_WITHIN_S:.0f} s: {path}") from None
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        status = head.split(b"\r\n")[0].decode(errors="replace")
        if status.split()[1:2] != ["200"]:
            raise NoAnswer(f"{path}: {status or done.stderr.decode(errors='replace').strip() or 'nothing'}")
        return body.decode()

    @contextmanager
    def forwarded(self) -> Iterator[str]:
        """The daemon inside as ``host:port`` of this machine. The connection is one of its own."""
        port = free_port()
        argv = [*self.client("ssh", "-p"), "-S", "none", "-N", "-L", f"{port}:{DAEMON}", "root@127.0.0.1"]
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(argv, stdin=nothing, stdout=nothing, stderr=nothing)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=60)

    def disk(self, serial: str) -> str:
        """The kernel's name of the disk, ``sda``; of the first path where it has several."""
        for line in self.run("lsblk --nodeps --noheadings --output NAME,SERIAL").splitlines():
            name, _, found = line.partition(" ")
            if found.strip() == serial:
                return name
        raise GuestError(f"the guest has no disk {serial}")

    def monitor(self, command: str) -> str:
        """A line of QEMU's human monitor, and what it says. GuestError when it says that something is wrong."""
        said = str(self.qmp("human-monitor-command", **{"command-line": command})).strip()
        if "rror" in said or "not found" in said:
            raise GuestError(f"{command}: {said}")
        return said

    def qmp(self, execute: str, **arguments: object) -> object:
        """One command of QEMU's machine protocol, and its return value. GuestError when QEMU refuses it."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(str(self.folder / "qmp"))
            with sock.makefile("rw") as stream:
                stream.readline()
                for request in ({"execute": "qmp_capabilities"}, {"execute": execute, "arguments": arguments}):
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    while "event" in (answer := json.loads(stream.readline())):
                        pass
                    if "error" in answer:
                        raise GuestError(f"{execute}: {answer['error']['desc']}")
        return answer["return"]

    def until(self, look: Callable[[], T], done: Callable[[T], bool], *, within_s: float) -> T:
        """What ``look`` finds as soon as ``done`` holds of it, or at the end of the time."""
        deadline = time.monotonic() + within_s
        while not done(found := look()) and time.monotonic() < deadline:
            time.sleep(1)
        return found

    def reboot(self) -> None:
        """Have its systemd restart it, and wait for SSH. GuestError when it does not come back."""
        before = self.value(_BOOT_ID)
        self.run("systemctl reboot", check=False)
        # no end of the shared connection may arrive: the next command would wait for an answer over it
        subprocess.run([*self.client("ssh", "-p"), "-O", "exit", "root@127.0.0.1"], capture_output=True, check=False)

        def again() -> bool:
            with contextlib.suppress(GuestError):
                return self.run(f"cat {_BOOT_ID}", timeout_s=90).strip() != before
            return False

        if not self.until(again, bool, within_s=BOOTS_WITHIN_S):
            raise GuestError(f"not back {BOOTS_WITHIN_S:.0f} s after a reboot; its console: {self.folder}/console")

    def client(self, program: str, port: str) -> list[str]:
        """``ssh`` or ``scp`` and the options that lead into the guest."""
        options = [word for setting in (*_SSH, f"ControlPath={self.folder}/ssh") for word in ("-o", setting)]
        return [program, "-F", "none", "-i", str(image.key()), port, str(self.port), *options]


@contextmanager
def booted(suite: str, deb: Path) -> Iterator[Guest]:
    """A fresh guest with the package installed: its disks are empty, and what it writes is gone at the next one."""
    tree = image.qemu()
    folder = BASES / f"lab-run-{suite}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    image.image(suite, deb, folder)
    for disk in hardware.DISKS:
        with (folder / f"{disk.serial}.raw").open("wb") as file:
            file.truncate(1 << 30)
    guest = Guest(suite, folder, free_port(), Enclosure(hardware.ENCLOSURE, hardware.SLOTS))
    with iscsi.target(guest.enclosure.answer) as port, _qemu(tree, guest, port) as process:
        _wait(guest, process)
        with _connection(guest):
            yield guest


@contextmanager
def _connection(guest: Guest) -> Iterator[None]:
    """One connection that all later commands share: to make one costs an emulated processor seconds. When a reboot
    ends it, there is a new one as soon as the guest answers."""
    argv = [*guest.client("ssh", "-p"), "-o", "ControlMaster=yes", "-N", "root@127.0.0.1"]
    again = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", 'while :; do "$@"; sleep 1; done', "sh", *argv]
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(again, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)


@contextmanager
def _qemu(tree: Path, guest: Guest, enclosure: int) -> Iterator[subprocess.Popen[bytes]]:
    here = f"{INSIDE}/{guest.folder.name}"
    argv = [
        "qemu-system-x86_64", "-name", guest.folder.name, *_MACHINE,
        "-kernel", f"{here}/vmlinuz", "-initrd", f"{here}/initrd", "-append", _KERNEL,
        "-drive", f"file={here}/disk.raw,if=none,id=root,format=raw,cache=unsafe",
        "-device", "virtio-blk-pci,bus=pcie.0,drive=root,serial=ROOT,addr=0x2",
        "-netdev", f"user,id=mgmt,restrict=on,hostfwd=tcp:127.0.0.1:{guest.port}-:22",
        "-device", f"virtio-net-pci,bus=pcie.0,netdev=mgmt,mac={image.MANAGEMENT_MAC},addr=0x3",
        "-serial", f"file:{here}/console", "-qmp", f"unix:{here}/qmp,server,nowait",
        *hardware.arguments(here),
        "-drive", f"file=iscsi://127.0.0.1:{enclosure}/{iscsi.NAME}/0,if=none,id=enclosure,format=raw",
        "-device", "scsi-generic,bus=sas.0,scsi-id=2,drive=enclosure",
    ]  # fmt: skip
    script = (
        f"mount --make-rprivate / && mkdir -p {tree}{INSIDE} && mount --bind {BASES} {tree}{INSIDE} && "
        f"mount -t proc proc {tree}/proc && mount --bind /dev {tree}/dev && "
        f"exec chroot {tree} {shlex.join(argv)}"
    )
    # --pdeathsig: it ends with this process, however that ends
    guarded = ["setpriv", "--pdeathsig", "KILL", "unshare", "-m", "sh", "-c", script]
    with (guest.folder / "qemu.log").open("wb") as log:
        process = subprocess.Popen(guarded, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)


def _wait(guest: Guest, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + BOOTS_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            said = (guest.folder / "qemu.log").read_text(errors="replace").strip()[-500:]
            raise GuestError(f"QEMU ended: {said}")
        with contextlib.suppress(GuestError):
            guest.run("true", timeout_s=90)
            return
        time.sleep(1)
    raise GuestError(f"no SSH after {BOOTS_WITHIN_S:.0f} s; its console: {guest.folder}/console")
