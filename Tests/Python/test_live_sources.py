"""Frames of our own as a device."""

from __future__ import annotations

import asyncio
import io
import itertools
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from fractions import Fraction
from pathlib import Path

import camerabus
from camerabus import AsyncClient, FormatExtensions
from live import Image, LiveTestCase, RUNTIME_DIR, TIMEOUT

if Image is not None:
    from PIL import ImageChops, ImageStat
try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


class Sources(LiveTestCase):
    def gone(self, device: str) -> bool:
        return device not in [one.id for one in self.client.devices()]

    def test_frames_are_what_was_sent_and_when(self) -> None:
        with self.client.create_source("A test", 64, 48, "gray", fps=25) as source:
            self.assertEqual((source.device, source.uniqueID, source.frame_bytes), ("a-test", "client-A-test", 64 * 48))
            device = self.client.device(source.device)
            self.assertTrue(device.connected)
            self.assertEqual(self.client.formats(source.device)[0].pixelFormat, "GREY")
            with self.client.frames(source.device, limit=1) as frames:
                self.streaming(source.device)
                taken = time.monotonic_ns()
                self.assertTrue(source.send(bytes(range(64)) * 48, timestamp=taken))
                frame = next(frames)
            self.assertEqual(bytes(frame.payload), bytes(range(64)) * 48)
            self.assertEqual((frame.timestamp.monotonic, frame.timestamp.source), (taken, "startOfExposure"))
            self.assertEqual(source.dropped, 0)
        self.assertTrue(self.gone("a-test"))

    def test_a_camera_behind_a_filter(self) -> None:
        with (
            self.client.create_source("filtered", 320, 180) as source,
            self.client.frames(source.device, limit=3) as filtered,
            self.client.frames(self.first, rendition="bgr:320x180", limit=3) as frames,
        ):
            self.streaming(source.device)
            for frame in frames:
                source.send(frame.payload, timestamp=frame.timestamp)
                got = next(filtered)
                self.assertEqual(bytes(got.payload), bytes(frame.payload))
                self.assertEqual(got.timestamp.monotonic, frame.timestamp.monotonic)

    def test_colours_are_those_that_the_source_states(self) -> None:
        weights = {"smpte170m": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020nc": (0.2627, 0.0593)}
        for matrix, (red, blue) in weights.items():
            for color_range in ("video", "full"):
                for color in ((0, 255, 0), (200, 60, 40)):
                    with self.subTest(f"{matrix} {color_range} {color}"):
                        luma = red * color[0] + (1 - red - blue) * color[1] + blue * color[2]
                        chroma = (color[2] - luma) / (2 * (1 - blue)), (color[0] - luma) / (2 * (1 - red))
                        scale, black, reach = (1, 0, 1) if color_range == "full" else (219 / 255, 16, 224 / 255)
                        y, u, v = round(luma * scale + black), *(round(part * reach + 128) for part in chroma)
                        u, v = min(u, 255), min(v, 255)
                        self.check_colour(matrix, color_range, bytes((y, u, y, v)), color, round(luma))

    def check_colour(
        self, matrix: str, color_range: str, pair: bytes, color: tuple[int, int, int], luma: int
    ) -> None:
        stated = FormatExtensions(yCbCrMatrix=matrix, colorRange=color_range, pixelAspectRatio=Fraction(64, 45))
        with self.client.create_source("colours", 64, 48, "yuyv", extensions=stated) as source:
            for rendition, wanted in (("native", None), ("rgb", color), ("gray", (luma,))):
                with self.client.frames(source.device, rendition=rendition, limit=1) as frames:
                    self.streaming(source.device)
                    while not source.send(pair * (32 * 48)):
                        pass
                    frame = next(frames)
                self.assertEqual(frame.extensions.pixelAspectRatio, Fraction(64, 45))
                if wanted is None:
                    self.assertEqual(frame.extensions.yCbCrMatrix, matrix)
                    self.assertEqual(frame.extensions.colorRange, color_range)
                else:
                    found = bytes(frame.payload[: len(wanted)])
                    self.assertLessEqual(max(abs(a - b) for a, b in zip(found, wanted)), 2, (rendition, list(found)))

    def test_what_is_made_of_a_turned_source_is_upright(self) -> None:
        picture = bytes(64) + bytes([255]) * 64
        with self.client.create_source("turned", 16, 8, "gray", orientation=90, mirrored=True) as source:
            for rendition in ("native", "gray"):
                with self.client.frames(source.device, rendition=rendition, limit=1) as frames:
                    self.streaming(source.device)
                    while not source.send(picture):
                        pass
                    frame = next(frames)
                if rendition == "native":
                    self.assertEqual((frame.orientation, frame.mirrored, frame.width), (90, True, 16))
                else:
                    # Turned clockwise the upper half is on the right, and mirrored then on the left.
                    self.assertEqual((frame.orientation, frame.mirrored, frame.width, frame.height), (0, False, 8, 16))
                    self.assertEqual(bytes(frame.payload[:8]), bytes(4) + bytes([255]) * 4)

    def made(self, source: camerabus.Source, picture: bytes, rendition: str) -> camerabus.Frame:
        with self.client.frames(source.device, rendition=rendition, limit=1) as frames:
            self.streaming(source.device)
            while not source.send(picture):
                pass
            return next(frames)

    @unittest.skipIf(Image is None, "Pillow is not there")
    def test_a_crop_is_that_part_of_the_picture(self) -> None:
        whole = Image.radial_gradient("L").resize((161, 121))
        whole = Image.merge("RGB", (whole, whole.transpose(Image.Transpose.ROTATE_180), whole.point(lambda v: 255 - v)))
        picture = whole.tobytes()
        with self.client.create_source("cropped", 161, 121, "rgb") as source:
            for width, height, x, y in ((161, 121, 0, 0), (64, 48, 32, 24), (33, 27, 101, 71), (1, 1, 160, 120)):
                crop = f"crop={width}x{height}+{x}+{y}"
                wanted = whole.crop((x, y, x + width, y + height))
                with self.subTest(crop):
                    frame = self.made(source, picture, f"rgb,{crop}")
                    self.assertEqual((frame.width, frame.height, frame.rendition), (width, height, f"rgb;{crop}"))
                    self.assertEqual(bytes(frame.payload), wanted.tobytes())
                    # It is turned after it is cut, and one spelling is on the wire.
                    turned = self.made(source, picture, f"rgb,{crop},rotate=90")
                    self.assertEqual(turned.rendition, f"rgb;{crop};rotate=90")
                    self.assertEqual(bytes(turned.payload), wanted.transpose(Image.Transpose.ROTATE_270).tobytes())
                    encoded = self.made(source, picture, f"jpeg;q=95;{crop}")
                    got = Image.open(io.BytesIO(bytes(encoded.payload)))
                    self.assertEqual(got.size, (width, height))
                    self.assertLess(self.far(got, wanted), 3)
            # As ffmpeg cuts and scales.
            filtered = subprocess.run(
                ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "161x121", "-i", "-", "-vf",
                 "crop=100:80:31:21,scale=50:40:flags=area", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                input=picture, capture_output=True, check=True,
            ).stdout
            frame = self.made(source, picture, "rgb:50x40;crop=100x80+31+21")
            self.assertLess(self.far(Image.frombytes("RGB", (50, 40), bytes(frame.payload)),
                                     Image.frombytes("RGB", (50, 40), filtered)), 2)
            with self.assertRaises(camerabus.FormatUnsupported) as refused:
                self.made(source, picture, "rgb;crop=100x80+62+0")
            self.assertEqual(refused.exception.data["nearest"], {"width": 100, "height": 80, "x": 61, "y": 0})

    @unittest.skipIf(Image is None, "Pillow is not there")
    def test_a_crop_of_a_jpeg_is_that_part_of_the_picture(self) -> None:
        gradient = Image.radial_gradient("L").resize((160, 120))
        inks = Image.merge("CMYK", (gradient, gradient.rotate(180), gradient.point(lambda v: 255 - v), gradient))
        for whole in (inks, inks.convert("RGB"), gradient):
            with self.subTest(whole.mode), self.client.create_source("pressed", 160, 120, "jpeg") as source:
                file = io.BytesIO()
                whole.save(file, "JPEG", quality=95)
                decoded = Image.open(file).convert("RGB")
                for x, y, size in ((64, 32, ""), (31, 17, ""), (64, 32, ":32x24"), (31, 17, ":33x21")):
                    frame = self.made(source, file.getvalue(), f"rgb{size},crop=64x48+{x}+{y}")
                    wanted = decoded.crop((x, y, x + 64, y + 48)).resize((frame.width, frame.height))
                    got = Image.frombytes("RGB", (frame.width, frame.height), bytes(frame.payload))
                    self.assertLess(self.far(got, wanted), 3, (x, y, size))

    def far(self, one: Image.Image, other: Image.Image) -> float:
        return max(ImageStat.Stat(ImageChops.difference(one.convert("RGB"), other)).mean)

    def test_a_frame_of_another_size_is_refused_here(self) -> None:
        with self.client.create_source("small", 8, 8, "rgb") as source:
            for wrong in (b"", bytes(191), bytes(193)):
                with self.assertRaises(ValueError):
                    source.send(wrong)
            self.assertTrue(source.send(bytearray(192)))
        with self.assertRaises(ValueError):
            source.send(bytes(192))

    def test_an_array_of_another_shape_is_refused_here(self) -> None:
        with self.client.create_source("wide", 16, 8, "rgb") as source:
            pixels = memoryview(bytes(384))
            for wrong in (pixels.cast("B", (16, 8, 3)), pixels.cast("b", (8, 16, 3)), pixels.cast("B", (8, 48))):
                with self.assertRaisesRegex(ValueError, r"the shape \(8, 16, 3\)"):
                    source.send(wrong)
            self.assertTrue(source.send(pixels.cast("B", (8, 16, 3))))

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_samples_of_more_than_8_bits_arrive_as_they_were_sent(self) -> None:
        # Odd sides: none of these pixels share anything.
        samples = (numpy.arange(33 * 17, dtype=numpy.uint32) * 40503 % 65536).astype(numpy.uint16).reshape(17, 33)
        for format, bits in (("gray16", 16), ("Y10", 10), ("Y12", 12), ("Z16", 16), ("RG12", 12), ("GB16", 16)):
            with self.subTest(format), self.client.create_source("deep", 33, 17, format) as source:
                sent = samples >> (16 - bits)
                self.assertEqual(source.frame_bytes, 33 * 17 * 2)
                frame = self.sent_and_seen(source, sent)
                self.assertEqual(frame.format, {"gray16": "Y16"}.get(format, format))
                self.assertEqual(frame.array().dtype, numpy.uint16)
                numpy.testing.assert_array_equal(frame.array(), sent)
                self.assertEqual(frame.extensions.bitsPerComponent, bits)
                self.assertEqual(frame.extensions.alignment, "low" if bits < 16 else None)
                for wrong in (sent.astype(numpy.uint8), sent.astype(numpy.int16), sent[:, 1:], sent.reshape(33, 17)):
                    with self.assertRaisesRegex(ValueError, r"the shape \(17, 33\)"):
                        source.send(wrong)
        with self.client.create_source("deep", 33, 17, "Y16 -BE") as source:
            with self.assertRaises(ValueError):
                source.send(samples)
            numpy.testing.assert_array_equal(self.sent_and_seen(source, samples.astype(">u2")).array(), samples)
        with self.client.create_source("deep", 33, 17, "RGGB") as source:
            numpy.testing.assert_array_equal(
                self.sent_and_seen(source, samples.astype(numpy.uint8)).array(), samples.astype(numpy.uint8)
            )

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_depth_has_its_unit_and_is_matched_with_colour(self) -> None:
        stated = FormatExtensions(metersPerStep=0.001)
        with (
            self.client.create_source("depth", 32, 24, "Z16", fps=30, extensions=stated) as depth,
            self.client.create_source("colour", 64, 48, "bgr", fps=30) as colour,
        ):
            self.client.set_rig("rgbd", "depth", "colour", tolerance=0.25)
            self.addCleanup(self.client.delete_rig, "rgbd")

            def send(number: int, now: int) -> None:
                depth.send(numpy.full((24, 32), number % 256 * 256 + 7, numpy.uint16), timestamp=now)
                colour.send(bytes([number % 256]) * (64 * 48 * 3), timestamp=now)

            with self.client.frame_sets("rgbd", limit=3, timeout=TIMEOUT) as sets:
                for number, found in enumerate(self.while_sending(sets, send)):
                    self.assertEqual(set(found.frames), {"depth", "colour"})
                    near, seen = found.frames["depth"], found.frames["colour"]
                    self.assertEqual(near.timestamp.monotonic, seen.timestamp.monotonic)
                    self.assertEqual((near.format, near.extensions.metersPerStep), ("Z16", 0.001))
                    self.assertIsNone(seen.extensions.metersPerStep)
                    # What was sent together is what comes together.
                    self.assertEqual(int(near.array()[0, 0]) // 256, int(seen.array()[0, 0, 0]))
            self.assertEqual(number, 2)
            # Shown as grey it is no depth any more.
            shown = self.sent_and_seen(depth, numpy.full((24, 32), 0x4040, numpy.uint16), "gray")
            self.assertEqual(set(bytes(shown.payload)), {0x40})
            self.assertIsNone(shown.extensions.metersPerStep)
        with self.assertRaisesRegex(camerabus.InvalidParams, "metersPerStep"):
            self.client.create_source("grey", 32, 24, "gray16", extensions=stated)

    def test_names_are_one_s_own(self) -> None:
        with self.client.create_source("mine", 8, 8, "gray") as source:
            with self.assertRaises(camerabus.DeviceBusy):
                self.client.create_source("mine", 16, 8, "gray")
            # The same again, as if the answer had been lost.
            self.assertEqual(self.client.create_source("mine", 8, 8, "gray").device, source.device)
        with self.assertRaises(camerabus.InvalidParams):
            self.client.create_source("", 8, 8)
        with self.assertRaises(camerabus.LimitExceeded):
            self.client.create_source("huge", 16384, 16384)

    def test_asyncio(self) -> None:
        async def run() -> None:
            async with AsyncClient(RUNTIME_DIR) as client:
                async with client.create_source("later", 8, 8, "gray") as source:
                    async with client.frames(source.device, limit=1) as frames:
                        topic = f"state/device/{source.device}/"
                        async with client.mirror(topic) as mirror:
                            await mirror.wait(lambda state: state[topic]["isStreaming"], TIMEOUT)
                        self.assertTrue(await source.send(bytes(range(64))))
                        async for frame in frames:
                            self.assertEqual(bytes(frame.payload), bytes(range(64)))
                source = await client.create_source("later", 8, 8, "gray")
                await source.close()

        asyncio.run(asyncio.wait_for(run(), TIMEOUT))
        self.assertTrue(self.gone("later"))

    def test_the_example(self) -> None:
        example = Path(__file__).resolve().parents[2] / "Protocol" / "python" / "examples" / "filter.py"
        command = [sys.executable, str(example), self.first, "exchanged"]
        with subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, text=True) as program:
            try:
                assert program.stdout is not None
                self.assertIn("exchanged", program.stdout.readline())
                with self.client.frames("exchanged", rendition="jpeg", limit=2, timeout=TIMEOUT) as frames:
                    self.assertEqual({frame.width for frame in frames}, {640})
            finally:
                program.kill()


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

    def sent(self, jpeg: bytes) -> tuple[str, Callable[[], None], Callable[[bytes], None]]:
        """A camera that sends this picture until the first function is called. The second one gives it another."""
        present = [jpeg]
        size = (CameraJPEG.WIDTH, CameraJPEG.HEIGHT)
        source = self.client.create_source("jpegs", *size, "jpeg", fps=25)
        over = threading.Event()

        def send() -> None:
            while not over.wait(0.04):
                source.send(present[0])

        thread = threading.Thread(target=send)
        thread.start()

        def end() -> None:
            over.set()
            thread.join()
            source.close()

        def change(jpeg: bytes) -> None:
            present[0] = jpeg

        return source.device, end, change

    def test_what_cameras_leave_out_or_put_in_is_shown_on_every_lane(self) -> None:
        for name, jpeg in self.picture.whole():
            device, end, _ = self.sent(jpeg)
            try:
                for lane, take in self.lanes(device):
                    with self.subTest(f"{name}: {lane}"):
                        self.judge(take(), lane)
            finally:
                end()

    def test_pictures_of_another_size_are_a_new_stream_with_true_headers(self) -> None:
        sizes = [(CameraJPEG.WIDTH, CameraJPEG.HEIGHT), (96, 64), (320, 200)]
        pictures = {size: self.picture.saved(self.picture.rgb.resize(size)) for size in sizes}
        device, end, change = self.sent(pictures[sizes[0]])
        try:
            for rendition in ("native", "rgb", "jpeg:48x0"):
                streams: set[str] = set()
                for size in [*sizes, sizes[0]]:
                    change(pictures[size])
                    own = (48, round(48 * size[1] / size[0])) if ":" in rendition else size
                    with self.client.frames(device, rendition=rendition, timeout=TIMEOUT) as frames:
                        frame = next(frame for frame in frames if (frame.width, frame.height) == own)
                    streams.add(frame.stream)
                    if rendition != "rgb":
                        self.assertEqual(Image.open(io.BytesIO(frame.payload)).size, own)
                    if rendition == "native":
                        self.assertEqual(bytes(frame.payload), pictures[size])
                self.assertGreaterEqual(len(streams), 3)
        finally:
            end()

    def test_what_cannot_be_decoded_is_told_on_every_lane_with_its_reason(self) -> None:
        for name, jpeg in self.picture.undecodable():
            device, end, _ = self.sent(jpeg)
            try:
                for lane, take in self.lanes(device):
                    with self.subTest(f"{name}: {lane}"):
                        with self.assertRaisesRegex(camerabus.InternalError, "are damaged: "):
                            take()
            finally:
                end()

    def test_damaged_pictures_among_others_are_left_out_and_counted(self) -> None:
        size = (CameraJPEG.WIDTH, CameraJPEG.HEIGHT)
        torn = [jpeg for name, jpeg in self.picture.undecodable() if name in ("torn", "its beginning alone")]
        with self.client.create_source("some", *size, "jpeg", fps=50) as source:
            over = threading.Event()

            def send() -> None:
                while not over.is_set():
                    for jpeg in (self.picture.plain, *torn):
                        over.wait(0.02)
                        source.send(jpeg)

            thread = threading.Thread(target=send)
            thread.start()
            try:
                for rendition in ("native", "jpeg", "jpeg:80x64", "gray"):
                    with self.client.frames(source.device, rendition=rendition, limit=8, timeout=TIMEOUT) as frames:
                        counts = [frame.dropped for frame in frames]
                    self.assertGreaterEqual(counts[-1] - counts[0], 14, rendition)
                for name, codec in (("a.mkv", "passThrough"), ("b.mp4", "h264")):
                    with self.client.record(source.device, path=self.folder / name, codec=codec, duration=1) as movie:
                        ending = movie.wait(TIMEOUT)
                    self.assertGreater(ending.frames, 3)
                    self.assertGreaterEqual(ending.dropped, 2 * (ending.frames - 1), codec)
            finally:
                over.set()
                thread.join()

    def test_a_movie_goes_on_after_a_time_of_damaged_pictures(self) -> None:
        size = (CameraJPEG.WIDTH, CameraJPEG.HEIGHT)
        torn = dict(self.picture.undecodable())["torn"]
        with self.client.create_source("later", *size, "jpeg", fps=50) as source:
            over, isTorn = threading.Event(), threading.Event()

            def send() -> None:
                while not over.wait(0.02):
                    source.send(torn if isTorn.is_set() else self.picture.plain)

            thread = threading.Thread(target=send)
            thread.start()
            try:
                with self.client.record(source.device, path=self.folder / "a.mov", codec="passThrough") as movie:
                    isTorn.set()
                    with self.assertRaisesRegex(camerabus.InternalError, "are damaged: "):
                        with self.client.frames(source.device, errors="raise", timeout=TIMEOUT) as frames:
                            for _ in frames:
                                pass
                    isTorn.clear()
                    # The error is told until a whole one has come.
                    with self.client.frames(source.device, errors="frames", timeout=TIMEOUT) as frames:
                        whole = (bytes(frame.payload) for frame in frames if frame.error is None)
                        self.assertEqual(set(itertools.islice(whole, 5)), {self.picture.plain})
                    ending = movie.stop()
                self.assertEqual(ending.reason, "stopped")
                self.assertGreaterEqual(ending.dropped, 10)
                self.assertGreaterEqual(ending.frames, 5)
            finally:
                over.set()
                thread.join()
