# SPDX-License-Identifier: Apache-2.0
"""The ways on which frames go: ours, and those of others. What is started for each, and what is to be measured of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator

from .bus import RATE
from .tools import Tools


@dataclass(frozen=True)
class Picture:
    """What the camera is set to, and one frame of it, which the others send."""

    name: str
    pixel_format: str
    width: int
    height: int
    rendition: str = "native"
    file: Path | None = None

    @property
    def shape(self) -> str:
        return "-1" if self.pixel_format == "MJPG" else f"{self.height},{self.width},2"


RAW = Picture("raw 1080p", "YUYV", 1920, 1080)
JPEG = Picture("MJPEG 1080p", "MJPG", 1920, 1080)
SMALL = Picture("raw 720p", "YUYV", 1280, 720)
PREVIEW = Picture("raw 1080p → jpeg:640x360", "YUYV", 1920, 1080, "jpeg:640x360")


#: Cameras, to see how many go at once.
MANY = 16


@dataclass(frozen=True)
class Place:
    """Where one measurement happens."""

    tools: Tools
    runtime_dir: str
    directory: Path
    picture: Picture
    readers: int = 1

    @property
    def endpoint(self) -> str:
        return f"ipc://{self.directory}/peer"


#: The arguments of a program: (place, device, file of records) → words.
Command = Callable[[Place, str, Path], list[object]]


@dataclass(frozen=True)
class Lane:
    """`publish` is None for the lanes of our own bus, whose workers publish."""

    name: str
    read: Command
    publish: Command | None = None
    #: Its publisher has a thread in place of a device that publishes by itself, as a virtual camera's does.
    has_device: bool = False


def _publisher(script: str) -> Command:
    return lambda at, _, records: [
        *at.tools.script(script), "publish", at.endpoint, RATE, at.picture.file, at.picture.shape, records,
    ]  # fmt: skip


def _ring_publisher(mode: str) -> Command:
    def publish(at: Place, _: str, records: Path) -> list[object]:
        picture = at.picture
        return [
            at.tools.program("ring_frames"), "publish", at.directory / "peer.ring", RATE, picture.file,
            picture.width, picture.height, mode, records,
        ]  # fmt: skip

    return publish


def _read_own_ring(at: Place, _: str, records: Path) -> list[object]:
    return [at.tools.program("ring_frames"), "read", at.directory / "peer.ring", "native", records]


RING_C = Lane(
    "ring, C",
    lambda at, device, records: [
        at.tools.program("ring_frames"), "read", f"{at.runtime_dir}/media/{device}.ring", at.picture.rendition, records,
    ],
)  # fmt: skip
RING_PYTHON = Lane(
    "ring, Python",
    lambda at, device, records: [
        *at.tools.script("bus_frames"), "ring", at.runtime_dir, device, at.picture.rendition, records,
    ],
)  # fmt: skip
BUFFER_C = Lane(
    "buffer/, C",
    lambda at, device, records: [
        at.tools.program("zmq_frames"), "buffer", f"ipc://{at.runtime_dir}/media/{device}.sock",
        f"buffer/{device}/{at.picture.rendition}/", f"{at.runtime_dir}/media/{device}.ring", at.picture.rendition, records,
    ],
)  # fmt: skip
FRAME_C = Lane(
    "frame/, C",
    lambda at, device, records: [
        at.tools.program("zmq_frames"), "read", f"ipc://{at.runtime_dir}/media/{device}.sock",
        f"frame/{device}/{at.picture.rendition}/", records,
    ],
)  # fmt: skip
BUFFER_PYTHON = Lane(
    "buffer/, Python",
    lambda at, device, records: [
        *at.tools.script("bus_frames"), "shared", at.runtime_dir, device, at.picture.rendition, records,
    ],
)  # fmt: skip
FRAME_PYTHON = Lane(
    "frame/, Python",
    lambda at, device, records: [
        *at.tools.script("bus_frames"), "frame", at.runtime_dir, device, at.picture.rendition, records,
    ],
)  # fmt: skip
FLOOR_WAKE = Lane("floor: C ring, nothing copied", _read_own_ring, _ring_publisher("wake"))
FLOOR_DEVICE = Lane("floor: C ring, from a device", _read_own_ring, _ring_publisher("device"), has_device=True)
FLOOR_COPY = Lane("floor: C ring, copied into", _read_own_ring, _ring_publisher("copy"))


def _zmq_floor(name: str, mode: str) -> Lane:
    def publish(at: Place, _: str, records: Path) -> list[object]:
        return [
            at.tools.program("zmq_frames"), "publish", at.endpoint, "frame/cam0/native/", RATE, at.picture.file, mode,
            records,
        ]  # fmt: skip

    return Lane(
        name, lambda at, _, records: [at.tools.program("zmq_frames"), "read", at.endpoint, "frame/cam0/native/", records], publish,
    )  # fmt: skip


FLOOR_ZMQ = _zmq_floor("floor: C on libzmq, one memory", "same")
FLOOR_ZMQ_DEVICE = _zmq_floor("floor: C on libzmq, from a device", "device")
PYZMQ = Lane(
    "pyzmq",
    lambda at, _, records: [*at.tools.script("pyzmq_frames"), "read", at.endpoint, records],
    _publisher("pyzmq_frames"),
)
IMAGEZMQ = Lane(
    "imagezmq",
    lambda at, _, records: [*at.tools.script("imagezmq_frames"), "read", at.endpoint, at.picture.shape, records],
    _publisher("imagezmq_frames"),
)
NETGEAR = Lane(
    "VidGear NetGear",
    # The number of a reader is the last part of its file's name.
    lambda at, _, records: [
        *at.tools.script("netgear_frames"), "read", at.directory / "netgear", records.name.rpartition("-")[2], records,
    ],
    lambda at, _, records: [
        *at.tools.script("netgear_frames"), "publish", at.directory / "netgear", at.readers, RATE, at.picture.file,
        at.picture.shape, records,
    ],
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One measurement: a lane with so many readers of each of so many cameras."""

    picture: Picture
    lane: Lane
    readers: int
    cameras: int = 1

    @property
    def group(self) -> str:
        return f"{self.picture.name}, " + (
            (f"{self.cameras} cameras, " if self.cameras > 1 else "")
            + f"{self.readers} reader{'s' if self.readers > 1 else ''}"
            + (" of each" if self.cameras > 1 else "")
        )

    @property
    def name(self) -> str:
        return f"{self.group}: {self.lane.name}"


