"""Camera controls of a real bus."""

from __future__ import annotations

import asyncio
import json
import subprocess
from fractions import Fraction

import camerabus
from live import Image, LiveTestCase, RUNTIME_DIR, TIMEOUT

try:
    from PIL import ImageStat
except ImportError:
    ImageStat = None  # type: ignore[assignment]


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
        for exposure in ("1/100", Fraction(1, 100)):
            applied = self.client.set(self.first, exposureDuration=exposure).applied[self.first]["controls"]
            self.assertEqual(applied["exposureDuration"], 0.01)
            with self.client.lock(self.first):
                change = {"device": self.first, "controls": {"exposureDuration": exposure}}
                applied = self.client.configure(change).applied[self.first]["controls"]
            self.assertEqual(applied["exposureDuration"], 0.01)
        with self.assertRaises(camerabus.ControlReadOnly):
            self.client.set(self.first, adjustingFocus=True)
        self.client.set(self.first, whiteBalanceMode="continuousAutoWhiteBalance")

    def test_a_grey_card_is_grey_on_all_cameras_of_a_rig(self) -> None:
        for device, kelvin, red in ((self.first, 4000, 1.0), (self.second, 5200, 1.5)):
            self.addCleanup(self.client.set, device, whiteBalanceMode="continuousAutoWhiteBalance")
            self.addCleanup(self.client.set, device, exposureMode="continuousAutoExposure")
            self.client.set(device, exposureDuration=0.008, ISO=100, whiteBalanceTemperature=kelvin)
            self.client.set(device, whiteBalanceGains={"red": red, "blue": 1})
        # The first bar of their pictures is grey.
        self.assertTrue(all(max(self.tint(device)) > 10 for device in (self.first, self.second)))
        with self.client.lock(self.first, self.second, wait=TIMEOUT):
            self.client.set_rig("card", self.first, self.second)
        self.addCleanup(self.client.delete_rig, "card")
        done = self.white_balance("card", "--at", "0.06,0.5", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        cameras = json.loads(done.stdout)["cameras"]
        self.assertEqual([camera["device"] for camera in cameras], [self.first, self.second])
        for camera in cameras:
            self.assertLess(max(self.tint(camera["device"])), 5, camera)
            controls = self.client.device(camera["device"]).controls
            self.assertEqual((controls["whiteBalanceMode"], camera["isGrey"]), ("locked", True))
            self.assertEqual(controls["whiteBalanceGains"], camera["whiteBalanceGains"])
        self.assertNotEqual(*(camera["whiteBalanceGains"] for camera in cameras))

    def test_no_camera_is_changed_where_one_sees_no_card(self) -> None:
        for device, seconds in ((self.first, 0.008), (self.second, 0.0001)):
            self.addCleanup(self.client.set, device, exposureMode="continuousAutoExposure")
            self.client.set(device, exposureDuration=seconds, ISO=100)
        before = self.client.device(self.first).controls
        done = self.white_balance(self.first, self.second, "--at", "0.06,0.5")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"too dark in the picture of {self.second}", done.stderr)
        self.assertEqual(self.client.device(self.first).controls, before)
        # A colour that the gains can't make grey.
        done = self.white_balance(self.first, "--at", "0.2,0.5")
        self.addCleanup(self.client.set, self.first, whiteBalanceMode="continuousAutoWhiteBalance")
        self.assertEqual(done.returncode, 1)

    def white_balance(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["camerabus", "white-balance", *arguments], capture_output=True, text=True)

    def tint(self, device: str) -> list[float]:
        """How far red and blue are from green at the card, of a photo that is read by Pillow."""
        if Image is None:
            self.skipTest("Pillow is not installed")
        image = self.client.capture_photo(device).photo.image().convert("RGB")
        card = image.crop((image.width // 50, image.height // 2, image.width // 10, image.height * 6 // 10))
        red, green, blue = ImageStat.Stat(card).mean
        return [abs(red - green), abs(blue - green)]

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


