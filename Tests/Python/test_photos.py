"""Photos, as both clients ask for them and get them."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import unittest
from fractions import Fraction
from pathlib import Path
from typing import Any

from camerabus import (
    AsyncClient,
    BusTimeout,
    Client,
    DiskFull,
    InvalidParams,
    PhotoCapture,
    PhotoSettingsReused,
    PhotoStage,
    ProtocolError,
    WorkerCrashed,
)
from fake_bus import NO_REPLY, BusTestCase, Refusal

STAGES = ["willBeginCapture", "willCapturePhoto", "didCapturePhoto", "didFinishProcessingPhoto", "didFinishCapture"]
MOVIE = {
    "contentIdentifier": "7E0A3B52-9C41-4D68-A1F0-2B9C5D7E6F81", "width": 4, "height": 2, "bytes": 6, "duration": 2.9,
    "photoDisplayTime": 1.4, "dropped": 5,
}  # fmt: skip


def photo(device: str = "cam0", index: int = 0, **members: Any) -> dict[str, Any]:
    return {
        "device": device, "index": index, "fileType": "jpeg", "width": 4, "height": 2, "bytes": 4,
        "timestamp": {"monotonic": 7, "realtime": 1789000000123456789, "source": "startOfExposure"}, "sequence": 3,
        "stream": "s1", "exposure": {"duration": 0.008, "iso": 200}, "flashFired": False, "settled": True, **members,
    }  # fmt: skip


def answer(params: dict[str, Any]) -> Any:
    """What a bus answers, with a byte for each photo that tells which it is."""
    devices = params.get("devices") or [params.get("device", "left")]
    count = params["settings"].get("burst", 1)
    photos = [photo(device, index) for device in devices for index in range(count)]
    attachments: list[bytes] = []
    if "reply" in params["deliver"]:
        attachments = [b"%03d." % number for number in range(len(photos))]
        photos = [{**each, "attachment": number} for number, each in enumerate(photos)]
    result = {
        "uniqueID": params["settings"].get("uniqueID", "u1"), "resolved": {"devices": []},
        "expectedPhotoCount": len(photos), "photos": photos,
        "attachments": [{"name": "a.jpg", "contentType": "image/jpeg", "bytes": len(data)} for data in attachments],
        **({"spread": 1500} if len(devices) > 1 else {}),
    }  # fmt: skip
    return (result, *attachments)


def live_answer(params: dict[str, Any]) -> Any:
    """The same of a live photo: the movie is the last of the files."""
    result, *files = answer({**params, "deliver": ["reply"]})
    if "reply" not in params["deliver"]:
        stored = {**MOVIE, "path": "/v/a.mov"}
        return {**result, "photos": [photo(path="/v/a.jpg", id="e1")], "attachments": [], "livePhotoMovie": stored}
    announced = {"name": "a.mov", "contentType": "video/quicktime", "bytes": 6}
    movie = {**MOVIE, "attachment": len(files)}
    return ({**result, "attachments": [*result["attachments"], announced], "livePhotoMovie": movie}, *files, b"movie.")


class Photos(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.bus.methods["photo.capture"] = answer
        self.bus.methods["bus.cancel"] = lambda params: {"cancelled": True}
        self.client = Client(self.bus.directory, name="test", timeout=5)
        self.addCleanup(self.client.close)

    def asked(self) -> dict[str, Any]:
        return self.bus.asked("photo.capture")[-1]

    def test_a_photo_comes_with_its_file(self) -> None:
        capture = self.client.capture_photo("cam0")
        self.assertEqual((capture.uniqueID, capture.expectedPhotoCount, capture.spread), ("u1", 1, None))
        found = capture.photo
        self.assertEqual((found.data, found.device, found.index, found.fileType), (b"000.", "cam0", 0, "jpeg"))
        self.assertEqual(
            (found.width, found.height, found.bytes, found.settled, found.flashFired), (4, 2, 4, True, False)
        )
        self.assertEqual(
            (found.timestamp.monotonic, found.timestamp.realtime, found.exposure["iso"]), (7, 1789000000123456789, 200)
        )
        self.assertEqual((found.path, found.id, found.error), (None, None, None))
        self.assertEqual(self.asked(), {"device": "cam0", "settings": {}, "deliver": ["reply"]})

    def test_several_cameras_are_one_request(self) -> None:
        capture = self.client.capture_photo("cam0", "cam1", burst=2, interval=0.25)
        self.assertEqual([(each.device, each.index, each.data) for each in capture.photos], [
            ("cam0", 0, b"000."), ("cam0", 1, b"001."), ("cam1", 0, b"002."), ("cam1", 1, b"003."),
        ])  # fmt: skip
        self.assertEqual(capture.spread, 1500)
        self.assertEqual(
            self.asked(), {"devices": ["cam0", "cam1"], "settings": {"burst": 2, "interval": 250}, "deliver": ["reply"]}
        )
        with self.assertRaises(ValueError):
            capture.photo

    def test_settings_have_the_protocol_s_names(self) -> None:
        self.client.capture_photo(
            "cam0", format="jpeg", raw=True, quality=80, flash="auto", red_eye_reduction=True, stabilization=True,
            high_resolution=True, orientation="portrait", mirrored=False, turned=True, thumbnail=320,
            bracket_durations=[Fraction(1, 125), "1/30", 0.5], unique_id="mine", deliver=["reply", "library"],
            name="belt", lock="token",
        )  # fmt: skip
        self.assertEqual(self.asked(), {
            "device": "cam0", "deliver": ["reply", "library"], "name": "belt", "lock": "token", "settings": {
                "uniqueID": "mine", "format": "jpeg", "raw": True, "quality": 80, "flash": "auto",
                "redEyeReduction": True, "stabilization": True, "highResolution": True, "orientation": "portrait",
                "mirrored": False, "turned": True, "thumbnail": {"maxSize": 320},
                "bracket": {"exposureDuration": ["1/125", "1/30", 0.5]},
            },
        })  # fmt: skip
        self.client.capture_photo("cam0", max_photo_dimensions=(1920, 1080))
        self.assertEqual(self.asked()["settings"], {"maxPhotoDimensions": {"width": 1920, "height": 1080}})
        self.client.capture_photo(rig="stereo", bracket=[-2, 0, 2], thumbnail=True)
        self.assertEqual(self.asked()["settings"], {"bracket": {"exposureBias": [-2, 0, 2]}, "thumbnail": True})
        self.client.capture_photo("cam0", session="s")
        self.assertEqual((self.asked()["session"], self.asked()["device"]), ("s", "cam0"))
        for wrong in (
            {}, {"rig": "r", "session": "s"}, {"session": "s", "devices": ("cam0", "cam1")},
            {"rig": "r", "devices": ("cam0",)},
        ):
            with self.assertRaises(ValueError):
                self.client.capture_photo(*wrong.pop("devices", ()), **wrong)
        with self.assertRaises(ValueError):
            self.client.capture_photo("cam0", bracket=[0, 1], bracket_durations=[1, 2])
        for past in (20, 0, -1):
            with self.assertRaisesRegex(ValueError, f"ago is in seconds, from 0.001 to 10 .*, not {past}"):
                self.client.capture_photo("cam0", ago=past)

    def test_what_sets_the_camera_is_done_under_its_lock(self) -> None:
        with self.client.lock("cam0") as lock:
            self.client.capture_photo("cam0", flash="on")
            self.assertEqual(self.asked()["lock"], lock.token)
            self.client.capture_photo("cam0", max_photo_dimensions=(640, 480))
            self.assertEqual(self.asked()["lock"], lock.token)
            self.client.capture_photo("cam0", flash="off")
            self.assertNotIn("lock", self.asked())

    def test_what_a_camera_takes_otherwise_is_told(self) -> None:
        def clamped(params: dict[str, Any]) -> Any:
            result, *data = answer(params)
            change = {
                "device": "cam0", "path": "settings.bracket.exposureBias[0]", "asked": -9, "given": -2, "why": "So.",
            }
            photos = [{**photo, "late": 5} for photo in result["photos"]]
            return ({**result, "photos": photos, "late": len(photos), "adjusted": [change]}, *data)

        plain = self.client.capture_photo("cam0")
        self.assertEqual((plain.adjusted, plain.late, plain.photo.late), ((), 0, None))
        self.bus.methods["photo.capture"] = clamped
        told = self.client.capture_photo("cam0", bracket=[-9, 0])
        (change,) = told.adjusted
        self.assertEqual((told.late, told.photo.late), (1, 5))
        self.assertEqual((change.device, change.asked, change.given, change.why), ("cam0", -9, -2, "So."))

    def test_the_library_alone_sends_no_file(self) -> None:
        def stored(params: dict[str, Any]) -> Any:
            result, *_ = answer(params)
            return {**result, "photos": [photo(path="/v/a.jpg", id="e1")]}

        self.bus.methods["photo.capture"] = stored
        found = self.client.capture_photo("cam0", deliver=["library"]).photo
        self.assertEqual((found.path, found.id, found.data), ("/v/a.jpg", "e1", None))
        with self.assertRaisesRegex(ValueError, r"library of the bus: /v/a\.jpg; fetch_from_library\('e1', path\)"):
            found.save("/nowhere")

    def test_a_photo_that_could_not_be_stored_is_there_all_the_same(self) -> None:
        def full(params: dict[str, Any]) -> Any:
            result, data = answer(params)
            error = {"code": -32000, "message": "Full.", "data": {"reason": "diskFull", "free": 1, "needed": 2}}
            return {**result, "photos": [{**result["photos"][0], "error": error}]}, data

        self.bus.methods["photo.capture"] = full
        found = self.client.capture_photo("cam0", deliver=["reply", "library"]).photo
        self.assertIsInstance(found.error, DiskFull)
        self.assertEqual((found.error.needed, found.data), (2, b"000."))

    def test_a_file_is_written_whole_and_takes_no_other_s_place(self) -> None:
        found = self.client.capture_photo("cam0").photo
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.jpg"
            found.save(path)
            self.assertEqual(path.read_bytes(), b"000.")
            path.write_bytes(b"old")
            with self.assertRaises(FileExistsError) as raised:
                found.save(path)
            self.assertEqual((raised.exception.filename, raised.exception.filename2), (str(path), None))
            self.assertEqual(path.read_bytes(), b"old")
            found.save(path, overwrite=True)
            self.assertEqual((path.read_bytes(), os.listdir(folder)), (b"000.", ["a.jpg"]))

    def test_a_live_photo_comes_with_its_movie(self) -> None:
        self.assertIsNone(self.client.capture_photo("cam0").livePhotoMovie)
        self.bus.methods["photo.capture"] = live_answer
        capture = self.client.capture_photo(session="s", live=True)
        self.assertEqual(self.asked(), {"session": "s", "settings": {"livePhoto": True}, "deliver": ["reply"]})
        movie = capture.livePhotoMovie
        assert movie is not None
        self.assertEqual((capture.photo.data, movie.data, movie.bytes), (b"000.", b"movie.", 6))
        self.assertEqual(
            (movie.contentIdentifier, movie.duration, movie.photoDisplayTime), (MOVIE["contentIdentifier"], 2.9, 1.4)
        )
        self.assertEqual((movie.width, movie.height, movie.path, movie.dropped), (4, 2, None, 5))
        with tempfile.TemporaryDirectory() as folder:
            capture.photo.save(f"{folder}/a.jpg")
            movie.save(f"{folder}/a.mov")
            with self.assertRaises(FileExistsError):
                movie.save(f"{folder}/a.jpg")
            self.assertEqual(
                {each.name: each.read_bytes() for each in Path(folder).iterdir()},
                {"a.jpg": b"000.", "a.mov": b"movie."},
            )

    def test_a_live_photo_of_the_library_has_both_its_paths(self) -> None:
        self.bus.methods["photo.capture"] = live_answer
        capture = self.client.capture_photo(session="s", live=True, deliver=["library"])
        movie = capture.livePhotoMovie
        assert movie is not None
        self.assertEqual((capture.photo.path, movie.path, movie.data), ("/v/a.jpg", "/v/a.mov", None))
        with self.assertRaisesRegex(ValueError, r"library of the bus: /v/a\.mov; fetch.*'movie'"):
            movie.save("/nowhere")
        self.bus.methods["photo.capture"] = lambda params: {**live_answer(params)[0], "attachments": []}
        with self.assertRaises(ProtocolError):
            self.client.capture_photo(session="s", live=True)

    def test_refusals_are_exceptions(self) -> None:
        self.bus.refuse("photo.capture", "photoSettingsReused", uniqueID="u")
        with self.assertRaises(PhotoSettingsReused) as caught:
            self.client.capture_photo("cam0", unique_id="u", on_stage=lambda stage: None)
        self.assertEqual(caught.exception.data["uniqueID"], "u")
        self.bus.refuse(
            "photo.capture", "invalidParams", path="settings.livePhoto",
            why="can't be had of a session without livePhotoCaptureEnabled",
        )
        with self.assertRaises(InvalidParams):
            self.client.capture_photo("cam0")

    def test_answers_that_contradict_themselves_are_an_error(self) -> None:
        for wrong in (
            {}, {"uniqueID": "u"}, {"uniqueID": "u", "photos": [photo(attachment=0)]},
            {"uniqueID": "u", "photos": ["x"]},
        ):
            self.bus.methods["photo.capture"] = lambda params, wrong=wrong: wrong
            with self.assertRaises(ProtocolError):
                self.client.capture_photo("cam0")

    def test_who_gives_up_tells_the_bus(self) -> None:
        self.bus.methods["photo.capture"] = lambda params: NO_REPLY
        with self.assertRaises(BusTimeout):
            self.client.capture_photo("cam0", timeout=0.05)
        keys = [request.get("key") for request in self.bus.requests if request["method"] == "photo.capture"]
        self.assertEqual([params["key"] for params in self.bus.asked("bus.cancel")], keys)

    # Stages

    def staged(self, count: int, refusal: Refusal | None = None) -> None:
        """A bus that tells so many stages, and the last one, before its answer."""

        def serve(params: dict[str, Any]) -> Any:
            for stage in [*STAGES[:count], STAGES[-1]]:
                self.announce(params["settings"]["uniqueID"], stage)
            if refusal is not None:
                raise refusal
            return answer(params)

        self.bus.methods["photo.capture"] = serve

    def announce(self, id: str, stage: str, **members: Any) -> None:
        """To be called on the bus's own thread."""
        topic = f"event/photo/{id}/"
        self.bus.sequence += 1
        body = {"epoch": self.bus.epoch, "sequence": self.bus.sequence, "previous": 0, "event": stage, **members}
        self.bus._announce(topic, {**body, **({"photo": photo()} if stage == "didFinishProcessingPhoto" else {})})

    def test_stages_are_told_in_their_order_the_last_before_the_return(self) -> None:
        self.staged(4)
        # They and the answer come by two sockets: now these are first, now that is.
        for _ in range(20):
            told: list[PhotoStage] = []
            capture = self.client.capture_photo("cam0", on_stage=told.append)
            self.assertEqual([stage.event for stage in told], STAGES)
            self.assertEqual({stage.uniqueID for stage in told}, {capture.uniqueID})
        processed = told[3].photo
        assert processed is not None
        self.assertEqual((processed.device, told[4].is_last, told[4].error), ("cam0", True, None))

    def test_a_failure_in_between_is_told_by_the_last_stage_and_raised(self) -> None:
        self.staged(2, Refusal("workerCrashed", "The worker died."))
        for _ in range(20):
            told: list[PhotoStage] = []
            with self.assertRaises(WorkerCrashed):
                self.client.capture_photo("cam0", on_stage=told.append)
            self.assertEqual([stage.event for stage in told], [*STAGES[:2], STAGES[-1]])

    def test_the_stages_of_a_live_photo_tell_of_its_movie(self) -> None:
        members = {
            "didFinishRecordingLivePhotoMovie": {"duration": 2.9},
            "didFinishProcessingLivePhotoToMovieFile": {
                "duration": 2.9, "photoDisplayTime": 1.4, "livePhotoMovie": MOVIE,
            },
        }
        names = [*STAGES[:4], *members, STAGES[4]]

        def serve(params: dict[str, Any]) -> Any:
            for name in names:
                self.announce(params["settings"]["uniqueID"], name, **members.get(name, {}))
            return live_answer(params)

        self.bus.methods["photo.capture"] = serve
        told: list[PhotoStage] = []
        self.client.capture_photo(session="s", live=True, on_stage=told.append)
        self.assertEqual([stage.event for stage in told], names)
        recorded, processed = told[4:6]
        self.assertEqual((recorded.duration, recorded.photoDisplayTime, recorded.livePhotoMovie), (2.9, None, None))
        assert processed.livePhotoMovie is not None
        self.assertEqual(
            (processed.photoDisplayTime, processed.livePhotoMovie.contentIdentifier), (1.4, MOVIE["contentIdentifier"])
        )
        self.assertTrue(told[6].is_last)

    def test_whoever_is_told_may_give_up(self) -> None:
        self.bus.methods["photo.capture"] = lambda params: (
            self.announce(params["settings"]["uniqueID"], STAGES[0]), NO_REPLY,
        )[1]

        def stop(stage: PhotoStage) -> None:
            raise KeyError(stage.event)

        with self.assertRaises(KeyError):
            self.client.capture_photo("cam0", on_stage=stop)
        self.assertEqual(len(self.bus.asked("bus.cancel")), 1)

    def test_asyncio_has_the_same(self) -> None:
        self.staged(4)
        told: list[PhotoStage] = []

        async def program() -> list[PhotoCapture]:
            async with AsyncClient(self.bus.directory, timeout=5) as client:
                first = await client.capture_photo("cam0", on_stage=told.append)
                self.bus.methods["photo.capture"] = answer
                return [first, *await asyncio.gather(client.capture_photo("cam0"), client.capture_photo("cam1"))]

        captures = asyncio.run(program())
        self.assertEqual([capture.photo.device for capture in captures], ["cam0", "cam0", "cam1"])
        self.assertEqual([stage.event for stage in told], STAGES)

    def test_asyncio_gives_up_when_cancelled(self) -> None:
        self.bus.methods["photo.capture"] = lambda params: NO_REPLY

        async def program() -> None:
            async with AsyncClient(self.bus.directory, timeout=5) as client:
                async with asyncio.timeout(0.05):
                    await client.capture_photo("cam0")

        with self.assertRaises(TimeoutError):
            asyncio.run(program())
        self.assertEqual(len(self.bus.asked("bus.cancel")), 1)


