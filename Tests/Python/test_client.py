"""Requests, replies and finding the bus."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import shutil
import socket
import tempfile
import threading
import unittest
import warnings
from fractions import Fraction
from pathlib import Path
from unittest import mock

import camerabus
from camerabus import (
    BusGone, BusNotRunning, BusTimeout, CaptureError, Client, DeviceBusy, DeviceNotFound, NotKept, errors,
)
from camerabus.sessions import wishes
from fake_bus import NO_REPLY, BusTestCase, device_value


class Calls(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.client = Client(self.bus.directory, name="test", timeout=5)
        self.addCleanup(self.client.close)

    def test_a_session_tells_what_it_costs(self) -> None:
        state = {"id": "s1", "state": "stopped", "hardwareCost": None}
        answer = {"session": "s1", "state": state, "resolved": [], "hardwareCost": 0.25, "explanation": []}
        self.bus.methods["session.create"] = lambda params: answer
        session = self.client.session("cam0")
        self.assertEqual((session.hardware_cost, session.id), (0.25, "s1"))
        assert session.state is not None
        self.assertIsNone(session.state.hardwareCost)
        self.bus.methods["session.get"] = lambda params: {
            **answer, "hardwareCost": 0.5, "state": {**state, "hardwareCost": 0.5},
        }
        told = session.refresh()
        self.assertEqual((told.hardwareCost, told.state.hardwareCost, session.hardware_cost), (0.5, 0.5, 0.5))

    def test_a_session_tells_what_could_not_be_written(self) -> None:
        answer = {"session": "s1", "state": {"id": "s1", "state": "stopped"}, "resolved": [], "explanation": []}
        self.bus.methods["session.create"] = lambda params: answer
        self.bus.methods["session.stop"] = lambda params: {**answer, "kept": False}
        self.bus.methods["session.delete"] = lambda params: {"session": "s1", "kept": params["session"] == "s2"}
        session = self.client.session("cam0")
        with self.assertWarns(NotKept):
            self.assertFalse(session.stop().kept)
        self.assertFalse(session.delete())
        self.assertTrue(session.delete())

    def test_what_could_not_be_written_is_told_once(self) -> None:
        self.bus.methods["device.rename"] = lambda params: {"device": device_value("front"), "kept": False}
        self.bus.methods["rig.delete"] = lambda params: {"kept": False}
        with self.assertWarnsRegex(NotKept, "device.rename"):
            self.assertEqual(self.client.rename("cam0", "front").id, "front")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.client.delete_rig("desk")
            self.client.devices()

    def test_says_who_it_is_and_learns_who_the_bus_is(self) -> None:
        self.assertEqual(self.bus.asked("bus.hello")[0], {"client": "test", "version": 1})
        self.assertEqual(self.client.hello.server, "CameraBus")
        self.assertEqual(self.client.hello.you["pid"], os.getpid())

    def test_devices_are_values_that_tolerate_what_is_unknown(self) -> None:
        first, second = self.client.devices()
        self.assertEqual((first.id, second.id), ("cam0", "cam1"))
        self.assertEqual(first.frameDuration, Fraction(1001, 30000))
        assert first.activeFormat is not None and first.worker is not None
        self.assertEqual(first.activeFormat.width, 4)
        self.assertEqual(first.worker.state, "running")
        self.assertIsNone(first.lock)
        self.assertEqual(first.raw["colour"], "of a later version")
        with self.assertRaises(AttributeError):
            first.name = "other"  # type: ignore[misc]

    def test_devices_are_asked_for_by_kind_and_renamed(self) -> None:
        asked: list[dict[str, object]] = []

        def answer(params: dict[str, object]) -> dict[str, object]:
            asked.append(params)
            return {"devices": [], "device": {"id": params.get("name") or "cam0"}}

        self.bus.methods["device.list"] = self.bus.methods["device.rename"] = answer
        self.assertEqual(self.client.devices(type="external", position="front"), [])
        self.assertEqual(self.client.rename("cam0", "front").id, "front")
        with self.client.lock("cam0") as lock:
            self.assertEqual(self.client.rename("cam0", None).id, "cam0")
        self.assertEqual(
            asked,
            [
                {"type": "external", "position": "front"},
                {"device": "cam0", "name": "front"},
                {"device": "cam0", "name": None, "lock": asked[2].get("lock")},
            ],
        )
        self.assertIsInstance(asked[2]["lock"], str)
        self.assertEqual(lock.token, "")

    def test_one_output_of_a_session_may_stand_by_itself(self) -> None:
        for outputs in ("preview", ["preview"]):
            self.assertEqual(wishes(None, outputs, None, 0, None, False), {"outputs": ["preview"]})
        self.assertEqual(wishes(None, {"type": "photo"}, None, 0, None, False), {"outputs": [{"type": "photo"}]})
        self.assertEqual(wishes([], [], None, 0, None, False), {"inputs": [], "outputs": []})
        self.bus.methods["session.create"] = lambda params: {
            "session": "s1", "state": {}, "resolved": [], "explanation": [],
        }
        for inputs in ((), ("cam0",)):
            self.client.session(*inputs)
        self.client.session(inputs=[])
        self.client.session(inputs=["cam1"])
        asked = [params.get("inputs") for params in self.bus.asked("session.create")]
        self.assertEqual(asked, [None, ["cam0"], [], ["cam1"]])
        with self.assertRaises(TypeError):
            self.client.session("cam0", inputs=[])

    def test_what_is_missing_is_empty(self) -> None:
        self.bus.methods["device.get"] = lambda params: {"device": {"id": "cam0"}}
        device = self.client.device("cam0")
        self.assertEqual((device.name, device.controls, device.activeFormat), ("", {}, None))

    def test_what_is_no_device_is_an_error(self) -> None:
        for result in ({"device": 7}, {}, [], None):
            self.bus.methods["device.get"] = lambda params, result=result: result
            with self.assertRaises(errors.ProtocolError):
                self.client.device("cam0")

    def test_formats_and_controls(self) -> None:
        rates = [
            {
                "minFrameDuration": "1/60", "maxFrameDuration": "1/5", "stepFrameDuration": None, "minFrameRate": 5,
                "maxFrameRate": 60,
            }
        ]
        row = {"id": "f0", "pixelFormat": "YUYV", "width": 640, "height": 480, "sizes": None, "frameRates": rates}
        self.bus.methods["device.formats"] = lambda params: {"formats": [row]}
        [format] = self.client.formats("cam0")
        self.assertEqual(
            (format.frameRates[0].maxFrameRate, format.frameRates[0].minFrameDuration), (60, Fraction(1, 60))
        )
        items = [{"index": 0, "name": "off"}, {"index": 3, "value": 50}]
        knob = {"name": "brightness", "minimum": -5, "maximum": 5, "menu": items, "flags": ["slider"], "value": 1}
        part = {"x": -4, "y": 0, "width": 640, "height": 480}
        crop = {"name": "cropRectangle", "type": "rectangle", "bounds": part, "defaultRectangle": part, "value": part}
        self.bus.methods["device.controls"] = lambda params: {"controls": [knob], "cameraControls": [crop]}
        selected = self.client.camera_controls("cam0")["cropRectangle"]
        self.assertEqual((selected.bounds, selected.defaultRectangle, selected.value), (part, part, part))
        control = self.client.controls("cam0")["brightness"]
        self.assertEqual((control.minimum, control.flags, control.dimensions), (-5, ("slider",), ()))
        self.assertEqual(
            [(item.index, item.name, item.value) for item in control.menu], [(0, "off", None), (3, None, 50)]
        )

    def test_who_uses_a_device(self) -> None:
        holder = {"uid": 1000, "gid": 1000, "pid": 7, "name": "probe"}
        self.bus.methods["device.who"] = lambda params: {
            "device": "cam0",
            "node": "/dev/video0",
            "lock": {"id": "l", "holder": holder, "fence": 3, "since": 5, "note": "a note"},
            "waiters": [{"holder": holder, "devices": ["cam0"], "note": None}],
            "subscribers": [{"uid": 1000, "pid": 7, "name": "probe", "renditions": ["native"]}],
            "foreign": [{"uid": 0, "pid": 9, "name": "ffmpeg"}],
            "complete": True,
        }
        usage = self.client.who("cam0")
        self.assertEqual((usage.lock.holder.pid, usage.lock.note, usage.waiters[0].holder.name), (7, "a note", "probe"))
        self.assertEqual(
            (usage.subscribers[0].renditions, usage.foreign[0].name, usage.complete), (("native",), "ffmpeg", True)
        )
        self.bus.methods["device.who"] = lambda params: {"device": "cam0"}
        usage = self.client.who("cam0")
        self.assertEqual(
            (usage.lock, usage.waiters, usage.subscribers, usage.foreign, usage.complete), (None, (), (), (), False)
        )

    def test_refusals_are_named_by_their_reason(self) -> None:
        self.bus.refuse("device.lock", "deviceBusy", "cam0 is locked by other.", holder={"pid": 42}, queue=2)
        with self.assertRaises(DeviceBusy) as caught:
            self.client.lock("cam0")
        self.assertEqual((caught.exception.holder, caught.exception.queue), ({"pid": 42}, 2))
        self.assertEqual((caught.exception.reason, str(caught.exception)), ("deviceBusy", "cam0 is locked by other."))
        self.assertEqual(caught.exception.data, {"holder": {"pid": 42}, "queue": 2})

    def test_every_reason_has_its_class(self) -> None:
        classes = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, CaptureError)]
        for kind in classes:
            if kind is CaptureError or issubclass(kind, errors.ClientError):
                continue
            self.assertIs(type(CaptureError.of(kind.reason)), kind)
            self.assertIn(kind.__name__, camerabus.__all__)
        self.assertEqual(len({kind.reason for kind in classes}), len(classes) - 1)  # CaptureError lends internalError

    def test_a_reason_of_a_later_bus_keeps_its_word(self) -> None:
        self.bus.refuse("bus.ping", "tooHot", celsius=91)
        with self.assertRaises(CaptureError) as caught:
            self.client.ping()
        self.assertEqual((caught.exception.reason, caught.exception.data), ("tooHot", {"celsius": 91}))

    def test_the_wire_cannot_name_this_side_s_errors(self) -> None:
        self.bus.refuse("bus.ping", "busNotRunning")
        with self.assertRaises(CaptureError) as caught:
            self.client.ping()
        self.assertNotIsInstance(caught.exception, BusNotRunning)

    def test_errors_survive_pickling(self) -> None:
        error = pickle.loads(pickle.dumps(DeviceBusy("Locked.", {"holder": {"pid": 1}})))
        self.assertEqual((type(error), error.message, error.holder), (DeviceBusy, "Locked.", {"pid": 1}))

    def test_any_method_by_name_with_a_key(self) -> None:
        self.bus.methods["photo.capture"] = lambda params: {"echo": params}
        self.assertEqual(self.client.call("photo.capture", {"device": "cam0"}, key="k1"), {"echo": {"device": "cam0"}})
        self.assertEqual(self.bus.requests[-1]["key"], "k1")

    def test_attachments_come_with_the_reply(self) -> None:
        announced = [
            {"name": "a.jpg", "contentType": "image/jpeg", "bytes": 3}, {"name": "b", "contentType": "", "bytes": 0},
        ]
        self.bus.methods["photo.capture"] = lambda params: ({"attachments": announced}, b"abc", b"")
        reply = self.client.request("photo.capture")
        self.assertEqual([bytes(item.data) for item in reply.attachments], [b"abc", b""])
        self.assertEqual(reply.attachments[0].contentType, "image/jpeg")

    def test_attachments_that_were_not_announced_are_an_error(self) -> None:
        for result in (
            ({"attachments": []}, b"x"), ({"attachments": [{"bytes": 2}]}, b"x"), ({"attachments": [{"bytes": 1}]},),
        ):
            self.bus.methods["photo.capture"] = lambda params, result=result: result
            with self.assertRaises(errors.ProtocolError):
                self.client.call("photo.capture")

    def test_a_call_has_a_deadline_and_a_late_reply_is_not_taken_for_another_s(self) -> None:
        late: list[list[bytes]] = []
        self.bus.methods["slow"] = lambda params: NO_REPLY
        with self.assertRaises(BusTimeout) as caught:
            self.client.call("slow", timeout=0.05)
        self.assertIsInstance(caught.exception, TimeoutError)
        # It may be on its way still.
        self.bus.wait_for(lambda: self.bus.asked("slow"))
        number = self.bus.requests[-1]["id"]
        self.bus.methods["next"] = lambda params: {"mine": True}
        answer = self.bus._answer

        def late_first(parts: list[bytes]) -> None:
            late.append(parts)
            body = b'{"jsonrpc":"2.0","id":%d,"result":{"mine":false}}' % number
            self.bus._command.send_multipart([*parts[: parts.index(b"") + 1], body])
            answer(parts)

        self.bus._answer = late_first  # type: ignore[method-assign]
        self.assertEqual(self.client.call("next"), {"mine": True})
        self.assertEqual(len(late), 1)

    def test_a_request_that_is_too_long_is_not_sent(self) -> None:
        before = len(self.bus.requests)
        with self.assertRaises(errors.LimitExceeded) as caught:
            self.client.call("bus.ping", {"a": "x" * 1048576})
        self.assertEqual(caught.exception.limit, "requestBytes")
        self.assertEqual(len(self.bus.requests), before)

    def test_what_is_no_json_is_not_sent(self) -> None:
        with self.assertRaises(ValueError):
            self.client.call("bus.ping", {"a": float("nan")})

    def test_a_bus_that_dies_fails_the_call_at_once(self) -> None:
        asked = threading.Event()

        def die(params: object) -> object:
            asked.set()
            return NO_REPLY

        self.bus.methods["device.unlock"] = die
        killer = threading.Thread(target=lambda: (asked.wait(5), self.bus.stop()))
        killer.start()
        with self.assertRaises(BusGone):
            self.client.call("device.unlock", {"lock": "x"}, timeout=60)
        killer.join()

    def test_a_question_is_asked_again_of_the_next_bus(self) -> None:
        asked = threading.Event()
        answer = self.bus.methods["device.list"]

        def die(params: object) -> object:
            asked.set()
            return NO_REPLY

        def restart() -> None:
            asked.wait(5)
            self.bus.stop()
            self.bus.methods["device.list"] = answer
            self.bus.start()

        self.bus.methods["device.list"] = die
        killer = threading.Thread(target=restart)
        killer.start()
        self.assertEqual(len(self.client.devices(timeout=60)), 2)
        killer.join()
        self.assertEqual(self.client.hello.epoch, "e2")

    def test_calls_go_on_after_a_restart(self) -> None:
        self.client.ping()
        self.bus.stop()
        told = len(self.bus.asked("bus.hello"))
        self.bus.start()
        self.client.call("bus.ping", timeout=60)
        self.assertEqual(len(self.bus.asked("bus.hello")), told + 1)  # the new bus was told who we are

    def test_a_bus_that_is_gone_is_named(self) -> None:
        self.bus.stop()
        self.client.close()
        with self.assertRaises(BusNotRunning):
            Client(self.bus.directory)
        self.bus.start()

    def test_a_client_whose_bus_is_gone_says_so(self) -> None:
        self.bus.stop()
        # Whether its end has been noticed by now, or is while the request is under way.
        with self.assertRaises((BusNotRunning, BusGone)) as caught:
            self.client.call("bus.ping", timeout=0.3)
        self.assertRegex(str(caught.exception), "no process answers|ended before")
        self.bus.start()

    def test_another_protocol_version_is_refused(self) -> None:
        hello = self.bus.methods["bus.hello"]
        self.bus.methods["bus.hello"] = lambda params: {**hello(params), "protocol": 2}
        with self.assertRaises(errors.VersionUnsupported):
            Client(self.bus.directory)

    def test_what_others_call_themselves_does_not_steer_the_terminal(self) -> None:
        name = "x\n\x1b[31mred\u202e é"
        error = CaptureError.of("deviceBusy", f"cam0 is locked by {name}.", {"holder": {"name": name}})
        self.assertEqual(str(error), "cam0 is locked by x\\n\\x1b[31mred\\u202e é.")
        self.assertEqual((error.message, error.data["holder"]["name"]), (f"cam0 is locked by {name}.", name))

    def test_a_closed_client_says_so(self) -> None:
        self.client.close()
        self.client.close()
        with self.assertRaises(ValueError):
            self.client.ping()

    def test_a_client_that_was_not_closed_is_a_warning(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client = Client(self.bus.directory)
            del client
            gc.collect()
        self.assertIn(ResourceWarning, [warning.category for warning in caught])

    def test_a_loop_keeps_its_client_alive(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            watch = Client(self.bus.directory).watch("state/")
            gc.collect()
            self.bus.set_state("state/bus/", 1)
            self.assertEqual(next(watch).value, 1)
            del watch
            gc.collect()

    def test_what_is_public_is_readable(self) -> None:
        self.assertEqual(repr(self.client), f"<Client 'test' at {self.bus.directory}>")
        with self.client.watch("state/bus", "event/") as watch, self.client.frames("cam0", timeout=5) as frames:
            self.assertEqual((repr(watch), repr(frames)), ("<Watch of state/bus/, event/>", "<Frames of cam0, native>"))
            self.bus.set_state("state/bus/", {"epoch": "e1"})
            self.bus.set_state("state/bus/", None)
            self.bus.send_event("event/lock/7f/", "ended", cause="takenOver", by={"pid": 3})
            self.bus.send_event("event/lock/7f/", "ended", lose=True)
            self.bus.send_event("event/lock/7f/", "ended")
            self.assertEqual(
                [repr(next(watch)) for _ in range(4)],
                [
                    "<Event state/bus/ = {'epoch': 'e1'}>",
                    "<Event state/bus/ is gone>",
                    "<Event event/lock/7f/ ended: cause='takenOver', by={'pid': 3}>",
                    "<Event event/lock/7f/ ended, some before it lost>",
                ],
            )
            self.bus.send_frame("cam0", 1)
            self.assertEqual(repr(next(frames)), "<Frame cam0 native 1, 4x2 YUYV, 16 bytes>")
            self.bus.send_frame("cam0", 4)
            self.assertEqual(repr(next(frames)), "<Frame cam0 native 4, 4x2 YUYV, 16 bytes, 2 lost before it>")
        self.assertEqual(repr(frames), "<Frames of cam0, native: closed>")
        with self.client.mirror("state/lock") as mirror:
            self.assertRegex(repr(mirror), "^<Mirror of state/lock/: 0 topics as of [0-9]+>$")
        self.client.close()
        self.assertEqual(repr(self.client), "<Client closed>")

    def test_set_and_configure_send_what_they_are_told(self) -> None:
        answer = {
            "verdict": "adjusted", "generation": {"cam0": 4}, "applied": {},
            "adjusted": [{"path": "p", "asked": 1, "given": 2, "why": "w"}],
        }
        self.bus.methods["device.configure"] = self.bus.methods["device.set"] = lambda params: answer
        result = self.client.configure(
            "cam0", activeFormat="f3", frameRate=Fraction(30000, 1001), mode="nearest", dry_run=True
        )
        self.assertEqual(
            self.bus.requests[-1]["params"],
            {
                "changes": [{"device": "cam0", "activeFormat": "f3", "frameRate": 29.97}],
                "mode": "nearest",
                "dryRun": True,
            },
        )
        self.assertEqual((result.verdict, result.adjusted[0].given, result.generation), ("adjusted", 2, {"cam0": 4}))
        self.client.configure([{"device": "cam0", "frameRate": 30}, {"device": "cam1", "controls": {"brightness": 1}}])
        self.assertEqual(len(self.bus.requests[-1]["params"]["changes"]), 2)
        between = {"minFrameDuration": Fraction(1, 30), "maxFrameDuration": "1/15"}
        self.client.configure({"device": "cam0", "frameRate": between})
        self.assertEqual(
            self.bus.requests[-1]["params"]["changes"][0]["frameRate"],
            {"minFrameDuration": "1/30", "maxFrameDuration": "1/15"},
        )
        with self.assertRaisesRegex(ValueError, "30 for a frame duration"):
            self.client.configure("cam0", frameRate="1/30")
        self.client.set("cam0", {"brightness": 1}, contrast=2)
        self.assertEqual(
            self.bus.requests[-1]["params"], {"device": "cam0", "controls": {"brightness": 1, "contrast": 2}}
        )
        with self.assertRaises(TypeError):
            self.client.configure([{"device": "cam0"}], frameRate=30)


class Finding(unittest.TestCase):
    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="camerabus-test-"))
        self.addCleanup(shutil.rmtree, self.home)

    def listen(self, directory: Path) -> socket.socket:
        directory.mkdir(exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(directory / "command.sock"))
        listener.listen(1)
        self.addCleanup(listener.close)
        return listener

    def test_no_bus_says_where_it_looked_and_how_to_start_one(self) -> None:
        with self.assertRaises(BusNotRunning) as caught:
            camerabus.find_bus(self.home / "none")
        text = str(caught.exception)
        for part in (str(self.home / "none"), "make run", "camerabusd --virtual 2"):
            self.assertIn(part, text)

    def test_the_session_s_bus_comes_first(self) -> None:
        self.listen(self.home / "camerabus")
        self.assertEqual(camerabus.find_bus(None, {"XDG_RUNTIME_DIR": str(self.home)}), self.home / "camerabus")

    def test_what_is_named_is_taken_strictly(self) -> None:
        self.listen(self.home / "camerabus")
        session = {"XDG_RUNTIME_DIR": str(self.home)}
        with self.assertRaises(BusNotRunning):
            camerabus.find_bus(None, {**session, "CAMERABUS_RUNTIME_DIR": str(self.home / "other")})
        with self.assertRaises(BusNotRunning):
            camerabus.find_bus(self.home / "other", session)

    def test_a_socket_that_nobody_listens_at_is_none(self) -> None:
        self.listen(self.home / "camerabus").close()
        with self.assertRaises(BusNotRunning) as caught:
            camerabus.find_bus(self.home / "camerabus")
        self.assertIn("no process answers", str(caught.exception))

    def test_a_full_queue_is_a_bus_that_runs(self) -> None:
        self.listen(self.home / "camerabus").listen(0)
        for _ in range(5):
            self.assertEqual(camerabus.find_bus(self.home / "camerabus"), self.home / "camerabus")

    def test_another_user_s_directory_in_tmp_is_not_trusted(self) -> None:
        self.listen(self.home / "camerabus")
        (self.home / "camerabus").chmod(0o777)
        with mock.patch("camerabus.finding._temporary", return_value=self.home / "camerabus"):
            with self.assertRaises(BusNotRunning) as caught:
                camerabus.find_bus(None, {})
            self.assertIn("not a private directory", str(caught.exception))
            (self.home / "camerabus").chmod(0o700)
            self.assertEqual(camerabus.find_bus(self.home / "camerabus", {}), self.home / "camerabus")
            if not os.path.exists("/run/camerabus/command.sock"):
                self.assertEqual(camerabus.find_bus(None, {}), self.home / "camerabus")


if __name__ == "__main__":
    unittest.main()
