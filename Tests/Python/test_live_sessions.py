"""Sessions of the Python client, on the real bus."""

from __future__ import annotations

import time
import unittest

import camerabus
from camerabus import AsyncClient, CannotAddOutput, Client, SessionNotFound, SessionNotRunning
from live import LiveTestCase, TIMEOUT


class Sessions(LiveTestCase):
    def test_two_clients_get_theirs_from_one_stream_and_a_third_interrupts_them(self) -> None:
        with Client(timeout=TIMEOUT) as other:
            with self.client.session(
                {"device": self.first, "frameRate": 30}, preset="1920x1080", name="large"
            ) as large:
                with other.session({"device": self.first, "frameRate": 15}, preset="640x480") as small:
                    sizes = []
                    for session in (large, small):
                        with session.frames(limit=2, timeout=TIMEOUT) as frames:
                            frame = next(frames)
                            sizes.append((frame.width, frame.height))
                    self.assertEqual(sizes, [(1920, 1080), (640, 480)])
                    self.assertIn(f"{self.first} streams 1920x1080", small.explanation[0])
                    self.assertIn("large gets it", small.explanation[0])
                    wish = {"device": self.first, "activeFormat": {"pixelFormat": "RGGB", "width": 320, "height": 240}}
                    with self.client.mirror("state/session/") as mirror:
                        with self.client.session(wish, priority=10) as third:
                            self.assertTrue(third.is_running)
                            for session in (large, small):
                                state = session.refresh().state
                                assert state is not None and state.interruption is not None
                                self.assertEqual(state.interruption.reason, "videoDeviceInUseByAnotherClient")
                                self.assertEqual(state.interruption.by["session"], third.id)
                                with self.assertRaises(SessionNotRunning):
                                    session.delivery()
                        topics = [f"state/session/{session.id}/" for session in (large, small)]
                        mirror.wait(lambda state: all(state[topic]["state"] == "running" for topic in topics), TIMEOUT)
        self.assertEqual(self.client.sessions(), [])

    def test_actions_are_all_or_nothing_and_say_why(self) -> None:
        session = self.client.session(self.first, outputs=["photo"])
        self.addCleanup(session.delete)
        with self.assertRaises(CannotAddOutput) as caught:
            session.configure({"preset": "640x480"}, {"addOutput": "photo"})
        self.assertIn("at most one", caught.exception.why)
        self.assertEqual(session.refresh().state.preset, "high")
        self.assertFalse(session.can_add({"addOutput": "metadata"}))
        self.assertTrue(session.can_add({"addOutput": "preview"}))
        self.assertTrue(session.can_add({"switchCamera": None}))
        self.assertEqual(session.can_add({"switchCamera": "nobody"}).reason, "deviceNotFound")
        answer = session.configure({"addOutput": {"type": "preview", "width": 320}}, {"preset": "1280x720"})
        assert answer.state is not None
        self.assertEqual([output["id"] for output in answer.state.outputs], ["photo", "preview"])
        self.assertTrue((session.delivery("preview").rendition or "").startswith("jpeg:320x180@"))

    def test_switching_cameras(self) -> None:
        with self.client.session(self.first, outputs=["preview"], preset="640x480") as session:
            answer = session.switch_camera()
            self.assertEqual((answer.active, answer.switched), (self.second, True))
            self.assertTrue(session.delivery().mirrored)
            with session.frames(timeout=TIMEOUT) as frames:
                self.assertEqual(next(frames).device, self.second)
            found = self.client.find_session(session.id)
            self.assertTrue(found.is_running)
        with self.assertRaises(SessionNotFound):
            found.refresh()

    def test_frames_follow_their_session_to_another_camera(self) -> None:
        with self.client.session(self.first, outputs=["preview"], preset="640x480") as session:
            with session.frames(timeout=TIMEOUT) as frames:
                self.assertEqual(next(frames).device, self.first)
                session.switch_camera(self.second)
                while next(frames).device == self.first:
                    pass
                self.assertEqual(sorted(frames.lost), sorted([self.first, self.second]))
                self.assertEqual(next(frames).device, self.second)

    def test_frames_wait_while_their_session_is_interrupted(self) -> None:
        with self.client.session(self.first, preset="1280x720") as session, session.frames(timeout=TIMEOUT) as frames:
            first = next(frames)
            wish = {"device": self.first, "activeFormat": {"pixelFormat": "RGGB", "width": 320, "height": 240}}
            with Client(timeout=TIMEOUT) as other, other.session(wish, priority=10) as winner:
                waiting = frames._feed.follow()
                until = time.monotonic() + TIMEOUT
                while not isinstance(frames.last_error, SessionNotRunning):
                    self.assertLess(time.monotonic(), until)
                    next(waiting).poller().poll(1000)
                self.assertIn(winner.id, str(frames.last_error))
                with self.assertRaises(SessionNotRunning):
                    session.frames(timeout=TIMEOUT)
                self.assertTrue(winner.is_running)
                waiting.close()
            last = next(frames)
            self.assertEqual((last.width, last.height), (first.width, first.height))
            self.assertNotEqual(last.stream, first.stream)

    def test_frames_of_a_session_that_is_not_started_or_ends(self) -> None:
        session = self.client.session(self.first, preset="640x480")
        with self.assertRaises(SessionNotRunning):
            session.frames(timeout=TIMEOUT)
        session.start()
        with session.frames(timeout=TIMEOUT) as frames:
            next(frames)
            session.stop()
            with self.assertRaises(SessionNotRunning):
                while True:
                    next(frames)
            session.delete()
            with self.assertRaises(SessionNotFound):
                next(frames)

    def test_a_device_that_is_not_there(self) -> None:
        with self.assertRaises(camerabus.DeviceNotFound):
            self.client.session("nobody")


class AsyncSessions(LiveTestCase, unittest.IsolatedAsyncioTestCase):
    async def test_the_same_for_asyncio(self) -> None:
        async with AsyncClient(timeout=TIMEOUT) as client:
            async with client.session(self.first, preset="640x480") as session:
                self.assertTrue(session.is_running)
                async with session.frames(timeout=TIMEOUT) as frames:
                    self.assertEqual((await anext(frames)).width, 640)
                self.assertEqual([each.id for each in await client.sessions()], [session.id])
                found = await client.find_session(session.id)
                await found.stop()
                self.assertFalse((await session.refresh()).state.wanted)
            made = await client.session(self.first)
            self.assertFalse(made.is_running)
            await made.delete()
            self.assertEqual(await client.sessions(), [])
