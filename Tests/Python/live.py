"""What tests against a real bus share: the bus has two virtual cameras (with_bus.py starts one), and every reply is
held against Protocol/schema on the way. Only virtual devices are changed.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
import unittest
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping
from unittest import mock

import camerabus
import vectors
from camerabus import CaptureError, Client, Device
from camerabus.core import Core, Reply
from camerabus.steps import Steps

try:
    from jsonschema import Draft202012Validator
except ImportError:
    Draft202012Validator = None
try:
    from PIL import Image
except ImportError:
    Image = None  # type: ignore[assignment]
try:
    from picture_counter import read_luma
except ImportError:
    read_luma = None

RUNTIME_DIR = os.environ.get("CAMERABUS_RUNTIME_DIR", "")
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 30.0

HOLDER = """
import signal, sys
from camerabus import Client
client = Client(name="holder")
lock = client.lock(*sys.argv[1:])
print("held", flush=True)
signal.pause()
"""



class Checker:
    """Holds replies against the schemas of their methods."""

    ANY = {"invalidParams", "unauthorized", "limitExceeded", "internalError", "shuttingDown", "methodNotFound"}

    def __init__(self) -> None:
        has_schema = (vectors.PROTOCOL / "schema" / "methods.json").is_file() and Draft202012Validator is not None
        schema = vectors.methods() if has_schema else {"$defs": {}, "methods": {}}
        self.methods = schema["methods"]
        self.validators = {
            name: Draft202012Validator({"$defs": schema["$defs"], **method["result"]})
            for name, method in self.methods.items()
        }
        self.shapes = {
            name: Draft202012Validator({"$defs": schema["$defs"], **shape}) for name, shape in schema["$defs"].items()
        }
        self.reasons = (
            {name: Draft202012Validator(shape) for name, shape in vectors.errors().items()} if has_schema else {}
        )
        self.problems: list[str] = []
        self._request = Core._request

    def request(
        self, core: Core, method: str, params: Mapping[str, Any] | None, until: float, key: str | None
    ) -> Steps[Reply]:
        try:
            reply = yield from self._request(core, method, params, until, key)
        except CaptureError as error:
            known = self.ANY | set(self.methods.get(method, {}).get("errors", []))
            if method in self.methods and not isinstance(error, camerabus.ClientError):
                if error.reason not in known:
                    self.problems.append(f"{method} refused with {error.reason}, which its schema does not name")
                if error.reason in self.reasons:
                    data = {**error.data, "reason": error.reason}
                    found = self.reasons[error.reason].iter_errors(data)
                    self.problems += [f"{method}, {error.reason}: {each.json_path}: {each.message}" for each in found]
            raise
        if method in self.validators:
            self.problems += [
                f"{method}: {each.json_path}: {each.message}"
                for each in self.validators[method].iter_errors(reply.result)
            ]
        return reply

    def check(self, shape: str, value: Any) -> None:
        if shape in self.shapes:
            self.problems += [
                f"{shape}: {each.json_path}: {each.message}" for each in self.shapes[shape].iter_errors(value)
            ]


@unittest.skipUnless(RUNTIME_DIR, "no bus is named by $CAMERABUS_RUNTIME_DIR")
class LiveTestCase(unittest.TestCase):
    def setUp(self) -> None:
        self.checker = checker = Checker()
        patch = mock.patch.object(Core, "_request", lambda core, *arguments: checker.request(core, *arguments))
        patch.start()
        self.addCleanup(lambda: self.assertEqual(checker.problems, []))
        self.addCleanup(patch.stop)
        self.client = Client(name="a live test", timeout=TIMEOUT)
        self.addCleanup(self.client.close)
        self.cameras = [device.id for device in self.client.devices("video") if device.driver == "virtual"]
        if len(self.cameras) < 2:
            self.skipTest("the bus has no two virtual cameras")
        self.first, self.second = self.cameras[:2]

    def streaming(self, device: str) -> None:
        """Waits until it is. A subscription is in force before its stream is: what is sent until then is for nobody."""
        topic = f"state/device/{device}/"
        with self.client.mirror(topic) as mirror:
            mirror.wait(lambda state: state[topic]["isStreaming"], TIMEOUT)

    @contextmanager
    def camera(self, name: str, size: tuple[int, int], picture: Callable[[int], bytes], fps: int) -> Iterator[str]:
        """A source of JPEG that sends picture(n) as its frame n, at that rate."""
        source = self.client.create_source(name, *size, "jpeg", fps=fps)
        over = threading.Event()

        def send() -> None:
            for number in itertools.count():
                if over.wait(1 / fps):
                    return
                source.send(picture(number))

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield source.device
        finally:
            over.set()
            thread.join()
            source.close()

    def sent_and_seen(self, source: camerabus.Source, pixels: Any, rendition: str = "native") -> camerabus.Frame:
        with self.client.frames(source.device, rendition=rendition, limit=1, timeout=TIMEOUT) as frames:
            return next(self.while_sending(frames, lambda _, now: source.send(pixels, timestamp=now)))

    def while_sending(self, found: Any, send: Callable[[int, int], Any]) -> Iterator[Any]:
        """What comes while somebody sends, 30 times a second: a stream that is just beginning takes no frame."""
        ends = threading.Event()

        def run() -> None:
            for number in range(1, 30 * int(TIMEOUT)):
                send(number, time.monotonic_ns())
                if ends.wait(1 / 30):
                    return

        sender = threading.Thread(target=run)
        sender.start()
        try:
            yield from found
        finally:
            ends.set()
            sender.join()

    def environment(self) -> dict[str, str]:
        package = str(ROOT / "Protocol" / "python")
        return {**os.environ, "PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}"}

    def holder(self, *devices: str) -> subprocess.Popen[str]:
        """Another process that holds a lock until it is killed."""
        command = [sys.executable, "-c", HOLDER, *devices]
        process = subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        # The bus learns a moment later that it is gone; the next test is not to find its lock.
        self.addCleanup(self.free, *devices)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, TIMEOUT)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "held\n")
        return process

    def free(self, *devices: str) -> None:
        """Waits until nobody has them."""
        self.client.lock(*devices, wait=TIMEOUT).release()

    def without_lock(self, *devices: str) -> list[Device]:
        return [self.client.device(name) for name in devices]
