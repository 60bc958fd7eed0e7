# SPDX-License-Identifier: Apache-2.0
"""What a person does with cameras on the page, and what the bus makes of it."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import time
import unittest
import urllib.request

from PIL import Image

import rig
from camerabus import Client, PreviewLayout
from picture_counter import PictureCounter, read_image

BARS = [
    (192, 192, 192), (192, 192, 0), (0, 192, 192), (0, 192, 0), (192, 0, 192), (192, 0, 0), (0, 0, 192), (32, 32, 32),
]
"""The colours of a virtual camera's picture, from left to right, each as wide as the others."""


class Grid(rig.WebTestCase):
    def counter(self, camera: int) -> PictureCounter:
        shot = self.page.screenshot(of=f"[data-camera=cam{camera}] canvas")
        with Image.open(io.BytesIO(shot)) as image:
            found = read_image(image)
        assert found is not None, "the picture on the page has no counter"
        return found

    def test_all_cameras_move(self) -> None:
        self.page.open(self.rig.address)
        self.page.wait(f"document.querySelectorAll('.tile canvas[data-sequence]').length === {rig.CAMERAS}")
        for camera in range(rig.CAMERAS):
            canvas = f"document.querySelector('[data-camera=cam{camera}] canvas')"
            first = self.counter(camera)
            self.page.wait(
                f"Number({canvas}.dataset.sequence) > {self.page.evaluate(f'Number({canvas}.dataset.sequence)')} + 3"
            )
            second = self.counter(camera)
            self.assertEqual((first.camera, second.camera), (camera, camera))
            self.assertGreater(second.counter, first.counter)
            self.assertGreater(second.clock, first.clock)

    def test_an_address_that_was_cut_in_two_leads_to_all_cameras(self) -> None:
        self.page.open(f"{self.rig.address}#/camera/%")
        self.page.wait(f"document.querySelectorAll('.tile').length === {rig.CAMERAS}")

    def test_only_what_is_seen_is_asked_for(self) -> None:
        self.page.look(420, 300)
        self.page.open(self.rig.address)
        self.page.wait("document.querySelector('[data-camera=cam0] canvas[data-sequence]')")
        self.assertTrue(
            self.page.evaluate("document.querySelector('[data-camera=cam2] canvas').dataset.sequence === undefined")
        )
        self.page.evaluate("document.querySelector('[data-camera=cam2]').scrollIntoView()")
        self.page.wait("document.querySelector('[data-camera=cam2] canvas[data-sequence]')")

    def test_the_keyboard_goes_from_camera_to_camera(self) -> None:
        self.page.open(self.rig.address)
        self.page.wait(f"document.querySelectorAll('.tile').length === {rig.CAMERAS}")
        self.page.key("ArrowRight")
        self.page.key("ArrowRight")
        self.assertEqual(self.page.evaluate("document.activeElement.getAttribute('href')"), "#/camera/cam1")
        self.page.key("?")
        self.page.wait("document.querySelector('dialog.help').open")
        self.page.evaluate("document.querySelector('dialog.help').close()")
        self.page.evaluate("location.hash = '#/camera/cam1'")
        self.page.wait("document.querySelector('.camera h1').textContent === 'Virtual Camera 1'")
        self.page.key("Escape")
        self.page.wait("document.querySelector('.grid')")

    def test_a_phone_on_its_side_shows_the_picture_and_what_is_pressed(self) -> None:
        self.page.look(740, 360, touch=True)
        self.open_camera()
        for part in (".picture", ".shutter.record", ".shutter.photo", ".tools", ".zoom"):
            box = self.page.box(part)
            self.assertTrue(box["y"] >= 0 and box["y"] + box["height"] <= 360, (part, box))
        self.assertGreater(self.page.box(".picture")["height"], 130)

    def test_a_phone_has_room_for_all(self) -> None:
        self.page.look(360, 740, touch=True)
        for where in ("#/", "#/camera/cam0", "#/microphone/mic0", "#/library"):
            self.page.open(self.rig.address + where)
            self.page.wait(
                "document.querySelector('.status').dataset.how === 'live' && "
                "document.querySelector('#view').children.length > 0"
            )
            self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 360, where)


