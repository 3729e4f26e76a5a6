"""A real browser without a window, driven by its DevTools protocol over a pipe: https://chromedevtools.github.io/devtools-protocol/

Chromium reads commands from descriptor 3 and writes answers and events to descriptor 4, JSON with a NUL behind each
(``--remote-debugging-pipe``): no port, no WebSocket, and it ends when the pipe does.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .programs import need

WITHIN_S = 60.0
"""For an answer, on a busy machine too."""
_FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--mute-audio", "--font-render-hinting=none",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # it must not talk to anybody else
)  # fmt: skip


class Page:
    """One tab. ``requests``: every URL it asked for; ``complaints``: what it wrote to its console, and its errors."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self.target = browser, session, target
        self.requests: list[str] = []
        self.complaints: list[str] = []
        for domain in ("Page", "Network", "Runtime", "Log", "Accessibility"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer."""
        return self._browser.send(method, parameters, self._session)

    def open(self, url: str, *, width: int, dark: bool = False, height: int = 900) -> None:
        """Load ``url`` in a window of that size, as a phone below 600 pixels, and wait until it is drawn."""
        phone = width < 600
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self._browser.loaded.discard(self._session)
        answer = self.send("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        self._browser.wait(lambda: self._session in self._browser.loaded)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; promises are waited for."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """A key, down and up; ``text`` is what it types."""
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                nativeVirtualKeyCode=code, text=text if kind == "keyDown" else "",
            )  # fmt: skip

    def close(self) -> None:
        """Close the tab."""
        self._browser.send("Target.closeTarget", {"targetId": self.target})

    def screenshot(self, file: Path, *, whole: bool = True) -> None:
        """A PNG of the whole page, or of what is in view."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def accessibility(self) -> list[Mapping[str, Any]]:
        """The nodes that assistive software is told of."""
        nodes: list[Mapping[str, Any]] = self.send("Accessibility.getFullAXTree")["nodes"]
        return [node for node in nodes if not node["ignored"]]

    def hear(self, method: str, parameters: Mapping[str, Any]) -> None:
        """Take note of an event."""
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Runtime.consoleAPICalled":
                self.complaints.append(f"console: {parameters['args']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(f"exception: {parameters['exceptionDetails']}")
            case "Log.entryAdded":
                entry = parameters["entry"]
                self.complaints.append(f"log: {entry['text']} {entry.get('url', '')}".rstrip())


class Browser:
    """The process and its pipe."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, come_from: int) -> None:
        self._process, self._to, self._from = process, to, come_from
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._received = b""
        self._pages: dict[str, Page] = {}
        self.loaded: set[str] = set()

    def page(self) -> Page:
        """A new tab."""
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        made = self._pages[session] = Page(self, session, target)
        return made

    def send(self, method: str, parameters: Mapping[str, Any], session: str = "") -> dict[str, Any]:
        """One command and its answer; an error is a failure."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": dict(parameters)}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        self.wait(lambda: number in self._answers)
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return dict(answer["result"])

    def wait(self, until: Any) -> None:
        """Take in what the browser says until something is so."""
        deadline = time.monotonic() + WITHIN_S
        with selectors.DefaultSelector() as ready:
            ready.register(self._from, selectors.EVENT_READ)
            while not until():
                left_s = deadline - time.monotonic()
                assert left_s > 0, f"the browser did not answer within {WITHIN_S:g} s"
                if ready.select(left_s):
                    part = os.read(self._from, 1 << 16)
                    assert part, f"the browser ended: {self._process.poll()}"
                    self._take(part)

    def _take(self, part: bytes) -> None:
        *messages, self._received = (self._received + part).split(b"\0")
        for each in messages:
            message = json.loads(each)
            if "id" in message:
                self._answers[message["id"]] = message
                continue
            session = message.get("sessionId", "")
            if message["method"] == "Page.loadEventFired":
                self.loaded.add(session)
            if session in self._pages:
                self._pages[session].hear(message["method"], message["params"])


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Started with a profile of its own, ended afterwards; without Chromium the test is skipped."""
    program = need("chromium")
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="plumbline-browser-", ignore_cleanup_errors=True) as profile:
        # root has no sandbox to go into; what it opens is our own page
        flags = [*_FLAGS, f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        # the shell puts the pipes where Chromium looks for them, and becomes it
        script = f'exec "$@" 3<&{to_read} 4>&{from_write}'
        argv = ["bash", "-c", script, "bash", program, *flags, "about:blank"]
        environment = {**os.environ, "HOME": profile}
        with subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
            pass_fds=(to_read, from_write), start_new_session=True,
        ) as process:  # fmt: skip
            os.close(to_read)
            os.close(from_write)
            started = Browser(process, to_write, from_read)
            try:
                yield started
            finally:
                with contextlib.suppress(OSError, AssertionError):
                    started.send("Browser.close", {})
                os.close(to_write)
                os.close(from_read)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
