"""Photos on a real bus, in Python and on the command line: what is in the files is read by Pillow, and by exiftool
where it is installed.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import camerabus
from camerabus import AsyncClient, Photo, PhotoStage
from live import Image, LiveTestCase, TIMEOUT

try:
    from picture_counter import read_image
except ImportError:
    read_image = None  # type: ignore[assignment]

STAGES = ["willBeginCapture", "willCapturePhoto", "didCapturePhoto", "didFinishProcessingPhoto", "didFinishCapture"]
#: EXIF's tags of what every photo has.
MAKE, MODEL, ORIENTATION, SOFTWARE, EXIF_IFD, DATE_TIME, DATE_TIME_ORIGINAL, SUB_SECONDS, OFFSET, UNIQUE_ID = (
    0x010F, 0x0110, 0x0112, 0x0131, 0x8769, 0x0132, 0x9003, 0x9291, 0x9011, 0xA420,
)  # fmt: skip


class PhotoTestCase(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        if "photos" not in self.client.hello.features:
            self.skipTest("the bus takes no photos")
        folder = tempfile.TemporaryDirectory(prefix="camerabus-photos-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        with self.client.lock(self.first, self.second, wait=TIMEOUT):
            before = {name: self.client.device(name).activeFormat for name in (self.first, self.second)}
            self.client.configure(
                [
                    {"device": name, "activeFormat": {"pixelFormat": "MJPG", "width": 640, "height": 480}}
                    for name in before
                ]
            )
        self.addCleanup(self.restore, before)

    def restore(self, before: dict[str, camerabus.ActiveFormat]) -> None:
        with self.client.lock(*before, wait=TIMEOUT):
            self.client.configure([
                {
                    "device": name,
                    "activeFormat": {"pixelFormat": was.pixelFormat, "width": was.width, "height": was.height},
                }
                for name, was in before.items()
            ])  # fmt: skip

    def set_rate(self, rate: float) -> None:
        """Sets the first camera's frames a second for this test."""
        self.addCleanup(self.configure_rate, self.client.device(self.first).frameRate)
        self.configure_rate(rate)

    def configure_rate(self, rate: float) -> None:
        with self.client.lock(self.first, wait=TIMEOUT):
            self.client.configure(self.first, frameRate=rate)

    def expose(self) -> dict[str, Any]:
        """Sets the first camera's exposure by hand for this test."""
        self.client.set(self.first, exposureDuration=0.008, ISO=100)
        self.addCleanup(lambda: self.client.set(self.first, exposureMode="continuousAutoExposure"))
        return self.exposure()

    def exposure(self) -> dict[str, Any]:
        """How it is exposed now."""
        controls = self.client.device(self.first).controls
        return {name: controls.get(name) for name in ("exposureMode", "exposureDuration", "ISO", "exposureTargetBias")}

    def counter(self, photo: Photo) -> Any:
        """What the picture says of itself: which frame it is, and when it was made."""
        if Image is None or read_image is None:
            self.skipTest("Pillow is not installed")
        found = read_image(photo.image())
        self.assertIsNotNone(found)
        return found

    def brightness(self, photo: Photo) -> float:
        """The mean of the picture's lower half, below what is written into it."""
        if Image is None:
            self.skipTest("Pillow is not installed")
        grey = photo.image().convert("L")
        grey = grey.crop((0, grey.height // 2, grey.width, grey.height))
        return sum(grey.tobytes()) / (grey.width * grey.height)


class Photos(PhotoTestCase):
    def test_a_photo_is_taken_after_the_request_and_describes_itself(self) -> None:
        before = time.monotonic_ns()
        photo = self.client.capture_photo(self.first, thumbnail=True).photo
        self.assertEqual((photo.device, photo.index, photo.fileType, photo.error), (self.first, 0, "jpeg", None))
        self.assertEqual(len(photo.data), photo.bytes)
        self.assertGreater(photo.timestamp.monotonic, before)
        counter = self.counter(photo)
        self.assertEqual(counter.counter, photo.sequence % 2**32)
        self.assertGreaterEqual(counter.clock, before // 1000)
        image = photo.image()
        self.assertEqual(image.size, (photo.width, photo.height))
        tags = image.getexif()
        self.assertTrue(tags[SOFTWARE] and tags[MODEL])
        details = tags.get_ifd(EXIF_IFD)
        self.assertTrue(details[UNIQUE_ID] and details[SUB_SECONDS] and details[OFFSET])
        taken = time.strftime("%Y:%m:%d %H:%M:%S", time.localtime(photo.timestamp.realtime // 10**9))
        self.assertEqual(details[DATE_TIME_ORIGINAL], taken)
        if shutil.which("exiftool"):
            self.judge(photo)

    def judge(self, photo: Photo) -> None:
        photo.save(self.folder / "a.jpg")
        told = subprocess.run(
            ["exiftool", "-json", "-validate", "-warning", "-n", self.folder / "a.jpg"], capture_output=True, text=True
        )
        self.assertEqual(told.returncode, 0, told.stderr)
        (tags,) = json.loads(told.stdout)
        self.assertNotIn("Warning", tags)
        told = subprocess.run(["exiftool", "-b", "-ThumbnailImage", self.folder / "a.jpg"], capture_output=True)
        self.assertEqual(told.stdout[:2], b"\xff\xd8")

    def test_stages_are_told_in_their_order(self) -> None:
        told: list[PhotoStage] = []
        capture = self.client.capture_photo(self.first, self.second, on_stage=told.append)
        self.assertEqual([stage.event for stage in told], [*STAGES[:4], STAGES[3], STAGES[4]])
        processed = {stage.photo.device for stage in told if stage.photo}
        self.assertEqual((processed, told[-1].error), ({self.first, self.second}, None))
        self.assertEqual((told[0].raw["expectedPhotoCount"], told[0].uniqueID), (2, capture.uniqueID))
        with self.assertRaises(camerabus.PhotoSettingsReused):
            self.client.capture_photo(self.first, unique_id=capture.uniqueID)

    def test_several_cameras_are_of_one_moment(self) -> None:
        capture = self.client.capture_photo(self.first, self.second)
        self.assertEqual([photo.device for photo in capture.photos], [self.first, self.second])
        times = [photo.timestamp.monotonic for photo in capture.photos]
        self.assertEqual(capture.spread, max(times) - min(times))
        # Both have a frame within one of the slower one's periods.
        slowest = min(self.client.device(name).frameRate for name in (self.first, self.second))
        self.assertLess(capture.spread, 1.5e9 / slowest)

    def test_a_bracket_is_brighter_from_step_to_step(self) -> None:
        before = self.client.device(self.first).controls
        photos = self.client.capture_photo(self.first, bracket=[-2, 0, 2]).photos
        levels = [self.brightness(photo) for photo in photos]
        self.assertEqual([photo.index for photo in photos], [0, 1, 2])
        self.assertTrue(levels[0] < levels[1] < levels[2], levels)
        after = self.client.device(self.first).controls
        for name in ("exposureMode", "exposureTargetBias"):
            self.assertEqual(after.get(name), before.get(name), name)

    def test_a_bracket_of_a_locked_exposure_is_that_of_the_exposure_that_was_locked(self) -> None:
        self.addCleanup(self.client.reset_focus_and_exposure, self.first)
        # Where the picture is darker than the middle, so that the exposure is another one than the camera begins with.
        self.client.expose(self.first, (0.95, 0.5))
        self.await_exposure("continuousAutoExposure")
        free = self.client.capture_photo(self.first, bracket=[-2, 0, 2])
        command = subprocess.run(
            ["camerabus", "expose", self.first, "0.95,0.5", "--then-lock"], capture_output=True, text=True
        )
        self.assertEqual(command.returncode, 0, command.stderr)
        self.await_exposure("locked")
        before = self.exposure()
        self.assertGreater(before["exposureDuration"], 0.03)
        locked = self.client.capture_photo(self.first, bracket=[-2, 0, 2])
        self.assertEqual((free.adjusted, locked.adjusted), ((), ()))
        for one, other in zip(map(self.brightness, free.photos), map(self.brightness, locked.photos)):
            self.assertAlmostEqual(one, other, delta=3)
        self.assertEqual(self.exposure_tags(free.photos), self.exposure_tags(locked.photos))
        levels = list(map(self.brightness, locked.photos))
        self.assertTrue(levels[0] * 1.3 < levels[1] and levels[1] * 1.05 < levels[2], levels)
        self.assertEqual(self.exposure(), before)
        # What is set ends the lock.
        answer = self.client.set(self.first, exposureDuration=0.01, ISO=200)
        self.assertEqual(answer.adjusted, ())
        now = self.exposure()
        self.assertEqual((now["exposureMode"], now["exposureDuration"], now["ISO"]), ("custom", 0.01, 200))

    def test_a_profile_is_applied_over_a_locked_exposure(self) -> None:
        self.addCleanup(self.client.reset_focus_and_exposure, self.first)
        wanted = self.expose()
        self.client.save_profile("by-hand", self.first)
        self.addCleanup(self.client.delete_profile, "by-hand")
        self.client.expose(self.first, (0.5, 0.5), then_lock=True)
        self.await_exposure("locked")
        for dry_run in (True, False):
            answer = self.client.apply_profile("by-hand", self.first, dry_run=dry_run)
            self.assertEqual((answer.verdict, answer.adjusted), ("valid", ()), dry_run)
        self.assertEqual(self.exposure(), wanted)

    def await_exposure(self, mode: str) -> None:
        """Waits until the first camera's exposure has settled in a mode."""
        topic = f"state/device/{self.first}/"
        wanted = {"exposureMode": mode, "adjustingExposure": False}
        with self.client.mirror(topic) as mirror:
            mirror.wait(lambda state: wanted.items() <= state[topic]["controls"].items(), TIMEOUT)

    def exposure_tags(self, photos: list[Photo]) -> list[tuple[float, int]]:
        """Seconds and sensitivity, as exiftool reads them."""
        if not shutil.which("exiftool"):
            self.skipTest("exiftool is not installed")
        for photo in photos:
            photo.save(self.folder / f"{photo.index}.jpg", overwrite=True)
        names = [str(self.folder / f"{photo.index}.jpg") for photo in photos]
        told = subprocess.run(
            ["exiftool", "-json", "-n", "-ExposureTime", "-ISO", *names], capture_output=True, text=True, check=True
        )
        return [(tags["ExposureTime"], tags["ISO"]) for tags in json.loads(told.stdout)]

    def test_an_exposure_that_was_set_is_back_after_a_bracket(self) -> None:
        before = self.expose()
        photos = self.client.capture_photo(self.first, bracket_durations=["1/500", "1/60"]).photos
        self.assertLess(*map(self.brightness, photos))
        self.assertEqual([round(1 / photo.exposure["duration"], -1) for photo in photos], [500, 60])
        self.assertEqual(self.exposure(), before)

    def test_a_burst_is_frame_after_frame(self) -> None:
        # So slowly that none has to be left out, however slow the machine.
        self.set_rate(10)
        photos = self.client.capture_photo(self.first, burst=4).photos
        self.assertEqual([photo.sequence - photos[0].sequence for photo in photos], [0, 1, 2, 3])
        self.assertEqual([self.counter(photo).counter for photo in photos], [photo.sequence for photo in photos])

    def test_a_raw_picture_is_had_where_the_camera_gives_one(self) -> None:
        with self.assertRaises(camerabus.PhotoFormatUnavailable) as caught:
            self.client.capture_photo(self.first, format="dng")
        self.assertEqual(caught.exception.available, {"photo": ["jpeg", "png", "tiff"], "raw": []})
        formats = [
            format
            for format in self.client.formats(self.first)
            if format.pixelFormat in ("GREY", "RGGB", "BA81", "GBRG", "GRBG")
        ]
        if not formats:
            self.skipTest("the virtual camera has no raw format")
        with self.client.lock(self.first, wait=TIMEOUT):
            self.client.configure(self.first, activeFormat=formats[0].id)
            try:
                photo = self.client.capture_photo(self.first, format="dng").photo
            except camerabus.PhotoFormatUnavailable as error:
                self.assertEqual(error.available["raw"], [])
                self.skipTest(f"the bus makes no DNG of {formats[0].pixelFormat}")
        self.assertEqual(photo.fileType, "dng")
        self.assertIn(photo.data[:4], (b"II*\0", b"MM\0*"))
        if shutil.which("dcraw") and Image is not None and read_image is not None:
            photo.save(self.folder / "a.dng")
            developed = subprocess.run(["dcraw", "-c", self.folder / "a.dng"], capture_output=True)
            self.assertEqual(developed.returncode, 0, developed.stderr)
            image = Image.open(io.BytesIO(developed.stdout))
            self.assertEqual(image.size, (photo.width, photo.height))
            counter = read_image(image)
            self.assertEqual(counter and counter.counter, photo.sequence % 2**32)

    def test_a_photo_and_its_raw_picture_are_of_one_frame(self) -> None:
        if "photosWithRaw" not in self.client.hello.features:
            self.skipTest("the bus takes no raw picture with a photo")
        with self.assertRaises(camerabus.PhotoFormatUnavailable) as caught:
            self.client.capture_photo(self.first, raw=True)
        self.assertEqual(caught.exception.available["raw"], [])
        size = {"width": 640, "height": 480}
        with self.client.lock(self.first, wait=TIMEOUT):
            self.client.configure(self.first, activeFormat={"pixelFormat": "RGGB", **size})
            stages: list[PhotoStage] = []
            capture = self.client.capture_photo(
                self.first, raw=True, burst=2, deliver=["reply", "library"], on_stage=stages.append
            )
            with self.client.session(self.first, preset="inputPriority", outputs="photo") as session:
                photo, raw = self.client.capture_photo(session=session.id, format="png", raw=True).photos
        self.assertEqual((photo.fileType, photo.data[:4], raw.fileType), ("png", b"\x89PNG", "dng"))
        self.assertEqual([stage.event for stage in stages], [*STAGES[:3], *[STAGES[3]] * 4, STAGES[4]])
        self.assertEqual((capture.expectedPhotoCount, capture.resolved["devices"][0]["raw"]), (4, size))
        self.assertEqual([photo.fileType for photo in capture.photos], ["jpeg", "dng"] * 2)
        entries = {entry.id: entry for entry in self.client.library(photo=capture.uniqueID).entries}
        for photo, raw in (capture.photos[:2], capture.photos[2:]):
            self.addCleanup(self.client.delete_from_library, photo.id)
            self.addCleanup(self.client.delete_from_library, raw.id)
            self.assertEqual(
                (photo.index, photo.sequence, photo.timestamp, photo.stream),
                (raw.index, raw.sequence, raw.timestamp, raw.stream),
            )
            self.assertEqual(os.path.splitext(photo.path)[0], os.path.splitext(raw.path)[0])
            for each in (photo, raw):
                self.assertEqual(Path(each.path).read_bytes(), each.data)
                self.assertEqual((entries[each.id].path, entries[each.id].fileType), (each.path, each.fileType))
                self.assertEqual(entries[each.id].photo.index, each.index)
            if shutil.which("exiftool"):
                found = [
                    json.loads(subprocess.check_output(["exiftool", "-json", "-n", each.path]))[0]
                    for each in (photo, raw)
                ]
                self.assertEqual([each["FileType"] for each in found], ["JPEG", "DNG"])
                for tag in ("DateTimeOriginal", "SubSecTimeOriginal", "ExposureTime", "Orientation"):
                    self.assertEqual(found[0][tag], found[1][tag], tag)
                self.assertNotEqual(found[0]["ImageUniqueID"], found[1]["ImageUniqueID"])
            if shutil.which("dcraw") and Image is not None and read_image is not None:
                developed = subprocess.check_output(["dcraw", "-c", raw.path])
                counters = [read_image(Image.open(io.BytesIO(data))) for data in (photo.data, developed)]
                self.assertEqual([counter and counter.counter for counter in counters], [photo.sequence % 2**32] * 2)

    def test_a_photo_has_a_size_of_one_s_choice(self) -> None:
        if "maxPhotoDimensions" not in self.client.hello.features:
            self.skipTest("the bus takes no photos of a size of one's choice")
        for asked, given in (((1920, 1079), (1280, 720)), ((400, 300), (320, 240))):
            photo = self.client.capture_photo(self.first, max_photo_dimensions=asked).photo
            self.assertEqual((photo.width, photo.height), given)
            if Image is not None:
                self.assertEqual(photo.image().size, given)
        self.assertEqual(self.client.device(self.first).activeFormat.width, 640)
        with self.assertRaisesRegex(camerabus.FormatUnsupported, "no photo within 64x48 now; its sizes are 320x240, "):
            self.client.capture_photo(self.first, max_photo_dimensions=(64, 48))

    def test_the_library_keeps_it(self) -> None:
        photo = self.client.capture_photo(self.first, deliver=["library"]).photo
        self.assertIsNone(photo.data)
        entry = self.client.library_entry(photo.id)
        self.addCleanup(lambda: os.path.exists(photo.path) and self.client.delete_from_library(photo.id))
        self.assertEqual(
            (entry.kind, entry.state, entry.path, entry.size), ("photo", "finished", photo.path, photo.bytes)
        )
        self.assertIn(photo.id, [found.id for found in self.client.library(kind="photo").entries])
        self.assertEqual(Path(photo.path).stat().st_size, photo.bytes)
        self.assertEqual(self.client.delete_from_library(photo.id), [photo.path])
        self.assertFalse(os.path.exists(photo.path))

    def test_a_session_takes_photos_while_it_runs(self) -> None:
        with self.client.session(self.first, outputs=["photo", "videoData"]) as session:
            photo = self.client.capture_photo(session=session.id).photo
            self.assertEqual(photo.device, self.first)
            session.stop()
            with self.assertRaises(camerabus.SessionNotRunning):
                self.client.capture_photo(session=session.id)

    def test_many_at_once_have_their_turns(self) -> None:
        async def program() -> list[Photo]:
            async with AsyncClient(timeout=TIMEOUT) as client:
                cameras = [self.first, self.second] * 4
                return [each.photo for each in await asyncio.gather(*(client.capture_photo(name) for name in cameras))]

        photos = asyncio.run(program())
        self.assertEqual([photo.device for photo in photos], [self.first, self.second] * 4)
        self.assertTrue(all(photo.data for photo in photos))


@unittest.skipIf(shutil.which("camerabus") is None, "camerabus is not in the PATH")
class Command(PhotoTestCase):
    def photo(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            ["camerabus", "photo", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=2 * TIMEOUT
        )
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def test_a_file_for_each_camera(self) -> None:
        result = self.photo(self.first, self.second, "-o", "shot.jpg", "--stages")
        names = [f"shot-{self.first}.jpg", f"shot-{self.second}.jpg"]
        self.assertEqual((result.stdout.splitlines(), self.names()), (names, sorted(names)))
        self.assertRegex(
            result.stderr,
            r"(?s)^willBeginCapture .*\(2 photos\)\nwillCapturePhoto\n.*didFinishCapture\n.*within .* ms\.\n$",
        )
        for name in names:
            self.assertEqual((self.folder / name).read_bytes()[:2], b"\xff\xd8")
        self.photo(self.first, self.second, "-o", "shot.jpg", status=1)

    def test_names_of_their_own_and_json(self) -> None:
        answer, = map(json.loads, self.photo(self.first, "--burst", "3", "--json").stdout.splitlines())
        self.assertEqual(sorted(photo["file"] for photo in answer["photos"]), self.names())
        self.assertEqual(len(self.names()), 3)

    def test_standard_output_and_the_library(self) -> None:
        result = subprocess.run(["camerabus", "photo", self.first, "-o", "-"], capture_output=True, timeout=2 * TIMEOUT)
        self.assertEqual((result.returncode, result.stdout[:2]), (0, b"\xff\xd8"))
        path = self.photo(self.first, "--library").stdout.rstrip("\n")
        self.addCleanup(self.forget, path)
        self.assertEqual((Path(path).read_bytes()[:2], self.names()), (b"\xff\xd8", []))

    def forget(self, path: str) -> None:
        for entry in self.client.library(kind="photo").entries:
            if entry.path == path:
                self.client.delete_from_library(entry.id)

    def test_a_time_lapse_ends_with_ctrl_c(self) -> None:
        command = ["camerabus", "photo", self.first, "--every", "0.2", "-o", "l-%03d.jpg"]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.assertEqual([process.stdout.readline() for _ in range(2)], ["l-001.jpg\n", "l-002.jpg\n"])
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 130, errors)
        self.assertRegex(errors, r"Interrupted after \d+ photos\.\n$")
        self.assertFalse([name for name in self.names() if not name.endswith(".jpg")])

    def test_the_exposure_is_back_after_a_kill_in_the_middle_of_a_bracket(self) -> None:
        before = self.expose()
        program = (
            f"from camerabus import Client; Client(name='killed').capture_photo({self.first!r}, "
            "bracket_durations=['1/500', '1/60'] * 8, on_stage=lambda stage: print(stage.event, flush=True))"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program], env=self.environment(), stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), "willBeginCapture\n")
        process.kill()
        topic = f"state/device/{self.first}/"
        with self.client.mirror(topic) as mirror:
            mirror.wait(lambda state: state[topic]["photo"]["readiness"] in ("ready", "notRunning"), TIMEOUT)
            mirror.wait(lambda state: {name: state[topic]["controls"].get(name) for name in before} == before, TIMEOUT)
        self.assertTrue(self.client.capture_photo(self.first).photo.data)