def cells(tools: Tools) -> Iterator[Cell]:
    """All that can be measured on this machine, in the order of the table."""
    peers = {"pyzmq": PYZMQ, "imagezmq": IMAGEZMQ, "netgear": NETGEAR}
    others = [peers[name] for name in tools.peers]
    floors = ([FLOOR_DEVICE, FLOOR_WAKE, FLOOR_COPY] if tools.has_ring else []) + ([FLOOR_ZMQ_DEVICE, FLOOR_ZMQ] if tools.has_zmq else [])
    native = ([RING_C] if tools.has_ring else []) + ([BUFFER_C, FRAME_C] if tools.has_zmq else [])
    in_python = [RING_PYTHON, BUFFER_PYTHON, FRAME_PYTHON] if tools.has_numpy else []
    for readers in (1, 4):
        for lane in native + in_python + floors + others:
            yield Cell(RAW, lane, readers)
    for lane in native + floors:
        yield Cell(RAW, lane, 16)
    for lane in native:
        yield Cell(RAW, lane, 4, cameras=4)
    for readers in (1, 4, 16):
        for lane in native:
            yield Cell(PREVIEW, lane, readers)
    for readers in (1, 4):
        for lane in native + in_python[1:] + [lane for lane in floors if lane in (FLOOR_COPY, FLOOR_ZMQ, FLOOR_ZMQ_DEVICE)] + others:
            yield Cell(JPEG, lane, readers)
    for lane in native + [lane for lane in floors if lane in (FLOOR_ZMQ, FLOOR_ZMQ_DEVICE)]:
        yield Cell(JPEG, lane, 16)
    for lane in native[:2]:
        yield Cell(SMALL, lane, 1, cameras=MANY)
