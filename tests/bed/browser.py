"""A real browser for tests of pages: Chromium without a window, driven by the DevTools protocol through a pipe.

The protocol needs no server, no port and no further package: messages are JSON, each followed by a zero byte, on file
descriptors 3 (to the browser) and 4 (from it). Sources: https://chromedevtools.github.io/devtools-protocol/ and
`--remote-debugging-pipe` in content/browser/devtools/devtools_pipe_handler.cc of Chromium.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_WAIT_S = 60.0


def missing_browser() -> str:
    """Why no page can be opened here; empty where it can."""
    if any(shutil.which(name) for name in PROGRAMS):
        return ""
    return "Chromium is not installed (tests/install-tools.sh installs it where it may)"


class BrowserError(RuntimeError):
    """The browser refused something, or did not answer."""


class Page:
    """One tab. Whatever it logs, requests or throws is kept."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.messages: list[str] = []
        """What the page wrote to its console, exceptions and violations of its policy included."""
        self.requests: list[str] = []
        """Addresses that were asked for."""
        self._loaded = False

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, parameters, self)

    def open(self, path: Path) -> None:
        """Load a file, and wait until it is there."""
        self._loaded = False
        answer = self.call("Page.navigate", url=path.resolve().as_uri())
        if "errorText" in answer:
            raise BrowserError(f"{path}: {answer['errorText']}")
        self._browser.wait(lambda: self._loaded, f"{path} to load")

    def front(self) -> None:
        """Make it the tab that is seen: others neither draw nor take clicks."""
        self.call("Page.bringToFront")

    def script(self, expression: str) -> Any:
        """The value of an expression on the page; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """A real click in the middle of what is seen of an element."""
        x, y = self._middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """The pointer over an element, at a share of its width and height."""
        x, y = self._middle(selector, across, down)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """The window; a phone's has touch and tells its own width."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def media(self, *, kind: str = "screen", scheme: str = "light") -> None:
        """Screen or print, and what the reader's system prefers."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def picture(self, file: Path, *, whole: bool = False, selector: str = "") -> None:
        """A screenshot: what is seen, the whole page, or one element."""
        clip = {}
        if selector:
            box = self.script(
                f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                " return {x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height} })()"
            )
            clip = {"clip": box | {"scale": 1}}
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole or bool(selector), **clip)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b64decode(answer["data"]))

    def pdf(self) -> bytes:
        return b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def heard(self, method: str, about: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Log.entryAdded":
            self.messages.append(about["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(each.get("value", each)) for each in about["args"]))
        elif method == "Runtime.exceptionThrown":
            self.messages.append(str(about["exceptionDetails"]))

    def _middle(self, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
        found = self.script(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            " e.scrollIntoView({block: 'center', inline: 'center'}); const b = e.getBoundingClientRect();"
            f" return [b.x + b.width * {across}, b.y + b.height * {down}] }})()"
        )
        if found is None:
            raise BrowserError(f"there is no {selector} on the page")
        return found[0], found[1]


class Browser:
    """One process; every page is a tab of it."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._rest = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}

    def page(self) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        return page

    def call(self, method: str, parameters: dict[str, Any], page: Page | None = None) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if page is not None:
            message["sessionId"] = page._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        self.wait(lambda: number in self._answers, f"an answer to {method}")
        answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait(self, done: Any, what: str) -> None:
        """Read messages until something holds."""
        deadline = time.monotonic() + _WAIT_S
        while not done():
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._back], [], [], max(0.0, left))
            part = os.read(self._back, 2**20) if ready else b""
            if not part:
                raise BrowserError(f"no {what} after {_WAIT_S:.0f} s" if left <= 0 else "the browser has ended")
            *messages, self._rest = (self._rest + part).split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
        elif message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]].heard(message["method"], message["params"])


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    program = next(path for name in PROGRAMS if (path := shutil.which(name)))
    read_command, write_command = os.pipe()
    read_answer, write_answer = os.pipe()
    # The script gives the pipes the numbers that Chromium reads and writes.
    arguments = [
        "bash", "-c", f'exec "$0" "$@" 3<&{read_command} 4>&{write_answer}', program,
        "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
        "--disable-default-apps", "--no-default-browser-check", "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder}", "about:blank",
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "TZ": "UTC"}
    process = subprocess.Popen(
        arguments, pass_fds=(read_command, write_answer), env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(read_command)
    os.close(write_answer)
    running = Browser(process, write_command, read_answer)
    try:
        yield running
        running.call("Browser.close", {})
    finally:
        os.close(write_command)
        os.close(read_answer)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
