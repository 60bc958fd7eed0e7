"""Camera controls of a real bus."""

from __future__ import annotations

import asyncio

import camerabus
from live import LiveTestCase, RUNTIME_DIR, TIMEOUT


class CameraControls(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.topic = f"state/device/{self.first}/"
        self.addCleanup(self.put_back)

    def put_back(self) -> None:
        with camerabus.Client(RUNTIME_DIR) as client:
            client.cancel_zoom_ramp(self.first)
            client.set(
                self.first, exposureMode="continuousAutoExposure", videoZoomFactor=1, torchMode="off", flashMode="off"
            )
            client.reset_focus_and_exposure(self.first)

    def test_controls_describe_their_values(self) -> None:
        controls = self.client.camera_controls(self.first)
        device = self.client.device(self.first)
        self.assertEqual({name for name, can in device.supports.items() if can}, set(controls))
        for name, control in controls.items():
            self.assertIn(name, device.controls)
            if control.type == "word":
                self.assertEqual(tuple(device.supports[name]), control.choices)
        self.assertLess(controls["exposureDuration"].minimum, controls["exposureDuration"].maximum)
        self.assertEqual(controls["exposureDuration"].unit, "s")
        self.assertTrue(controls["adjustingExposure"].readOnly)

    def test_values_in_their_units(self) -> None:
        set_ = self.client.set(self.first, exposureDuration=0.02, whiteBalanceTemperature=5000, torchLevel=0.5)
        applied = set_.applied[self.first]["controls"]
        self.assertEqual((applied["exposureDuration"], applied["whiteBalanceTemperature"]), (0.02, 5000))
        controls = self.client.device(self.first).controls
        self.assertEqual((controls["exposureMode"], controls["torchMode"]), ("custom", "on"))
        self.assertEqual(controls["exposure_time_absolute"], 200)
        with self.assertRaises(camerabus.ControlOutOfRange):
            self.client.set(self.first, exposureDuration=100)
        with self.assertRaises(camerabus.ControlReadOnly):
            self.client.set(self.first, adjustingFocus=True)
        self.client.set(self.first, whiteBalanceMode="continuousAutoWhiteBalance")

    def test_expose_then_lock(self) -> None:
        with (
            self.client.frames(self.first, rendition="gray:64x0") as frames,
            self.client.mirror("state/device/") as mirror,
        ):
            next(frames)
            self.assertTrue(self.client.expose(self.first, (0.9, 0.5), then_lock=True))
            mirror.wait(lambda state: state[self.topic]["controls"]["exposureMode"] == "locked", timeout=TIMEOUT)
            self.assertIn("exposureMode", self.client.reset_focus_and_exposure(self.first))
            self.assertEqual(self.client.device(self.first).controls["exposureMode"], "continuousAutoExposure")

    def test_focus(self) -> None:
        applied = self.client.focus(self.first, (0.25, 0.75)).applied[self.first]["controls"]
        self.assertEqual(applied["focusPointOfInterest"], {"x": 0.25, "y": 0.75})

    def test_zoom_ramps(self) -> None:
        with self.client.mirror("state/device/") as mirror:
            seconds = self.client.zoom_ramp(self.first, 2, rate=10)
            self.assertAlmostEqual(seconds, 0.1, 2)
            mirror.wait(
                lambda state: state[self.topic]["controls"]["videoZoomFactor"] == 2
                and not state[self.topic]["controls"]["rampingVideoZoom"],
                timeout=TIMEOUT,
            )
        with self.assertRaises(TypeError):
            self.client.zoom_ramp(self.first)
        with self.assertRaises(camerabus.ControlOutOfRange):
            self.client.zoom_ramp(self.first, 100)

    def test_the_same_by_asyncio(self) -> None:
        async def body() -> None:
            async with camerabus.AsyncClient(RUNTIME_DIR) as client:
                controls = await client.camera_controls(self.first)
                self.assertIn("focusMode", controls)
                await client.focus(self.first, (0.5, 0.5))
                await client.expose(self.first, (0.5, 0.5))
                await client.reset_focus_and_exposure(self.first)
                await client.zoom_ramp(self.first, value=0.5, rate=0.01)
                await client.cancel_zoom_ramp(self.first)
                self.assertFalse((await client.device(self.first)).controls["rampingVideoZoom"])

        asyncio.run(body())


