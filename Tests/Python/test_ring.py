"""Rings by themselves: memory that is sealed, and waiting for a frame in it."""

from __future__ import annotations

import ctypes
import fcntl
import json
import math
import mmap
import os
import queue
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest
from typing import Any
from unittest import mock

import vectors
from camerabus import BusNotRunning, CaptureError, ProtocolError, Sound
from camerabus.futex import WaitWord
from camerabus.ring import RingClosed, RingFrame, RingReader, RingSound
from camerabus.ring_connection import RingConnection, SoundRingConnection

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


def ring_frame(frame: RingFrame | RingSound) -> dict[str, Any]:
    """A frame as ring-readings.json writes it."""
    if isinstance(frame, RingSound):
        return {
            "slot": frame.slot,
            "number": frame.number,
            "skipped": frame.skipped,
            "sequence": frame.sequence,
            "firstFrame": frame.firstFrame,
            "frames": frame.frames,
            "monotonic": frame.timestamp.monotonic,
            "realtime": frame.timestamp.realtime,
            "generation": frame.generation,
            "overruns": frame.overruns,
            "bytes": len(frame.payload),
            "source": frame.timestamp.source,
        }
    return {
        "slot": frame.slot,
        "number": frame.number,
        "skipped": frame.lost,
        "sequence": frame.sequence,
        "captureSequence": frame.captureSequence,
        "monotonic": frame.timestamp.monotonic,
        "presentation": frame.presentation,
        "realtime": frame.timestamp.realtime,
        "generation": frame.generation,
        "dropped": frame.dropped,
        "bytes": len(frame.payload),
        "source": frame.timestamp.source,
        "keyframe": frame.header.get("keyframe"),
        "zoom": frame.zoom,
    }


class Publisher:
    """A ring as a worker makes it: the head of the first vector, or of that with sound, and 12 slots."""

    def __init__(self, sealed: bool = True, sound: bool = False) -> None:
        self.slot_bytes, self.count = (4096, 1920) if sound else (8192, 7680)
        # Of sound the first frame's number stands there.
        self.step = 480 if sound else 1
        self.SIZE = 4096 + 12 * self.slot_bytes
        self.descriptor = os.memfd_create("ring", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, self.SIZE)
        self.memory = mmap.mmap(self.descriptor, self.SIZE)
        cases = json.loads((vectors.PROTOCOL / "vectors" / "ring-heads.json").read_bytes())["cases"]
        head = next(case for case in cases if case["name"] == ("sound" if sound else "one plane"))
        self.memory[:512] = vectors.frame(head["frames"][0])
        if sealed:
            fcntl.fcntl(self.descriptor, 1033, 0x1 | 0x2 | 0x4 | 0x10)
        self.number = 0
        self._libc = ctypes.CDLL(None)

    def publish(self, slot: int | None = None) -> None:
        self.number += 1
        slot = self.number % 12 if slot is None else slot
        at = 512 + 64 * slot
        self.memory[at : at + 8] = struct.pack("<Q", 1)
        place = 4096 + slot * self.slot_bytes
        self.memory[place : place + self.count] = bytes([self.number % 256]) * self.count
        self.memory[at + 8 : at + 64] = struct.pack(
            "<QQqqQQII", self.number - 1, self.number * self.step, 5, 6, 7, 0, self.count, 0
        )
        self.memory[at : at + 8] = struct.pack("<Q", self.number * 2)
        self.memory[452:456] = struct.pack("<I", slot)
        self._count()

    def end(self, why: int) -> None:
        self.memory[456:460] = struct.pack("<I", why)
        self._count()

    def _count(self) -> None:
        (count,) = struct.unpack("<I", self.memory[448:452])
        self.memory[448:452] = struct.pack("<I", count + 1)
        word = ctypes.c_char.from_buffer(self.memory, 448)
        self._libc.syscall(
            ctypes.c_long(202), ctypes.byref(word), ctypes.c_long(1), ctypes.c_long(1 << 30), None, None, None
        )

    def close(self) -> None:
        os.close(self.descriptor)


