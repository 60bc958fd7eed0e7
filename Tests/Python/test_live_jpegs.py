"""JPEG pictures as cameras really send them: incomplete, padded, torn, and of other sizes."""

from __future__ import annotations

import io
import itertools
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Callable, ContextManager, Iterator

import camerabus
from live import Image, LiveTestCase, TIMEOUT

try:
    from PIL import ImageOps
except ImportError:
    pass


class CameraJPEG:
    """One picture as cameras send it: four fields of colour."""

    WIDTH, HEIGHT = 160, 128
    COLOURS = ((200, 40, 60), (30, 180, 90), (40, 60, 210), (220, 210, 80))

    def __init__(self) -> None:
        self.rgb = Image.new("RGB", (self.WIDTH, self.HEIGHT))
        for place, colour in zip(self.fields(self.WIDTH, self.HEIGHT), self.COLOURS):
            self.rgb.paste(colour, place)
        self.plain = self.saved(self.rgb)
        self.segments, self.scan = self.parts(self.plain)

    @staticmethod
    def fields(width: int, height: int) -> list[tuple[int, int, int, int]]:
        across, down = width // 2, height // 2
        return [(x, y, x + across, y + down) for y in (0, down) for x in (0, across)]

    @staticmethod
    def saved(image: Image.Image) -> bytes:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=95, subsampling=0)
        return file.getvalue()

    @staticmethod
    def parts(jpeg: bytes) -> tuple[list[bytes], bytes]:
        segments, index = [], 2
        while jpeg[index + 1] != 0xDA:
            end = index + 2 + int.from_bytes(jpeg[index + 2 : index + 4], "big")
            segments.append(jpeg[index:end])
            index = end
        return segments, jpeg[index:]

    def adobe(self, image: Image.Image, transform: int) -> bytes:
        """Pillow writes the samples as they are; the marker says what they mean."""
        segments, scan = self.parts(self.saved(image))
        marker = b"\xff\xee\x00\x0eAdobe\x00\x64" + bytes(4) + bytes([transform])
        others = [bytearray(segment) for segment in segments if segment[1] not in (0xE0, 0xEE)]
        frame, head = next(segment for segment in others if segment[1] == 0xC0), bytearray(scan)
        # Components are called by numbers, and not by the first letters of inks.
        for number in range(frame[9]):
            frame[10 + 3 * number] = head[5 + 2 * number] = number + 1
        return b"\xff\xd8" + marker + b"".join(others) + head

    def whole(self) -> Iterator[tuple[str, bytes]]:
        tables = b"".join(segment for segment in self.segments if segment[1] != 0xC4)
        yield "without Huffman tables", b"\xff\xd8" + tables + self.scan
        yield "without its end", self.plain[:-2]
        yield "without both", b"\xff\xd8" + tables + self.scan[:-2]
        yield "with zeros behind it", self.plain + bytes(3000)
        yield "with zeros in place of its end", self.plain[:-2] + bytes(3000)
        yield "with garbage behind it", self.plain + bytes(number * 37 % 251 for number in range(3000))
        yield "RGB", self.adobe(Image.frombytes("YCbCr", self.rgb.size, self.rgb.tobytes()), 0)
        inks = self.rgb.convert("CMYK")
        yield "CMYK", self.saved(inks)
        cyan, magenta, yellow, black = inks.split()
        luma = Image.merge("RGB", (cyan, magenta, yellow)).convert("YCbCr").split()
        # Pillow inverts what it writes.
        turned = [channel.point([255 - level for level in range(256)]) for channel in luma]
        yield "YCCK", self.adobe(Image.merge("CMYK", (*turned, black)), 2)

    def undecodable(self) -> Iterator[tuple[str, bytes]]:
        half = len(self.plain) // 2
        yield "torn", self.plain[:half]
        yield "torn, with an end", self.plain[:half] + b"\xff\xd9"
        yield "its beginning alone", self.plain[:200]
        yield "something else", b"GIF89a" * 40