class Gestures(rig.WebTestCase):
    def setUp(self) -> None:
        super().setUp()
        # A page that has just been closed may be at it still.
        lock = self.client.call("device.lock", {"devices": ["cam0"], "wait": 30000})["lock"]
        self.client.call("device.resetFocusAndExposure", {"device": "cam0", "lock": lock})
        self.client.call("device.unlock", {"lock": lock})

    def controls(self, condition) -> None:
        self.state("state/device/cam0/", lambda device: condition(device["controls"]))

    def frame(self) -> tuple[dict[str, float], Image.Image]:
        box = self.page.box(".picture")
        with Image.open(io.BytesIO(self.page.screenshot())) as image:
            return box, image.convert("RGB")

    def test_a_tap_focuses_where_it_was_put(self) -> None:
        self.open_camera()
        self.assertEqual(self.page.evaluate("document.querySelector('.stage').dataset.gravity"), "resizeAspect")
        for mirrored, rotations in ((False, (0, 90, 180, 270)), (True, (0, 90))):
            if mirrored:
                self.page.key("m")
            for rotation in rotations:
                with self.subTest(rotation=rotation, mirrored=mirrored):
                    self.tap_once(rotation, mirrored, "resizeAspect")
                self.page.key("t")
        self.page.click("[aria-label='Fill the view']")
        self.tap_once(180, True, "resizeAspectFill")
        self.page.wait("!document.querySelector('.box')")

    def tap_once(self, rotation: int, mirrored: bool, gravity: str) -> None:
        size = (720, 1280) if rotation % 180 else (1280, 720)
        self.page.wait(
            f"(({{width, height}}) => width > 16 && (width > height) === "
            f"{str(size[0] > size[1]).lower()})(document.querySelector('.picture'))"
        )
        box, image = self.frame()
        layout = PreviewLayout((box["width"], box["height"]), (1280, 720), gravity, rotation, mirrored)
        # A place between the bars' edges that no button covers, different in each way that the picture lies.
        spot = layout.view_point(0.32 + 0.125 * (rotation // 90), 0.5)
        self.assertIsNotNone(spot)
        at = (box["x"] + spot[0], box["y"] + spot[1])
        self.page.press(*at)
        self.page.wait(
            f"seen.some(({{ kind, x, y }}) => kind === 'box focus' && Math.abs(x - {at[0]}) < 1.5 && Math.abs(y - "
            f"{at[1]}) < 1.5)"
        )
        point: dict[str, float] = {}
        wanted = layout.device_point(*spot)

        def is_there(controls) -> bool:
            point.update(controls["focusPointOfInterest"])
            return abs(point["x"] - wanted[0]) < 0.01 and abs(point["y"] - wanted[1]) < 0.01

        self.controls(is_there)
        # What was seen under the finger is what is in the camera's picture there.
        seen = image.getpixel((round(at[0]), round(at[1])))
        bar = min(range(8), key=lambda index: sum((a - b) ** 2 for a, b in zip(BARS[index], seen)))
        self.assertEqual(int(point["x"] * 8), bar, (seen, point))

    def test_two_taps_expose_and_lock_and_two_fingers_twice_reset(self) -> None:
        self.page.look(390, 844, touch=True)
        self.open_camera()
        box = self.page.box(".picture")
        x, y = box["x"] + 0.25 * box["width"], box["y"] + 0.5 * box["height"]
        self.page.tap((x, y), times=2)
        self.page.wait("seen.length")
        self.assertEqual(self.page.evaluate("seen.splice(0).map(({ kind }) => kind)"), ["box exposure"])
        self.controls(
            lambda controls: abs(controls["exposurePointOfInterest"]["x"] - 0.25) < 0.02
            and controls["exposureMode"] == "locked"
        )
        self.assertEqual(self.client.device("cam0").controls["focusPointOfInterest"], {"x": 0.5, "y": 0.5})
        self.page.wait("!document.querySelector('.box')")
        self.page.tap((x, y), (x + 90, y), times=2)
        self.page.wait("seen.length === 2")
        self.assertEqual(sorted(self.page.evaluate("seen.map(({ kind }) => kind)")), ["box exposure", "box focus"])
        self.controls(
            lambda controls: controls["exposurePointOfInterest"] == {"x": 0.5, "y": 0.5}
            and controls["exposureMode"] == "continuousAutoExposure"
            and controls["focusMode"] == "continuousAutoFocus"
        )

    def test_the_keyboard_aims(self) -> None:
        self.open_camera()
        for key in ("ArrowRight", "ArrowRight", "ArrowUp", " "):
            self.page.key(key)
        box = self.page.box(".picture")
        layout = PreviewLayout((box["width"], box["height"]), (1280, 720), "resizeAspect")
        wanted = layout.device_point(0.6 * box["width"], 0.45 * box["height"])
        self.controls(lambda controls: abs(controls["focusPointOfInterest"]["x"] - wanted[0]) < 0.01
                      and abs(controls["focusPointOfInterest"]["y"] - wanted[1]) < 0.01)

    def test_gestures_are_off_while_another_has_the_lock(self) -> None:
        self.open_camera()
        box = self.page.box(".picture")
        with Client(str(self.rig.runtime), name="another") as other:
            with other.lock("cam0", note="calibration"):
                self.page.wait("document.querySelector('.hint').textContent.includes('Locked by another')")
                self.page.wait("document.querySelector('.lock-line').textContent.includes('calibration')")
                self.page.wait("document.querySelector('[aria-label=Lamp]').getAttribute('aria-disabled') === 'true'")
                self.page.press(box["x"] + 100, box["y"] + 200)
                self.page.key(" ")
                self.page.key("x")
                # A press becomes a tap when no second one has come in its time.
                self.page.evaluate("new Promise((resolve) => setTimeout(resolve, 400))")
        self.page.wait("document.querySelector('.hint').textContent.startsWith('Tap to focus')")
        self.assertEqual(self.page.evaluate("seen"), [])
        self.page.key("0")
        self.page.wait("seen.length")
        self.assertEqual(
            [method for method in sent(self.page) if method.startswith("device.") and method not in READING],
            ["device.resetFocusAndExposure"],
        )

    def test_a_camera_without_a_point_says_so(self) -> None:
        self.open_camera("cam1")
        self.page.wait("document.querySelector('.hint').textContent.startsWith('Tap twice to expose')")
        self.page.wait("document.querySelector('[aria-label=Lamp]').hidden")


READING = {"device.controls", "device.formats", "device.who"}


def sent(page) -> list[str]:
    """The methods that a page has asked for, by what went over the wire."""
    mine = [event["params"] for event in page.told() if event["method"] == "Network.webSocketFrameSent"]
    frames = [params["response"] for params in mine]
    return [json.loads(frame["payloadData"])["method"] for frame in frames if frame["opcode"] == 1]


def received(page) -> list[bytes]:
    """The messages of bytes that a page was sent."""
    frames = [
        event["params"]["response"] for event in page.told() if event["method"] == "Network.webSocketFrameReceived"
    ]
    return [base64.b64decode(frame["payloadData"]) for frame in frames if frame["opcode"] == 2]


class Settings(rig.WebTestCase):
    def set(self, selector: str, value: str, event: str = "change") -> None:
        self.page.wait(f"document.querySelector({json.dumps(selector)})")
        self.page.evaluate(
            f"""(() => {{ const it = document.querySelector({json.dumps(selector)}); it.value = {json.dumps(value)};
            it.dispatchEvent(new Event("input", {{bubbles: true}}));
            it.dispatchEvent(new Event({json.dumps(event)}, {{bubbles: true}})) }})()"""
        )

    def device(self, condition) -> None:
        self.state("state/device/cam0/", condition)

    def test_the_first_change_takes_the_lock_and_it_is_given_back(self) -> None:
        self.open_camera()
        self.set("[data-control=brightness] input[type=range]", "17")
        self.device(lambda device: device["controls"]["brightness"] == 17 and device["lock"] is not None)
        self.page.wait("document.querySelector('.lock-line').textContent === 'Locked by you.'")
        self.set("[data-control=sceneMode] select", "night")
        self.device(lambda device: device["controls"]["sceneMode"] == "night")
        self.set("[data-control=exposureDuration] input[type=number]", "0.004")
        self.device(
            lambda device: abs(device["controls"]["exposureDuration"] - 0.004) < 1e-4
            and device["controls"]["exposureMode"] == "custom"
        )
        self.page.wait("document.querySelector('[data-control=exposureMode] select').value === 'custom'")
        # A number that the camera can't have is refused in the bus's own words, and the field goes back.
        self.set("[data-control=brightness] input[type=number]", "900")
        self.page.wait("document.querySelector('.notice.failure').textContent.includes('900')")
        self.page.wait("document.querySelector('[data-control=brightness] input[type=number]').value === '17'")
        # The lease is renewed while the page is there.
        until = time.monotonic() + rig.DEADLINE
        while "device.renew" not in sent(self.page):
            self.assertLess(time.monotonic(), until, "the lease is not renewed")
            self.rig.browser.read(until, "a lease that is renewed")
        self.page.click(".lock-row .plain:not([hidden])")
        self.device(lambda device: device["lock"] is None)
        self.assertEqual(sent(self.page).count("device.lock"), 1)
        self.page.key("Escape")

    def test_zoom_and_lamp(self) -> None:
        self.open_camera()
        self.page.key("+")
        self.device(
            lambda device: device["controls"]["zoomValue"] > 0.05 and not device["controls"]["rampingVideoZoom"]
        )
        self.set(".zoom input", "0.5", "input")
        self.device(lambda device: abs(device["controls"]["zoomValue"] - 0.5) < 0.01)
        self.page.click("[aria-label=Lamp]")
        self.device(lambda device: device["controls"]["torchMode"] == "on")
        self.page.wait("document.querySelector('[aria-label=Lamp]').getAttribute('aria-pressed') === 'true'")
        self.page.click("[aria-label=Lamp]")
        self.set(".zoom input", "0")
        self.device(lambda device: device["controls"]["zoomValue"] < 0.01 and device["controls"]["torchMode"] == "off")
        self.page.key("Escape")
        self.device(lambda device: device["lock"] is None)

    def test_formats_and_rates(self) -> None:
        formats = self.client.formats("cam0")
        small = next(each for each in formats if each.width < 1280)
        self.open_camera()
        self.page.wait(f"document.querySelectorAll('[aria-label=Format] option').length >= {len(formats)}")
        self.set("[aria-label=Format]", small.id)
        self.device(lambda device: device["activeFormat"]["width"] == small.width)
        self.page.wait(
            f"document.querySelector('.picture').width <= {small.width} && document.querySelector('.picture').height "
            "!== 720"
        )
        self.set("[aria-label='Frames per second']", "15")
        self.device(lambda device: device["frameRate"] == 15)
        self.set("[aria-label=Format]", "f3")
        self.device(lambda device: device["activeFormat"]["width"] == 1280)
        self.page.key("Escape")
        self.device(lambda device: device["lock"] is None)

    def test_what_is_refused_is_not_asked_for_without_end(self) -> None:
        self.page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="""{ const send = WebSocket.prototype.send
                WebSocket.prototype.send = function (data) {
                    send.call(this, typeof data === "string" && data.includes('"device.formats"')
                        ? data.replace('"cam0"', '"nobody"') : data)
                } }""",
        )
        self.open_camera()
        sequence = "Number(document.querySelector('.picture').dataset.sequence)"
        self.page.wait(f"{sequence} > {self.page.evaluate(sequence)} + 10")
        # News of the camera may ask again.
        self.assertIn(sent(self.page).count("device.formats"), range(1, 20))

    def test_a_camera_without_places_shows_its_whole_picture(self) -> None:
        for number in range(1, 9):
            frames = self.client.frames("cam0", rendition=f"gray:{16 * number}x0")
            self.addCleanup(frames.close)
            next(frames)
        self.open_camera()
        whole = self.client.call("device.get", {"device": "cam0"})["device"]["activeFormat"]["width"]
        self.page.wait(f"document.querySelector('canvas.picture').width === {whole}")
        sequence = "Number(document.querySelector('.picture').dataset.sequence)"
        self.page.wait(f"{sequence} > {self.page.evaluate(sequence)} + 3")

    def test_profiles_put_settings_back(self) -> None:
        self.open_camera()
        self.page.click("[data-group=Profiles] summary")
        self.set("[data-control=contrast] input[type=range]", "40")
        self.device(lambda device: device["controls"]["contrast"] == 40)
        self.set("[data-group=Profiles] input", "bright")
        self.page.click("[data-group=Profiles] input + button")
        self.page.wait("document.querySelector('[data-group=Profiles] select').value === 'bright'")
        self.set("[data-control=contrast] input[type=range]", "20")
        self.device(lambda device: device["controls"]["contrast"] == 20)
        self.page.click("[data-group=Profiles] select + button")
        self.device(lambda device: device["controls"]["contrast"] == 40)
        self.client.call("profile.delete", {"name": "bright"})
        self.page.key("Escape")
        self.device(lambda device: device["lock"] is None)

    def test_what_interrupts_is_said(self) -> None:
        self.open_camera("cam2")
        self.client.call("fault.inject", {"device": "cam2", "fault": "unplug"})
        self.page.wait(
            "!document.querySelector('.veil').hidden && document.querySelector('.veil').textContent.startsWith("
            "'Not connected')"
        )
        self.page.wait("document.querySelector('.shutter.photo').getAttribute('aria-disabled') === 'true'")
        # The refusal of a picture says less, and changes nothing.
        self.page.forget()
        until = time.monotonic() + rig.DEADLINE
        while not any(b'"error"' in data for data in received(self.page)):
            self.assertLess(time.monotonic(), until, "no picture is refused")
            self.rig.browser.read(until, "a picture that is refused")
        self.page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
        self.assertTrue(self.page.evaluate("document.querySelector('.veil').textContent").startswith("Not connected"))
        self.client.call("fault.inject", {"device": "cam2", "fault": "replug"})
        self.page.wait("document.querySelector('.veil').hidden")
        # At another port it may have others.
        until = time.monotonic() + rig.DEADLINE
        while not {"device.formats", "device.controls"} <= set(sent(self.page)):
            self.assertLess(time.monotonic(), until, "what the camera can is not asked for again")
            self.rig.browser.read(until, "formats and controls that are asked for")


class Captures(rig.WebTestCase):
    def fetch(self, link: str) -> bytes:
        address = self.page.evaluate(f"document.querySelector({json.dumps(link)}).href")
        with urllib.request.urlopen(address) as answer:
            return answer.read()

    def test_a_recording_ends_in_a_movie(self) -> None:
        self.open_camera()
        self.page.evaluate(
            """(() => {
                const it = document.querySelector(".sound select"); it.value = "mic0";
                it.dispatchEvent(new Event("change"))
            })()"""
        )
        self.page.wait("[...document.querySelectorAll('.level i')].some((bar) => parseFloat(bar.style.width) > 5)")
        self.page.key("r")
        self.page.wait("/0:0[1-9]/.test(document.querySelector('.clock').textContent)")
        self.page.key("r")
        self.page.wait("document.querySelector('.notice.good a')")
        data = self.fetch(".notice.good a")
        self.page.evaluate("localStorage.clear()")
        if shutil.which("ffprobe") is None:
            raise unittest.SkipTest("no ffprobe")
        path = self.rig.folder / "movie.mp4"
        path.write_bytes(data)
        told = subprocess.run(
            ["ffprobe", "-v", "error", "-count_packets", "-show_streams", "-of", "json", path], capture_output=True,
            text=True,
        )
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        streams = {stream["codec_type"]: stream for stream in json.loads(told.stdout)["streams"]}
        self.assertEqual((streams["video"]["codec_name"], streams["video"]["width"]), ("h264", 1280))
        self.assertGreater(int(streams["video"]["nb_read_packets"]), 5)
        self.assertEqual(streams["audio"]["codec_name"], "aac")

    def test_a_photo_ends_in_a_file_that_lies_as_it_was_seen(self) -> None:
        self.open_camera()
        self.page.key("t")
        self.page.wait("document.querySelector('.stage').dataset.rotation === '90'")
        self.page.key("p")
        self.page.wait("document.querySelector('.notice.good a')")
        path = self.rig.folder / "photo.jpg"
        path.write_bytes(self.fetch(".notice.good a"))
        with Image.open(path) as image:
            self.assertEqual((image.size, image.getexif()[0x0112]), ((1280, 720), 6))
        if shutil.which("exiftool") is None:
            raise unittest.SkipTest("no exiftool")
        told = subprocess.run(
            ["exiftool", "-json", "-validate", "-warning", "-n", path], capture_output=True, text=True
        )
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertNotIn("Warning", json.loads(told.stdout)[0])

    def test_a_live_photo_has_its_movie(self) -> None:
        self.open_camera()
        self.page.click("[title^='Live photo']")
        self.page.wait("document.querySelector('[title^=\"Live photo\"]').getAttribute('aria-pressed') === 'true'")
        self.page.key("p")
        self.page.wait("document.querySelector('.notice')")
        self.assertEqual(
            self.page.evaluate("document.querySelectorAll('.notice.good a').length"), 2,
            self.page.evaluate("document.querySelector('.notice').textContent"),
        )
        self.assertEqual(self.fetch(".notice.good a + a")[4:8], b"ftyp")
        self.page.click("[title^='Live photo']")
        self.page.wait("document.querySelector('[title^=\"Live photo\"]').getAttribute('aria-pressed') === 'false'")
        with self.client.mirror("state/session/") as mirror:
            mirror.wait(lambda state: not state, rig.DEADLINE)

    def test_a_live_photos_session_ends_with_its_page(self) -> None:
        self.open_camera()
        with self.client.mirror("state/session/") as mirror:
            for how in ("to all cameras", "for another site", "without a word"):
                self.open_camera()
                self.page.click("[title^='Live photo']")
                mirror.wait(lambda state: [each["name"] for each in state.values()] == ["live photos"], rig.DEADLINE)
                self.page.wait(
                    "document.querySelector('[title^=\"Live photo\"]').getAttribute('aria-pressed') === 'true'"
                )
                if how == "without a word":
                    self.page.evaluate("WebSocket.prototype.send = () => {}")
                if how == "to all cameras":
                    self.page.key("Escape")
                else:
                    self.page.open("about:blank")
                with self.subTest(left=how):
                    mirror.wait(lambda state: not state, rig.DEADLINE)

    def test_a_page_that_is_come_back_to_goes_on(self) -> None:
        self.open_camera()
        self.page.open("about:blank")
        self.page.evaluate("setTimeout(() => history.back())")
        self.page.wait("location.hash === '#/camera/cam0' && document.querySelector('.picture[data-sequence]')")
        # Whether it is the page that was left or one read anew is the browser's matter.
        self.page.evaluate("window.last = document.querySelector('.picture').dataset.sequence")
        self.page.wait(
            "document.querySelector('#status').textContent === 'Live' && "
            "document.querySelector('.picture').dataset.sequence !== window.last"
        )
        self.page.key("p")
        self.page.wait("document.querySelector('.notice.good a')")