@unittest.skipUnless(os.uname().machine == "x86_64", "the publisher here knows the futex of x86_64 only")
class Rings(unittest.TestCase):
    def setUp(self) -> None:
        self.publisher = Publisher()
        self.addCleanup(self.publisher.close)

    def test_what_is_published_is_found(self) -> None:
        reader = RingReader.attach(self.publisher.descriptor)
        for number in range(1, 40):
            self.publisher.publish()
            frame = reader.poll()
            assert frame is not None
            self.assertEqual((frame.number, frame.sequence, frame.lost), (number, number - 1, 0))
            self.assertEqual(bytes(frame.payload), bytes([number]) * 7680)
            self.assertTrue(frame.payload.readonly)
            self.assertTrue(frame.is_intact())
            self.assertIsNone(reader.poll())

    def test_what_was_overwritten_is_late(self) -> None:
        reader = RingReader.attach(self.publisher.descriptor)
        self.publisher.publish(0)
        frame = reader.poll()
        assert frame is not None
        kept = frame.copy()
        assert kept is not None
        self.publisher.publish(0)
        self.assertFalse(frame.is_intact())
        self.assertIsNone(frame.copy())
        self.assertEqual(reader.late, 1)
        self.assertEqual(bytes(kept.payload), b"\1" * 7680)

    @unittest.skipUnless(numpy, "NumPy is not there")
    def test_an_array_is_a_view(self) -> None:
        reader = RingReader.attach(self.publisher.descriptor)
        self.publisher.publish(3)
        frame = reader.poll()
        assert frame is not None
        picture = frame.array()
        self.assertEqual(picture.shape, (60, 64, 2))
        self.assertFalse(picture.flags.writeable or picture.flags.owndata)
        self.assertEqual(int(picture[5, 5, 1]), 1)
        self.publisher.memory[4096 + 3 * 8192 : 4096 + 3 * 8192 + 7680] = b"\x09" * 7680
        self.assertEqual(int(picture[5, 5, 1]), 9)

    def test_waiting_ends_with_a_frame_or_with_its_time_or_with_the_ring(self) -> None:
        reader = RingReader.attach(self.publisher.descriptor)
        self.assertIsNone(reader.wait(0.01))
        self.assertIsNone(reader.wait(-1))
        got: queue.SimpleQueue[int] = queue.SimpleQueue()
        begun = threading.Event()

        def read() -> None:
            begun.set()
            try:
                while (frame := reader.wait(30, "next")) is not None:
                    got.put(frame.number)
            except RingClosed:
                got.put(-1)

        thread = threading.Thread(target=read)
        thread.start()
        begun.wait()
        self.publisher.publish()
        self.assertEqual(got.get(timeout=10), 1)
        self.publisher.publish()
        self.publisher.publish()
        self.publisher.end(1)
        thread.join(30)
        self.assertEqual([got.get(timeout=10) for _ in range(3)], [2, 3, -1])

    def test_who_waits_for_a_word_sleeps(self) -> None:
        descriptor = os.memfd_create("word")
        self.addCleanup(os.close, descriptor)
        os.pwrite(descriptor, (7).to_bytes(4, sys.byteorder), 96 * 4)
        os.ftruncate(descriptor, 512)
        word = WaitWord.make(descriptor, 512, 96)
        if word is None:
            self.skipTest("this machine has no futex that Python can reach")
        word.wait(8, time.monotonic_ns() + 60_000_000_000)  # it has another value
        until = time.monotonic_ns() + 20_000_000
        word.wait(7, until)
        self.assertGreaterEqual(time.monotonic_ns(), until)

    def test_memory_that_could_become_shorter_is_refused(self) -> None:
        publisher = Publisher(sealed=False)
        self.addCleanup(publisher.close)
        with self.assertRaises(ProtocolError):
            RingReader.attach(publisher.descriptor)
        with tempfile.TemporaryFile() as file, self.assertRaises(ProtocolError):
            RingReader.attach(file.fileno())

    def test_a_connection_follows_ring_changes(self) -> None:
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            path = f"{folder}/cam0.ring"
            with self.assertRaises(BusNotRunning):
                RingConnection(path)
            server.bind(path)
            server.listen()
            with RingConnection(path, "native") as connection:
                peer, _ = server.accept()
                with peer:
                    self.assertEqual(json.loads(peer.recv(1000)), {"rendition": "native"})
                    self.assertIsNone(connection.next(0.01))
                    refusal = {"error": {"reason": "deviceDisconnected", "message": "It is gone."}}
                    peer.send(json.dumps(refusal).encode())
                    with self.assertRaises(CaptureError) as caught:
                        connection.next(10)
                    self.assertEqual(caught.exception.reason, "deviceDisconnected")
                    socket.send_fds(peer, [b"{}"], [self.publisher.descriptor])
                    self.publisher.publish()
                    frame = connection.next(10)
                    assert frame is not None
                    self.assertEqual(frame.number, 1)
                    self.publisher.publish()
                    self.publisher.end(1)
                    other = Publisher()
                    self.addCleanup(other.close)
                    socket.send_fds(peer, [b"{}"], [other.descriptor])
                    numbers = []
                    for _ in range(2):
                        if numbers:
                            other.publish(7)
                        frame = connection.next(10)
                        assert frame is not None
                        numbers.append((frame.number, frame.slot))
                    self.assertEqual(numbers, [(2, 2), (1, 7)])
                    other.end(2)
                with self.assertRaises(BusNotRunning):
                    connection.next(10)

    def test_sound_comes_in_order_and_losses_are_reported(self) -> None:
        publisher = Publisher(sound=True)
        self.addCleanup(publisher.close)
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            path = f"{folder}/mic0.ring"
            server.bind(path)
            server.listen()
            with SoundRingConnection(path) as connection, RingConnection(path) as other:
                peers = [server.accept()[0] for _ in range(2)]
                for peer in peers:
                    self.addCleanup(peer.close)
                    socket.send_fds(peer, [b"{}"], [publisher.descriptor])
                publisher.publish()
                with self.assertRaises(ProtocolError):
                    other.next(10)
                first = connection.next(10)
                assert first is not None
                self.assertEqual(
                    (first.firstFrame, first.frames, first.rate, first.sampleFormat), (480, 480, 48000, "s16")
                )
                self.assertEqual((len(first.payload), first.lost, first.overruns), (1920, 0, 0))
                publisher.publish()
                publisher.publish()
                after = [connection.next(10), connection.next(10)]
                self.assertEqual([piece and piece.firstFrame for piece in after], [960, 1440])
                for _ in range(14):
                    publisher.publish()
                late = connection.next(10)
                assert late is not None
                # Of the pieces 4 to 17 the last twelve are left.
                self.assertEqual((late.number, late.skipped, late.lost), (6, 2, 960))
                kept = late.copy()
                assert kept is not None
                for _ in range(12):
                    publisher.publish()
                self.assertFalse(late.is_intact())
                self.assertIsNone(late.copy())
                self.assertEqual(bytes(kept.payload), bytes([6]) * 1920)
                self.assertIsInstance(kept, Sound)

    def test_where_nobody_can_answer_it_says_why(self) -> None:
        for path, why in {"/tmp/" + "x" * 120: "too long", "/nowhere/cam0.ring": "No such file"}.items():
            with self.subTest(why), self.assertRaisesRegex(BusNotRunning, why):
                RingConnection(path)

    def test_a_worker_that_takes_no_connections_holds_nobody(self) -> None:
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            path = f"{folder}/cam0.ring"
            server.bind(path)
            server.listen(0)
            with RingConnection(path), mock.patch("camerabus.ring_connection._CONNECTING", 1):
                with self.assertRaises(BusNotRunning):
                    RingConnection(path)

    def test_waiting_without_a_limit_takes_what_comes(self) -> None:
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            path = f"{folder}/cam0.ring"
            server.bind(path)
            server.listen()
            with RingConnection(path) as connection:
                peer, _ = server.accept()
                with peer:
                    socket.send_fds(peer, [b"{}"], [self.publisher.descriptor])
                    self.publisher.publish()
                    frame = connection.next(math.inf)
                    self.assertEqual(frame and frame.number, 1)

    def test_a_worker_that_was_killed_closes_its_connection_only(self) -> None:
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            path = f"{folder}/cam0.ring"
            server.bind(path)
            server.listen()
            with RingConnection(path) as connection:
                peer, _ = server.accept()
                with peer:
                    socket.send_fds(peer, [b"{}"], [self.publisher.descriptor])
                    self.assertIsNone(connection.next(0.01))
                    self.publisher.publish()
                with self.assertRaises(BusNotRunning):
                    while connection.next(3600) is not None:
                        pass


if __name__ == "__main__":
    unittest.main()