class Past(BusTestCase):
    """How a program learns that a live photo has its past."""

    def setUp(self) -> None:
        super().setUp()
        self.bus.methods["session.get"] = lambda params: {"session": "s", "state": self.value(None)}
        self.client = Client(self.bus.directory, name="test", timeout=5)
        self.addCleanup(self.client.close)
        self.session = self.client.find_session("s")

    def value(self, past: int | None, enabled: bool = True) -> dict[str, Any]:
        held = {} if past is None else {"livePhotoPast": past}
        output = {"id": "photo", "type": "photo", "livePhotoCaptureEnabled": enabled, **held}
        return {"id": "s", "state": "running", "wanted": True, "outputs": [output]}

    def test_it_is_waited_for(self) -> None:
        self.bus.set_state("state/session/s/", self.value(1500))
        self.assertEqual(self.session.wait_for_live_photos(), 1.5)
        self.bus.set_state("state/session/s/", self.value(0))
        count = len(self.bus.asked("bus.snapshot"))

        def fill() -> None:
            while len(self.bus.asked("bus.snapshot")) == count:
                self.client.ping()
            for past in (700, 1500):
                self.bus.set_state("state/session/s/", self.value(past))

        filling = threading.Thread(target=fill)
        filling.start()
        held = Client(self.bus.directory, name="other", timeout=5)
        self.addCleanup(held.close)
        self.assertEqual(held.find_session("s").wait_for_live_photos(timeout=30), 1.5)
        filling.join()

    def test_what_never_comes_is_not_waited_for(self) -> None:
        self.bus.set_state("state/session/s/", self.value(400))
        self.assertEqual(self.session.wait_for_live_photos(timeout=0.01), 0.4)
        for value in (self.value(None, enabled=False), None):
            self.bus.set_state("state/session/s/", value)
            self.assertEqual(self.session.wait_for_live_photos(timeout=60), 0.0)

    def test_asyncio_has_the_same(self) -> None:
        self.bus.set_state("state/session/s/", self.value(1500))

        async def program() -> float:
            async with AsyncClient(self.bus.directory, timeout=5) as client:
                return await (await client.find_session("s")).wait_for_live_photos()

        self.assertEqual(asyncio.run(program()), 1.5)


class Pictures(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("Pillow is not installed")
        import io

        file = io.BytesIO()
        Image.new("RGB", (16, 8), (200, 10, 10)).save(file, "JPEG")
        self.picture = file.getvalue()

    def test_pillow_opens_it(self) -> None:
        announced = [{"name": "a.jpg", "contentType": "image/jpeg", "bytes": len(self.picture)}]
        result = {"uniqueID": "u", "photos": [photo(attachment=0)], "attachments": announced}
        self.bus.methods["photo.capture"] = lambda params: (result, self.picture)
        with Client(self.bus.directory, name="test", timeout=5) as client:
            self.assertEqual(client.capture_photo("cam0").photo.image().size, (16, 8))


if __name__ == "__main__":
    unittest.main()