@unittest.skipUnless(Image is not None and shutil.which("ffmpeg"), "needs Pillow and ffmpeg")
class CameraJPEGs(LiveTestCase):
    """Every lane shows a picture, or every lane says why not."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="camerabus-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.picture = CameraJPEG()

    def lanes(self, device: str) -> list[tuple[str, Callable[[], Image.Image]]]:
        def frame(rendition: str) -> Callable[[], Image.Image]:
            def take() -> Image.Image:
                with self.client.frames(device, rendition=rendition, limit=1, timeout=TIMEOUT) as frames:
                    got = next(frames)
                data, size = bytes(got.payload), (got.width, got.height)
                if rendition in ("rgb", "gray"):
                    return Image.frombytes("RGB" if rendition == "rgb" else "L", size, data)
                return Image.open(io.BytesIO(data))

            return take

        def movie(name: str, codec: str) -> Callable[[], Image.Image]:
            def take() -> Image.Image:
                path = self.folder / name
                with self.client.record(device, path=path, codec=codec) as running:
                    ending = running.stop()
                self.assertGreater(ending.frames, 0)
                command = ["ffmpeg", "-v", "error", "-i", str(path), "-frames:v", "1", "-f", "apng", "-"]
                decoded = subprocess.run(command, check=True, capture_output=True)
                path.unlink()
                self.assertEqual(decoded.stderr, b"")
                return Image.open(io.BytesIO(decoded.stdout))

            return take

        def photo() -> Image.Image:
            return self.client.capture_photo(device).photo.image()

        renditions = ["native", "jpeg", "jpeg:80x64", "jpeg;q=95", "jpeg;rotate=180", "rgb", "gray"]
        return [
            *((rendition, frame(rendition)) for rendition in renditions),
            ("photo", photo), ("passThrough", movie("a.mov", "passThrough")), ("h264", movie("b.mp4", "h264")),
        ]

    def judge(self, image: Image.Image, lane: str) -> None:
        image.load()
        isGrey = image.mode == "L"
        found = image if isGrey else image.convert("RGB")
        colours = CameraJPEG.COLOURS[::-1] if "rotate" in lane else CameraJPEG.COLOURS
        for (left, top, right, bottom), colour in zip(CameraJPEG.fields(*found.size), colours):
            middle = found.getpixel(((left + right) // 2, (top + bottom) // 2))
            if isGrey:
                red, green, blue = colour
                self.assertLessEqual(abs(middle - (0.299 * red + 0.587 * green + 0.114 * blue)), 6, lane)
            else:
                self.assertLessEqual(max(abs(a - b) for a, b in zip(middle, colour)), 6, (lane, middle, colour))

    def sending(self, picture: Callable[[int], bytes], fps: int = 25) -> ContextManager[str]:
        return self.camera("jpegs", (CameraJPEG.WIDTH, CameraJPEG.HEIGHT), picture, fps)

    def test_what_cameras_leave_out_or_put_in_is_shown_on_every_lane(self) -> None:
        for name, jpeg in self.picture.whole():
            with self.sending(lambda _, jpeg=jpeg: jpeg) as device:
                for lane, take in self.lanes(device):
                    with self.subTest(f"{name}: {lane}"):
                        self.judge(take(), lane)

    def test_pictures_of_another_size_are_a_new_stream_with_true_headers(self) -> None:
        sizes = [(CameraJPEG.WIDTH, CameraJPEG.HEIGHT), (96, 64), (320, 200)]
        pictures = {size: self.picture.saved(self.picture.rgb.resize(size)) for size in sizes}
        size = sizes[0]
        with self.sending(lambda _: pictures[size]) as device:
            for rendition in ("native", "rgb", "jpeg:48x0"):
                streams: set[str] = set()
                for size in [*sizes, sizes[0]]:
                    own = (48, round(48 * size[1] / size[0])) if ":" in rendition else size
                    with self.client.frames(device, rendition=rendition, timeout=TIMEOUT) as frames:
                        frame = next(frame for frame in frames if (frame.width, frame.height) == own)
                    streams.add(frame.stream)
                    if rendition != "rgb":
                        self.assertEqual(Image.open(io.BytesIO(frame.payload)).size, own)
                    if rendition == "native":
                        self.assertEqual(bytes(frame.payload), pictures[size])
                self.assertGreaterEqual(len(streams), 3)

    def test_a_segment_without_a_length_is_no_damage_for_anybody(self) -> None:
        jpeg = self.picture.plain[:2] + b"\xff\xe1\x00\x01" + self.picture.plain[2:]
        with self.sending(lambda _: jpeg) as device:
            for lane, take in self.lanes(device):
                # In the movie that stores it ffmpeg finds something to say of it.
                if lane != "passThrough":
                    with self.subTest(lane):
                        self.judge(take(), lane)

    # By EXIF's number: how Pillow makes the stored pixels of an upright picture, and what the header says of them.
    TURNS = {
        1: (None, 0, False), 2: ("FLIP_LEFT_RIGHT", 0, True), 3: ("ROTATE_180", 180, False),
        4: ("FLIP_TOP_BOTTOM", 180, True), 5: ("TRANSPOSE", 90, True), 6: ("ROTATE_90", 90, False),
        7: ("TRANSVERSE", 270, True), 8: ("ROTATE_270", 270, False),
    }

    def tagged(self, number: int, **fields: str) -> bytes:
        turn = self.TURNS[number][0]
        stored = self.picture.rgb.transpose(getattr(Image.Transpose, turn)) if turn else self.picture.rgb
        exif = Image.Exif()
        if not fields:
            exif[274] = number
        exif.update({305: text for text in fields.values()})
        file = io.BytesIO()
        stored.save(file, "JPEG", quality=95, subsampling=0, exif=exif.tobytes())
        return file.getvalue()

    def test_the_turn_in_a_pictures_exif_data_is_in_headers_and_on_every_lane_once(self) -> None:
        for number, (_, degrees, mirrored) in self.TURNS.items():
            with self.sending(lambda _, jpeg=self.tagged(number): jpeg) as device:
                with self.client.frames(device, timeout=TIMEOUT) as frames:
                    frame = next(frames)
                self.assertEqual((frame.orientation, frame.mirrored), (degrees, mirrored))
                lanes = self.lanes(device)
                for lane, take in lanes if number in (5, 6) else lanes[:6]:
                    with self.subTest(f"{number}: {lane}"):
                        self.judge(ImageOps.exif_transpose(take()), lane)

    def test_a_picture_that_says_how_it_is_turned_holds_over_its_source_and_others_do_not(self) -> None:
        # EXIF data without an orientation say nothing of the kind.
        pictures = {90: self.tagged(6, software="none"), 180: self.tagged(3), 0: self.tagged(1)}
        size = (CameraJPEG.HEIGHT, CameraJPEG.WIDTH)
        with self.client.create_source("turned", *size, "jpeg", orientation=90) as source:
            for degrees in (90, 180, 90, 0):
                with self.client.frames(source.device, rendition="jpeg", timeout=TIMEOUT) as frames:
                    sending = self.while_sending(frames, lambda _, now: source.send(pictures[degrees], timestamp=now))
                    frame = next(frame for frame in sending if frame.orientation == degrees)
                image = Image.open(io.BytesIO(frame.payload))
                self.assertEqual(image.size, (frame.width, frame.height))
                self.judge(ImageOps.exif_transpose(image), f"{degrees}")

    def test_a_session_follows_the_size_of_the_pictures_without_setting_its_camera(self) -> None:
        sizes = [(CameraJPEG.WIDTH, CameraJPEG.HEIGHT), (320, 200), (96, 64), (CameraJPEG.WIDTH, CameraJPEG.HEIGHT)]
        pictures = {size: self.picture.saved(self.picture.rgb.resize(size)) for size in sizes}
        size = sizes[0]
        streams: set[str] = set()
        with self.sending(lambda _: pictures[size]) as device:
            with self.client.session(device, outputs="videoData") as session, session.frames(timeout=TIMEOUT) as frames:
                for size in sizes:
                    frame = next(frame for frame in frames if (frame.width, frame.height) == size)
                    streams.add(frame.stream)
                    image = Image.frombytes("RGB", size, bytes(frame.payload), "raw", "BGR")
                    self.judge(image, f"{size}")
                    state = session.refresh().state
                    self.assertEqual([(each.width, each.height) for each in state.resolved], [size])
                    self.assertEqual([each.why for each in state.resolved], [None])
                    said = f"have {size[0]}x{size[1]}, although its format has 160x128"
                    self.assertEqual(any(said in each for each in state.explanation), size != sizes[0])
                    now = self.client.device(device)
                    self.assertEqual((now.generation, now.activeFormat.width, now.activeFormat.id), (0, 160, "f0"))
            # Nobody has set the camera anew.
            self.assertEqual(len(streams), len(sizes))

    def test_an_undecodable_picture_is_reported_on_every_lane_with_its_reason(self) -> None:
        for name, jpeg in self.picture.undecodable():
            with self.sending(lambda _, jpeg=jpeg: jpeg) as device:
                for lane, take in self.lanes(device):
                    with self.subTest(f"{name}: {lane}"):
                        with self.assertRaisesRegex(camerabus.InternalError, "are damaged: "):
                            take()

    def test_damaged_pictures_among_others_are_left_out_and_counted(self) -> None:
        torn = [jpeg for name, jpeg in self.picture.undecodable() if name in ("torn", "its beginning alone")]
        pictures = [self.picture.plain, *torn]
        with self.sending(lambda number: pictures[number % 3], fps=50) as device:
            for rendition in ("native", "jpeg", "jpeg:80x64", "gray"):
                with self.client.frames(device, rendition=rendition, limit=8, timeout=TIMEOUT) as frames:
                    counts = [frame.dropped for frame in frames]
                self.assertGreaterEqual(counts[-1] - counts[0], 14, rendition)
            for name, codec in (("a.mkv", "passThrough"), ("b.mp4", "h264")):
                with self.client.record(device, path=self.folder / name, codec=codec, duration=1) as movie:
                    ending = movie.wait(TIMEOUT)
                self.assertGreater(ending.frames, 3)
                self.assertGreaterEqual(ending.dropped, 2 * (ending.frames - 1), codec)

    def test_a_movie_goes_on_after_a_time_of_damaged_pictures(self) -> None:
        torn = dict(self.picture.undecodable())["torn"]
        picture = self.picture.plain
        with self.sending(lambda _: picture, fps=50) as device:
            with self.client.record(device, path=self.folder / "a.mov", codec="passThrough") as movie:
                picture = torn
                with self.assertRaisesRegex(camerabus.InternalError, "are damaged: "):
                    with self.client.frames(device, errors="raise", timeout=TIMEOUT) as frames:
                        for _ in frames:
                            pass
                picture = self.picture.plain
                # The error is told until a whole one has come.
                with self.client.frames(device, errors="frames", timeout=TIMEOUT) as frames:
                    whole = (bytes(frame.payload) for frame in frames if frame.error is None)
                    self.assertEqual(set(itertools.islice(whole, 5)), {self.picture.plain})
                ending = movie.stop()
            self.assertEqual(ending.reason, "stopped")
            self.assertGreaterEqual(ending.dropped, 10)
            self.assertGreaterEqual(ending.frames, 5)
