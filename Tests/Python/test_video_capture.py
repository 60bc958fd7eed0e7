"""cv2.VideoCapture's place: what it answers, and what becomes of it on the bus."""

from __future__ import annotations

import json
import threading
import unittest
from typing import Any

from camerabus import BusNotRunning, BusTimeout, DeviceBusy, DeviceNotFound, VideoCapture, video_capture as cv
from fake_bus import BusTestCase, Refusal, device_value, frame_header

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

CONTROLS = [
    {"name": "brightness", "id": 0x00980900, "type": "int", "minimum": -10, "maximum": 10, "value": 5},
    {"name": "focus_automatic_continuous", "id": 0x009A090C, "type": "bool", "value": True},
    {"name": "auto_exposure", "id": 0x009A0901, "type": "menu", "minimum": 0, "maximum": 3, "value": 3},
]


class VideoCaptureTestCase(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.values = {name: device_value(name) for name in self.bus.devices}
        self.values["cam1"].update(node="/dev/video2", uniqueID="usb:1-2")
        self.generation = 3
        #: What is published when a subscription is in force, by its topic; each time anew.
        self.pictures: list[dict[str, Any]] = []
        self.bus.methods |= {
            "device.list": lambda params: {"devices": list(self.values.values())},
            "device.get": lambda params: {"device": self.values[params["device"]]},
            "device.formats": lambda params: {
                "formats": [{"id": "f0", "pixelFormat": "YUYV"}, {"id": "f1", "pixelFormat": "MJPG"}]
            },
            "device.controls": lambda params: {"controls": CONTROLS},
            "device.configure": self.configure,
        }
        original = self.bus._subscribed

        def subscribed(name: str, message: bytes) -> None:
            original(name, message)
            topic = message[1:].decode()
            if message[0] and topic.startswith("ack/") and name:
                wanted = [
                    topic
                    for sign, topic in self.bus.subscriptions
                    if sign == "+" and topic.startswith(f"frame/{name}/")
                ][-1]
                for header in self.pictures:
                    head, payload = self.picture(name, wanted.split("/")[2], **header)
                    self.bus._publishers[name].send_multipart([wanted.encode(), json.dumps(head).encode(), payload])

        self.bus._subscribed = subscribed  # type: ignore[method-assign]

    def picture(
        self, device: str, rendition: str, sequence: int, *, width: int = 4, height: int = 2, **members: Any
    ) -> tuple[Any, bytes]:
        payload = bytes([sequence % 256]) * (width * height * 3)
        header = frame_header(device, sequence, rendition, size=len(payload))
        plane = {"offset": 0, "stride": width * 3, "bytes": len(payload)}
        return {**header, "format": "BGR3", "width": width, "height": height, "planes": [plane], **members}, payload

    def configure(self, params: dict[str, Any]) -> Any:
        self.generation += 1
        device = params["changes"][0]["device"]
        return {"verdict": "valid", "generation": {device: self.generation}, "applied": {}, "adjusted": []}

    def capture(self, source: Any = 0, *arguments: Any, **options: Any) -> VideoCapture:
        capture = VideoCapture(source, *arguments, runtime_dir=self.bus.directory, **{"timeout": 5.0, **options})
        self.addCleanup(capture.release)
        return capture

    def changes(self) -> list[dict[str, Any]]:
        return [params["changes"][0] for params in self.bus.asked("device.configure")]


class Opening(VideoCaptureTestCase):
    def test_a_camera_is_found_by_its_number_among_those_that_are_connected(self) -> None:
        self.values["cam0"]["connected"] = False
        capture = self.capture(0)
        self.assertTrue(capture.isOpened())
        self.assertEqual(capture.device, "cam1")
        self.assertFalse(self.capture(1).isOpened())
        self.assertFalse(self.capture(-1).isOpened())

    def test_or_by_a_name(self) -> None:
        for name in ["cam1", "/dev/video2", "usb:1-2"]:
            self.assertEqual(self.capture(name).device, "cam1", name)
        capture = self.capture("movie.avi")
        self.assertFalse(capture.isOpened())
        self.assertIsInstance(capture.error, DeviceNotFound)
        self.assertIn("cam0, cam1", str(capture.error))

    def test_nobody_is_asked_without_a_source(self) -> None:
        capture = VideoCapture(runtime_dir=self.bus.directory)
        self.assertEqual((capture.isOpened(), capture.read()), (False, (False, None)))
        self.assertEqual((capture.get(cv.CAP_PROP_FPS), capture.set(cv.CAP_PROP_FPS, 30)), (0.0, False))
        self.assertTrue(capture.open(1))
        self.addCleanup(capture.release)
        self.assertEqual(capture.device, "cam1")
        capture.release()
        self.assertFalse(capture.isOpened())

    def test_without_a_bus_it_is_closed_and_says_why(self) -> None:
        self.bus.end()
        capture = self.capture(0)
        self.assertFalse(capture.isOpened())
        self.assertIsInstance(capture.error, BusNotRunning)

    def test_parameters_are_set_on_opening_or_it_is_closed(self) -> None:
        self.assertTrue(
            self.capture(0, cv.CAP_ANY, [cv.CAP_PROP_FRAME_WIDTH, 640, cv.CAP_PROP_FRAME_HEIGHT, 360]).isOpened()
        )
        self.assertEqual(self.changes(), [{"device": "cam0", "activeFormat": {"width": 640, "height": 360}}])
        self.assertFalse(self.capture(0, cv.CAP_ANY, [cv.CAP_PROP_GAMMA, 1]).isOpened())
        self.assertFalse(self.capture(0, cv.CAP_ANY, [cv.CAP_PROP_FPS]).isOpened())

    def test_exceptions_where_they_are_wanted(self) -> None:
        capture = self.capture(0)
        capture.setExceptionMode(True)
        self.assertTrue(capture.getExceptionMode())
        with self.assertRaises(DeviceNotFound):
            capture.open(9)


@unittest.skipIf(numpy is None, "no NumPy")
class Reading(VideoCaptureTestCase):
    def test_a_picture_is_an_array_of_its_own(self) -> None:
        self.pictures = [{"sequence": 7}]
        capture = self.capture()
        good, image = capture.read()
        self.assertTrue(good)
        self.assertEqual(
            (image.shape, image.dtype, image.flags.writeable, image.flags.owndata), ((2, 4, 3), numpy.uint8, True, True)
        )
        self.assertEqual(int(image.sum()), 7 * 24)
        self.assertIn(("+", "frame/cam0/bgr/"), self.bus.subscriptions)

    def test_nothing_is_asked_of_the_camera_before_the_first_picture_is(self) -> None:
        capture = self.capture()
        self.assertFalse([topic for _, topic in self.bus.subscriptions if topic.startswith("frame/")])
        self.assertEqual(capture.retrieve(), (False, None))

    def test_grabbed_once_it_may_be_retrieved_again(self) -> None:
        self.pictures = [{"sequence": 9}]
        capture = self.capture()
        self.assertTrue(capture.grab())
        first, second = capture.retrieve()[1], capture.retrieve()[1]
        self.assertIsNot(first, second)
        first[:] = 0  # a program may draw in its own
        self.assertTrue((second == 9).all())
        self.assertEqual(capture.get(cv.CAP_PROP_POS_MSEC), 9 / 1e6)

    def test_it_goes_into_the_image_that_fits(self) -> None:
        self.pictures = [{"sequence": 5}]
        capture = self.capture()
        mine, other = numpy.zeros((2, 4, 3), numpy.uint8), numpy.zeros((1, 1, 3), numpy.uint8)
        good, image = capture.read(mine)
        self.assertTrue(good and image is mine and (mine == 5).all())
        self.assertEqual(capture.retrieve(other)[1].shape, (2, 4, 3))

    def test_none_in_time_is_false(self) -> None:
        capture = self.capture(timeout=2)
        self.assertEqual(capture.read(), (False, None))
        self.assertIsInstance(capture.error, BusTimeout)
        self.assertTrue(capture.isOpened())

    def test_pictures_of_the_size_before_are_left_out(self) -> None:
        # The change is of generation 4; the older one was on its way.
        self.pictures = [{"sequence": 1, "generation": 3}]
        capture = self.capture()
        self.assertTrue(capture.set(cv.CAP_PROP_FPS, 15))
        is_over = threading.Event()

        def go_on() -> None:
            sequence = 1
            while not is_over.wait(0.01):
                sequence += 1
                head, payload = self.picture("cam0", "bgr", sequence, generation=4, width=2, height=2)
                self.bus.send_media("cam0", "frame/cam0/bgr/", head, payload)

        camera = threading.Thread(target=go_on)
        camera.start()
        good, image = capture.read()
        is_over.set()
        camera.join()
        self.assertTrue(good)
        self.assertEqual(image.shape, (2, 2, 3))

    def test_unconverted_pictures_are_the_cameras_own(self) -> None:
        self.pictures = [{"sequence": 1, "format": "MJPG", "planes": [{"offset": 0, "stride": 0, "bytes": 24}]}]
        capture = self.capture()
        self.assertTrue(capture.set(cv.CAP_PROP_CONVERT_RGB, 0))
        good, image = capture.read()
        self.assertTrue(good)
        self.assertEqual(image.shape, (1, 24))
        self.assertIn(("+", "frame/cam0/native/"), self.bus.subscriptions)
        self.assertEqual(capture.get(cv.CAP_PROP_CONVERT_RGB), 0)


class Properties(VideoCaptureTestCase):
    def test_what_a_camera_is_set_to(self) -> None:
        capture = self.capture()
        names = [
            cv.CAP_PROP_FRAME_WIDTH, cv.CAP_PROP_FRAME_HEIGHT, cv.CAP_PROP_FPS, cv.CAP_PROP_FOURCC,
            cv.CAP_PROP_BUFFERSIZE,
        ]
        self.assertEqual([capture.get(name) for name in names], [4, 2, 29.97, int.from_bytes(b"YUYV", "little"), 1])
        self.assertEqual(capture.getBackendName(), "CAMERABUS")

    def test_controls_are_those_of_the_driver(self) -> None:
        capture = self.capture()
        self.assertEqual(
            [capture.get(name) for name in [cv.CAP_PROP_BRIGHTNESS, cv.CAP_PROP_AUTOFOCUS, cv.CAP_PROP_AUTO_EXPOSURE]],
            [5, 1, 3],
        )
        self.assertEqual(capture.get(cv.CAP_PROP_GAMMA), -1)
        self.assertTrue(capture.set(cv.CAP_PROP_BRIGHTNESS, 7.4))
        self.assertTrue(capture.set(cv.CAP_PROP_AUTOFOCUS, 0))
        self.assertFalse(capture.set(cv.CAP_PROP_GAMMA, 1))
        self.assertEqual(self.changes(), [
            {"device": "cam0", "controls": {"brightness": 7}},
            {"device": "cam0", "controls": {"focus_automatic_continuous": False}},
        ])  # fmt: skip

    def test_width_and_height_are_set_together_to_what_comes_nearest(self) -> None:
        capture = self.capture()
        self.assertTrue(capture.set(cv.CAP_PROP_FRAME_WIDTH, 1280))
        self.assertEqual(self.changes(), [])
        self.assertTrue(capture.set(cv.CAP_PROP_FRAME_HEIGHT, 720))
        self.assertEqual(self.changes(), [{"device": "cam0", "activeFormat": {"width": 1280, "height": 720}}])
        self.assertEqual(self.bus.asked("device.configure")[0]["mode"], "nearest")
        self.assertEqual((len(self.bus.asked("device.lock")), self.bus.locks), (1, {}))
        self.assertFalse(capture.set(cv.CAP_PROP_FRAME_WIDTH, 0))

    def test_a_pixel_format_is_had_or_refused(self) -> None:
        capture = self.capture()
        code = lambda word: int.from_bytes(word, "little")
        self.assertTrue(capture.set(cv.CAP_PROP_FOURCC, code(b"YUYV")))
        self.assertEqual(self.changes(), [])
        self.assertTrue(capture.set(cv.CAP_PROP_FOURCC, code(b"MJPG")))
        self.assertEqual(
            self.changes(), [{"device": "cam0", "activeFormat": {"pixelFormat": "MJPG", "width": 4, "height": 2}}]
        )
        self.assertFalse(capture.set(cv.CAP_PROP_FOURCC, code(b"H264")))
        self.assertFalse(capture.set(cv.CAP_PROP_FOURCC, -1))

    def test_a_camera_that_somebody_has_locked_stays_as_it_is(self) -> None:
        self.bus.locks["another"] = ["cam0"]
        capture = self.capture()
        self.assertFalse(capture.set(cv.CAP_PROP_FPS, 15))
        self.assertIsInstance(capture.error, DeviceBusy)
        self.assertEqual(capture.get(cv.CAP_PROP_FPS), 29.97)
        self.assertIsNone(capture.error)

    def test_what_the_bus_refuses_is_false(self) -> None:
        def refuse(params: dict[str, Any]) -> Any:
            raise Refusal("controlOutOfRange", min=0, max=1)

        self.bus.methods["device.configure"] = refuse
        self.assertFalse(self.capture().set(cv.CAP_PROP_BRIGHTNESS, 99))
        self.assertEqual(self.bus.locks, {})

    def test_numbers_are_opencvs(self) -> None:
        try:
            import cv2
        except ImportError:
            self.skipTest("no OpenCV")
        for name in dir(cv):
            if name.startswith("CAP_"):
                self.assertEqual(getattr(cv, name), getattr(cv2, name), name)


if __name__ == "__main__":
    unittest.main()
