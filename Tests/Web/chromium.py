# SPDX-License-Identifier: Apache-2.0
"""Chromium without a screen, driven by its DevTools protocol over two pipes: no port, no driver, no package beside
Debian's chromium.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

DEADLINE = 20.0


class DevToolsError(Exception):
    """What the browser refused, what a script threw, or a condition that did not come about in time."""


def find() -> str | None:
    """Where the browser is, if there is one."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


class Browser:
    """One browser, without any state of its user's. Ends with `close`."""

    def __init__(self, program: str, directory: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self.directory = directory
        arguments = [
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={directory / 'profile'}",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-extensions",
            "--disable-component-update",
            "--disable-background-networking",
            "--disable-gpu",
            "--hide-scrollbars",
            "--mute-audio",
            "--password-store=basic",
            # Its own sandbox needs a user that is not root, and rights that containers don't give.
            "--no-sandbox",
            "about:blank",
        ]
        # It reads from descriptor 3 and writes to 4; the shell gives them those numbers, whatever they are here.
        shuffle = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        with open(directory / "browser.log", "wb") as log:
            self._process = subprocess.Popen(
                ["/bin/bash", "-c", shuffle, program, *arguments],
                pass_fds=(to_browser, from_browser),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ, "HOME": str(directory), "PULSE_RUNTIME_PATH": str(directory),
                    "DBUS_SESSION_BUS_ADDRESS": "disabled:",
                },
            )
        os.close(to_browser)
        os.close(from_browser)
        self._number = 0
        self._buffer = b""
        self._replies: dict[int, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        """What the browser told and nobody has asked about yet."""

    def close(self) -> None:
        try:
            self.call("Browser.close", deadline=5)
        except (DevToolsError, OSError):
            pass
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(
        self, method: str, session: str | None = None, deadline: float = DEADLINE, **params: Any
    ) -> dict[str, Any]:
        return self.answer(self.begin(method, session, **params), method, deadline)

    def begin(self, method: str, session: str | None = None, **params: Any) -> int:
        """Asks without waiting; the number under which the answer comes."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        return number

    def answer(self, number: int, method: str, deadline: float = DEADLINE) -> dict[str, Any]:
        until = time.monotonic() + deadline
        while number not in self._replies:
            self.read(until, method)
        reply = self._replies.pop(number)
        if "error" in reply:
            raise DevToolsError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def read(self, until: float, what: str) -> None:
        """Takes what the browser says next."""
        readable, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
        if not readable:
            raise DevToolsError(f"no answer in time: {what}")
        data = os.read(self._in, 1 << 20)
        if not data:
            log = (self.directory / "browser.log").read_text(errors="replace").splitlines()
            raise DevToolsError("the browser has ended: " + " / ".join(log[-5:]))
        *messages, self._buffer = (self._buffer + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._replies[message["id"]] = message
            else:
                self.events.append(message)

    def page(
        self, width: int = 1280, height: int = 800, dark: bool = True, touch: bool = False, scale: float = 1
    ) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.look(width, height, dark, touch, scale)
        return page


class Page:
    """One page: what it is told, what a person would do, and what is seen."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self.browser, self._target, self._session = browser, target, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, session=self._session, **params)

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self._target)
        self.browser.events.clear()

    def look(self, width: int, height: int, dark: bool = True, touch: bool = False, scale: float = 1) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=touch
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch, maxTouchPoints=2)

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def evaluate(self, script: str, deadline: float = DEADLINE) -> Any:
        """What a script, or the promise that it makes, comes to."""
        reply = self.browser.call(
            "Runtime.evaluate",
            session=self._session,
            deadline=deadline,
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            raise DevToolsError(details.get("exception", {}).get("description") or details["text"])
        return reply["result"].get("value")

    def wait(self, condition: str, deadline: float = DEADLINE) -> Any:
        """Waits until a condition holds of what the page shows, looking whenever it is drawn; its value."""
        script = f"""new Promise((resolve, reject) => {{
            const until = performance.now() + {deadline * 1000}
            const look = () => {{
                let value
                try {{ value = ({condition}) }} catch {{ value = undefined }}
                if (value) resolve(value)
                else if (performance.now() > until) reject(new Error(
                    "it did not come about: " + {json.dumps(condition)} + "; the page says: "
                    + document.body?.innerText.slice(0, 600)))
                else requestAnimationFrame(look)
            }}
            look()
        }})"""
        until = time.monotonic() + deadline
        while True:
            try:
                return self.evaluate(script, deadline + 5)
            except DevToolsError as error:
                # The page that was to be looked at was left for the next one meanwhile.
                if time.monotonic() > until or not any(
                    word in str(error) for word in ("navigated", "context was destroyed", "Cannot find")
                ):
                    raise

    def screenshot(self, path: Path | None = None, of: str | None = None, form: str = "png", **more: Any) -> bytes:
        """What is seen of the page, or of one of its elements."""
        clip = {}
        if of:
            box = self.box(of)
            clip = {"clip": {**box, "scale": 1}}
        data = base64.b64decode(self.call("Page.captureScreenshot", format=form, **clip, **more)["data"])
        if path:
            path.write_bytes(data)
        return data

    def box(self, selector: str) -> dict[str, float]:
        """Where an element is: x, y, width and height in the page's pixels, as soon as the page is drawn: without its
        styles all lies elsewhere.
        """
        return self.evaluate(
            f"new Promise(requestAnimationFrame).then(() => {{ const {{x, y, width, height}} = "
            f"document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return {x, y, width, height} })"
        )

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'nearest'}})")
        box = self.box(selector)
        self.press(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def press(self, x: float, y: float, times: int = 1) -> None:
        """Presses the mouse at a place, so many times."""
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def tap(self, *fingers: tuple[float, float], times: int = 1) -> None:
        """Taps with a finger, or several at once, so many times, as quickly as the page takes it: what is slow is no
        tap.
        """
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(fingers)]
        steps = [("touchStart", count) for count in range(1, len(points) + 1)]
        steps += [("touchEnd", count) for count in range(len(points) - 1, -1, -1)]
        method = "Input.dispatchTouchEvent"
        begun = [
            self.browser.begin(method, self._session, type=kind, touchPoints=points[:count])
            for kind, count in steps * times
        ]
        for number in begun:
            self.browser.answer(number, method)

    def key(self, key: str) -> None:
        text: dict[str, Any] = {"text": key} if len(key) == 1 else {}
        if key == "Escape":
            text["windowsVirtualKeyCode"] = 27
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" or key == "Escape" else {})
            )

    def told(self) -> list[dict[str, Any]]:
        """What the browser told of this page, up to now."""
        self.evaluate("0")
        return [event for event in self.browser.events if event.get("sessionId") == self._session]

    def forget(self) -> None:
        """What it told is looked at no more."""
        self.evaluate("0")
        self.browser.events.clear()

    def complaints(self) -> list[str]:
        """What was wrong in the page, by its console: errors, warnings, exceptions, and what did not load.

        The browser drops what is under way when an interface of the machine comes or goes, whoever's that is; the page
        begins anew then.
        """
        told = [text for event in self.told() if (text := complaint(event["method"], event["params"]))]
        return [text for text in told if "ERR_NETWORK_CHANGED" not in text]


def complaint(method: str, params: dict[str, Any]) -> str | None:
    if method == "Runtime.exceptionThrown":
        details = params["exceptionDetails"]
        return details.get("exception", {}).get("description") or details["text"]
    if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
        return " ".join(str(each.get("value", each.get("description", ""))) for each in params["args"])
    if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
        return f"{params['entry']['text']} {params['entry'].get('url', '')}"
    return None
