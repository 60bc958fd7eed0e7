"""Clients on other machines, through the real gateway beside the bus of these tests."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import zmq

import live
import with_bus
from camerabus import (
    AsyncBuses,
    AsyncClient,
    Buses,
    BusTimeout,
    Client,
    DeviceNotFound,
    FormatUnsupported,
    LockLost,
    PathNotAllowed,
    Unauthorized,
)
from camerabus.credit import NEXT
from ports import free_port

TIMEOUT = live.TIMEOUT


@unittest.skipUnless(zmq.has("curve"), "libzmq was built without CURVE")
@unittest.skipUnless(shutil.which("camerabus-gateway"), "there is no camerabus-gateway in the PATH")
class Remote(live.LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(tempfile.mkdtemp(prefix="camerabus-gateway-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.port = free_port()
        self.keys = self.folder / "keys"
        self.keys.write_text("")
        (self.folder / "gateway.toml").write_text(
            f'[tcp]\nlisten = "tcp://127.0.0.1:{self.port}"\nkeys = "{self.keys}"\n[web]\nlisten = "none"\n'
        )
        with open(self.folder / "log", "w") as log:
            gateway = with_bus.start_service(
                ["camerabus-gateway", "--config", self.folder / "gateway.toml"],
                self.folder,
                log.fileno(),
                {"STATE_DIRECTORY": str(self.folder)},
            )
        assert gateway is not None, (self.folder / "log").read_text()
        self.addCleanup(gateway.wait, TIMEOUT)
        self.addCleanup(gateway.terminate)
        self.address = f"tcp://127.0.0.1:{self.port}"

    def key(self, name: str, role: str) -> tuple[str, str]:
        public, secret = (each.decode() for each in zmq.curve_keypair())
        self.allow(self.keys.read_text() + f"{role} {public} {name}\n")
        return public, secret

    def allow(self, entries: str) -> None:
        (self.folder / "keys.new").write_text(entries)
        (self.folder / "keys.new").rename(self.keys)

    def remote(self, name: str = "laptop", role: str = "view") -> Client:
        client = Client(
            self.address, server_key=self.folder / "server.pub", key=self.key(name, role), name="remote",
            timeout=TIMEOUT,
        )
        self.addCleanup(client.close)
        return client

    def test_all_is_as_on_the_same_machine(self) -> None:
        client = self.remote("desk", "control")
        self.assertEqual(
            [device.id for device in client.devices("video")], [device.id for device in self.client.devices("video")]
        )
        self.assertEqual(client.runtime_dir, self.address)
        self.assertNotIn("rings", client.hello.features)
        with client.mirror() as mirror:
            self.assertIn(f"state/device/{self.first}/", mirror)
            with client.lock(self.first) as lock:
                self.assertEqual(lock.holder["name"], "desk")
                client.set(self.first, brightness=3)
                mirror.wait(lambda state: state[f"state/device/{self.first}/"]["lock"] is not None, TIMEOUT)
            mirror.wait(lambda state: state[f"state/device/{self.first}/"]["lock"] is None, TIMEOUT)
        with client.frames(self.first, self.second, rendition="jpeg:320x180", timeout=TIMEOUT) as frames:
            seen, until = set(), time.monotonic() + TIMEOUT
            while seen != {self.first, self.second}:
                self.assertLess(time.monotonic(), until, seen)
                seen.add(next(frames).device)
        photo = client.capture_photo(self.first, timeout=TIMEOUT)
        self.assertTrue(photo)

    def test_pictures_come_compressed_unless_others_are_asked_for(self) -> None:
        client = self.remote()
        with client.frames(self.first, limit=2, timeout=TIMEOUT) as frames:
            self.assertEqual({frame.format for frame in frames}, {"JPEG"})
        with client.frames(self.first, rendition="gray:64x36", limit=2, timeout=TIMEOUT) as frames:
            self.assertEqual([len(frame.payload) for frame in frames], [64 * 36] * 2)

    def test_raw(self) -> None:
        """Who asks for a raw rendition as for any other is told why it doesn't come."""
        client = self.remote()
        asks = client._open.context.socket(zmq.DEALER)
        asks.setsockopt(zmq.LINGER, 0)
        asks.connect(client._open.media_endpoint(self.first))
        topic = f"frame/{self.first}/gray:64x36/".encode()
        asks.send(NEXT + topic)
        self.assertTrue(asks.poll(TIMEOUT * 1000))
        message = asks.recv_multipart()
        asks.close()
        self.assertEqual(message[0], topic)
        self.assertEqual(len(message), 2)
        self.assertIn(b"formatUnsupported", message[1])

    def test_stalled(self) -> None:
        """A client that doesn't read gets what it asked for and no more, and then the present."""
        client = self.remote()
        other = self.remote("other")
        with client.frames(self.first, rendition="jpeg:320x180", timeout=TIMEOUT) as slow:
            first = next(slow)
            with other.frames(self.first, rendition="jpeg:320x180", limit=30, timeout=TIMEOUT) as quick:
                last = [frame.sequence for frame in quick][-1]
            # Two were asked for ahead; what comes after them is of now.
            following = [next(slow) for _ in range(4)]
        self.assertGreaterEqual(following[-1].sequence, last)
        self.assertGreater(sum(frame.lost for frame in following), 0)
        self.assertGreater(following[-1].timestamp.monotonic, first.timestamp.monotonic)

    def test_frames_of_here_and_there_are_matched(self) -> None:
        buses = Buses({"rig": self.remote(), "here": self.client})
        names = (f"rig/{self.first}", f"here/{self.second}")
        whole = []
        with buses.frame_sets(*names, rendition="jpeg:320x180", tolerance=0.05, timeout=TIMEOUT) as sets:
            # The first ones have only the camera that was there first.
            until = time.monotonic() + TIMEOUT
            while len(whole) < 3 and time.monotonic() < until:
                found = next(sets)
                if not found.missing:
                    whole.append(found)
        self.assertTrue(whole)
        for each in whole:
            self.assertEqual(tuple(each.frames), names)
            self.assertLessEqual(each.spread, 50_000_000)
            self.assertTrue(each.uncertainty is None or each.uncertainty >= 0)

    def test_a_key_that_is_taken_back_costs_its_lock_and_its_frames(self) -> None:
        with mock.patch("camerabus.leases.LEASE", 2.0):
            client = self.remote("desk", "control")
            with client.frames(self.first, rendition="jpeg:320x180", timeout=TIMEOUT) as frames:
                next(frames)
                with self.assertRaises(LockLost):
                    with client.lock(self.first):
                        idle = client._open._free[0]._link
                        self.allow("")
                        # Others have it at once, and this one is told when the time is over for which it was sure of
                        # it.
                        self.client.lock(self.first, wait=TIMEOUT).release()
                        self.assertTrue(idle.monitor.poll(TIMEOUT * 1000))
                        begun = time.monotonic()
                        client.set(self.first, brightness=2)
                self.assertLess(time.monotonic() - begun, 8)
                with mock.patch("camerabus.silence.SILENCE", 0.1), mock.patch("camerabus.silence.DOWN", 0.5):
                    with self.assertRaisesRegex(BusTimeout, "its key is still listed"):
                        for _ in range(100):
                            next(frames)

    def test_asyncio_has_several_too(self) -> None:
        key = self.key("task", "view")

        async def work() -> None:
            clients = {
                "rig": AsyncClient(self.address, server_key=self.folder / "server.pub", key=key, timeout=TIMEOUT),
                "here": AsyncClient(timeout=TIMEOUT),
            }
            async with AsyncBuses(clients) as buses:
                names = (f"rig/{self.first}", f"here/{self.second}")
                devices = await buses.devices("video")
                self.assertLessEqual(set(names), set(devices))
                with self.assertRaisesRegex(DeviceNotFound, names[0]):
                    devices["rig/none"]
                async with buses.lock(names[1]):
                    await buses["here"].set(self.second, brightness=3)
                async with buses.frame_sets(
                    *names, rendition="jpeg:320x180", tolerance=0.05, limit=2, timeout=TIMEOUT
                ) as sets:
                    self.assertEqual([next(iter(found.frames)) async for found in sets], [names[0]] * 2)

        asyncio.run(work())

    def test_a_view_key_changes_nothing(self) -> None:
        client = self.remote()
        with self.assertRaises(Unauthorized) as caught:
            client.lock(self.first)
        self.assertEqual(caught.exception.needed, "control")

    def test_a_key_that_nobody_has_added_gets_nothing_and_is_told_what_may_be_wrong(self) -> None:
        public, secret = (each.decode() for each in zmq.curve_keypair())
        with self.assertRaises(BusTimeout) as caught:
            Client(self.address, server_key=self.folder / "server.pub", key=(public, secret), timeout=1)
        self.assertIn("camerabus keys list", caught.exception.message)

    def test_events_are_handed_on_by_a_proxy(self) -> None:
        public, secret = self.key("proxy", "view")
        (self.folder / "proxy.key").write_text(f"public {public}\nsecret {secret}\n")
        example = live.ROOT / "Protocol" / "python" / "examples" / "remote" / "forward_events.py"
        path = self.folder / "events.sock"
        arguments = [self.address, str(self.folder / "server.pub"), str(self.folder / "proxy.key"), str(path)]
        proxy = subprocess.Popen([sys.executable, str(example), *arguments], env=self.environment())
        self.addCleanup(proxy.wait, TIMEOUT)
        self.addCleanup(proxy.kill)
        with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
            subscriber.setsockopt(zmq.LINGER, 0)
            subscriber.setsockopt(zmq.SUBSCRIBE, b"state/bus/")
            subscriber.connect(f"ipc://{path}")
            self.assertTrue(subscriber.poll(TIMEOUT * 1000))
            topic, body = subscriber.recv_multipart()
        self.assertEqual(topic, b"state/bus/")
        self.assertEqual(json.loads(body)["epoch"], self.client.hello.epoch)

    def test_a_movie_comes_to_the_laptop(self) -> None:
        client = self.remote("desk", "control")
        with client.record(self.first, duration=0.2) as movie:
            movie.wait(timeout=TIMEOUT)
        target = self.folder / "walk.mp4"
        size = client.fetch_from_library(movie.id, target)
        self.assertEqual((size, target.stat().st_size), (client.library_entry(movie.id).size,) * 2)
        self.assertEqual(target.read_bytes(), Path(movie.path).read_bytes())
        self.assertGreater(client.fetch_from_library(movie.id, self.folder / "walk.jsonl", file="sideCar"), 0)
        client.delete_from_library(movie.id)

    def test_a_movie_with_a_path_comes_to_it_when_it_has_ended(self) -> None:
        client = self.remote("desk", "control")
        path = self.folder / "path.mkv"
        with client.record(self.first, path=path) as movie:
            self.assertEqual((movie.target, path.exists()), (str(path), False))
        self.assertEqual((movie.ending.success, movie.start.fileType), (True, "mkv"))
        self.assertEqual(path.read_bytes(), Path(movie.path).read_bytes())
        self.assertGreater((self.folder / "path.mkv.frames.jsonl").stat().st_size, 0)
        known = [entry.id for entry in client.library().entries]
        with self.assertRaises(FileExistsError):
            client.record(self.first, path=path)
        with self.assertRaises(PathNotAllowed):
            client.record(self.first, path=self.folder / "detached.mp4", detached=True)
        self.assertEqual([entry.id for entry in client.library().entries], known)
        client.delete_from_library(movie.id)

        async def work() -> None:
            key = self.key("desk-task", "control")
            async with AsyncClient(
                self.address, server_key=self.folder / "server.pub", key=key, timeout=TIMEOUT
            ) as client:
                async with client.record(self.first, path=self.folder / "task.mp4", duration=0.2) as movie:
                    await movie.wait(timeout=TIMEOUT)
                    self.assertEqual(Path(movie.target or "").read_bytes(), Path(movie.path).read_bytes())
                await client.delete_from_library(movie.id)

        asyncio.run(work())

    def test_what_does_not_come_says_where_it_is(self) -> None:
        client = self.remote("desk", "control")
        path = self.folder / "taken.mp4"
        with self.assertRaises(FileExistsError) as refused:
            with client.record(self.first, path=path) as movie:
                path.write_bytes(b"theirs")
        self.assertIn(movie.id, refused.exception.__notes__[0])
        self.assertEqual((path.read_bytes(), client.library_entry(movie.id).state), (b"theirs", "finished"))
        client.delete_from_library(movie.id)

    def test_asyncio(self) -> None:
        key = self.key("task", "view")

        async def work() -> list[str]:
            async with AsyncClient(
                self.address, server_key=self.folder / "server.pub", key=key, timeout=TIMEOUT
            ) as client:
                async with client.frames(self.first, limit=3, timeout=TIMEOUT) as frames:
                    return [frame.format async for frame in frames]

        self.assertEqual(asyncio.run(work()), ["JPEG"] * 3)

    def test_the_camera_command_line_and_the_gateway_agree_on_files(self) -> None:
        made = subprocess.run(
            ["camerabus", "keys", "new", "cli", "-o", self.folder / "cli.key"], check=True, capture_output=True,
            text=True,
        )
        subprocess.run(
            ["camerabus", "keys", "add", "--file", self.keys, "cli", made.stdout.strip()], check=True,
            capture_output=True,
        )
        with Client(
            self.address, server_key=self.folder / "server.pub", key=self.folder / "cli.key", timeout=TIMEOUT
        ) as client:
            self.assertEqual(client.hello.you["pid"], 0)
            with self.assertRaises(FormatUnsupported):
                next(client.frames(self.first, rendition="jpeg:9000x9000", timeout=TIMEOUT))
        environment = {
            **self.environment(), "CAMERABUS_RUNTIME_DIR": self.address,
            "CAMERABUS_SERVER_KEY": str(self.folder / "server.pub"), "CAMERABUS_KEY": str(self.folder / "cli.key"),
        }  # fmt: skip

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=2 * TIMEOUT
            )

        listed = run("camerabus", "devices", "--media", "video", "--ids")
        self.assertEqual(
            (listed.returncode, listed.stdout.split()), (0, [device.id for device in self.client.devices("video")])
        )
        frames = run("camerabus", "frames", self.first, "jpeg:320x180", "-n", "2", "-o", "f-%d.jpg")
        self.assertEqual(frames.returncode, 0, frames.stderr)
        self.assertEqual(len(list(self.folder.glob("f-*.jpg"))), 2)
        locked = run("camerabus", "lock", self.first, "--", "true")
        self.assertEqual(locked.returncode, 1, locked.stderr)
        self.assertIn("unauthorized", locked.stderr)
        python = run(sys.executable, "-c", "from camerabus import Client; print(Client().runtime_dir)")
        self.assertIn(self.address, python.stdout)
        left = run(
            sys.executable, "-c",
            "from camerabus import Client\nwith Client() as client: watching = client.watch('state/')",
        )
        self.assertEqual((left.returncode, left.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
