# SPDX-License-Identifier: Apache-2.0
"""Measures what it costs to write movies, beside ffmpeg, which does the same with the same pictures from a file.

Both write fragments of 10 s into files on the same disk. Ours has beside that what a movie is to outlive a power cut with: each fragment is
synced, and a side-car has a line for each frame. What is lost is told by the files, not by those who wrote them.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator

from camerabus import Client

from .bus import RATE, Bus
from .figures import rounds
from .lanes import Picture
from .processes import Failed, Program, machine_time, programs, thread_times

#: Frames that each has written when it is not the beginning any more, and the seconds in which they have to come.
_STEADY, _PATIENCE = 15, 30.0
#: Frames that ffmpeg is given again and again: more than a processor's caches hold, as a camera's pictures come from another one's.
_MATERIAL = 150
#: Seconds that ffmpeg may take until it reads its first frame, and after its last.
_LEEWAY = 1.0
#: The thread in which a virtual camera waits for the time of a frame and draws it.
_SENSOR = "sensor-"

JPEG_720 = Picture("MJPEG 720p", "MJPG", 1280, 720)
RAW_720 = Picture("raw 720p", "YUYV", 1280, 720)


@dataclass(frozen=True)
class Recording:
    """One measurement: so many cameras, each written to a file of its own."""

    picture: Picture
    cameras: int
    #: As `movie.start` takes it.
    codec: str
    #: None for ours; else what ffmpeg makes of it.
    ffmpeg: tuple[str, ...] | None = None

    @property
    def group(self) -> str:
        cameras = f"{self.cameras} cameras" if self.cameras > 1 else "1 camera"
        return f"{self.picture.name}, {cameras}, {'as it comes' if self.codec == 'passThrough' else 'H.264'}, to MP4"

    @property
    def lane(self) -> str:
        return "recorder" if self.ffmpeg is None else "ffmpeg " + " ".join(self.ffmpeg[:2])

    @property
    def name(self) -> str:
        return f"{self.group}: {self.lane}"


# As the recorder encodes: each picture as soon as it comes, key frames each two seconds.
_X264 = ("-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-b:v", "2765k", "-g", "60", "-pix_fmt", "yuv420p")


def recordings() -> Iterator[Recording]:
    """All that can be measured on this machine."""
    has_ffmpeg = shutil.which("ffmpeg") is not None
    for picture, cameras, codec, theirs in (
        (JPEG_720, 4, "passThrough", ("-c", "copy")),
        (JPEG_720, 1, "passThrough", ("-c", "copy")),
        (RAW_720, 1, "h264", _X264),
    ):
        yield Recording(picture, cameras, codec)
        if has_ffmpeg:
            yield Recording(picture, cameras, codec, theirs)


def _recorders(movies: list[str]) -> list[int]:
    """The processes that write these movies."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0") if process.name.isdigit() else []
        except OSError:
            continue
        if any(f"--movie={movie}" in words for movie in movies):
            found.append(int(process.name))
    if len(found) != len(movies):
        raise Failed(f"{len(movies)} movies are written by {len(found)} processes")
    return found


def _spent(pids: list[int]) -> int:
    return sum(spent for pid in pids for name, spent in thread_times(pid).items() if not name.startswith(_SENSOR))


def _window(seconds: float, writers: list[int], others: list[int], frames: Callable[[], int]) -> dict[str, float]:
    """What was spent within it, in milliseconds for each frame that was written."""
    first, busy, written, spent, beside = time.monotonic(), machine_time(), frames(), _spent(writers), _spent(others)
    time.sleep(seconds)
    written, spent, beside = frames() - written, _spent(writers) - spent, _spent(others) - beside
    busy, elapsed = machine_time() - busy, time.monotonic() - first
    if written <= 0:
        raise Failed("no frame was written")
    return {
        "cpu": spent / 1e6 / written,
        "beside": beside / 1e6 / written,
        "core_percent": spent / 1e7 / elapsed,
        "frames": written,
        # The kernel counts in hundredths of a second.
        "machine": busy / elapsed / (os.cpu_count() or 1),
    }


def _record(recording: Recording, bus: Bus, directory: Path, seconds: float) -> dict[str, float]:
    devices = bus.devices[: recording.cameras]
    with ExitStack() as stack:
        client = stack.enter_context(bus.client())
        movies = []
        for device in devices:
            path = directory / f"{device}.mp4"
            path.unlink(missing_ok=True)
            path.with_name(path.name + ".frames.jsonl").unlink(missing_ok=True)
            asked = {"device": device, "path": str(path), "codec": recording.codec}
            movies.append(client.call("movie.start", asked, timeout=30)["movie"])
            stack.callback(path.unlink, missing_ok=True)
            stack.callback(path.with_name(path.name + ".frames.jsonl").unlink, missing_ok=True)
        others = [bus.worker(client, device) for device in devices] + [bus.program.pid]

        with client.mirror("state/movie/") as told:
            # Of one that has ended already there is no more to be had.
            told.wait(
                lambda state: all(state.get(f"state/movie/{movie}/", {"frames": _STEADY})["frames"] >= _STEADY for movie in movies),
                _PATIENCE,
            )  # fmt: skip

        def status() -> list[dict[str, Any]]:
            return [client.call("movie.status", {"movie": movie})["movie"] for movie in movies]

        found = _window(
            seconds, _recorders(movies), others, lambda: sum(one["frames"] for one in status())
        )
        ended = [client.call("movie.stop", {"movie": movie}, timeout=30) for movie in movies]
        if not all(one["success"] for one in ended):
            raise Failed(f"a movie ended because of {[one['reason'] for one in ended]}")
        found["lost"] = sum(_lost(Path(one["path"]), one) for one in ended)
        return found


def _lost(path: Path, told: dict[str, Any]) -> int:
    """Frames of the camera, between the first and the last of a movie, that are not in its file."""
    lines = path.with_name(path.name + ".frames.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    numbers = [json.loads(line)["sequence"] for line in lines]
    written = _frames_in(path)
    if written is not None and not len(numbers) == told["frames"] == written:
        raise Failed(f"{path.name} has {written} frames, its side-car {len(numbers)}, and {told['frames']} were told")
    missing = numbers[-1] - numbers[0] + 1 - len(numbers)
    if missing != told["dropped"]:
        raise Failed(f"{path.name} lacks {missing} frames, and {told['dropped']} were told")
    return missing


def _frames_in(path: Path) -> int | None:
    """As ffprobe counts them; None where there is none."""
    if shutil.which("ffprobe") is None:
        return None
    probe = ["ffprobe", "-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0"]
    done = subprocess.run([*probe, str(path)], capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.strip():
        raise Failed(f"ffprobe: {done.stderr.strip()[:200]}")
    return int(done.stdout.split()[0].rstrip(","))


def _material(picture: Picture, client: Client, directory: Path) -> Path:
    """A second of the camera, as ffmpeg reads it with least trouble."""
    file = directory / f"{picture.pixel_format}-{picture.width}.{'avi' if picture.pixel_format == 'MJPG' else 'nut'}"
    if file.exists():
        return file
    pieces = []
    with client.frames("cam0", rendition="native", timeout=20) as frames:
        for frame in frames:
            pieces.append(bytes(frame.payload))
            if len(pieces) == _MATERIAL:
                break
    kind = ["-f", "mjpeg"] if picture.pixel_format == "MJPG" else [
        "-f", "rawvideo", "-pixel_format", "yuyv422", "-video_size", f"{picture.width}x{picture.height}"
    ]  # fmt: skip
    command = ["ffmpeg", "-v", "error", *kind, "-framerate", str(RATE), "-i", "-", "-c", "copy", "-y", str(file)]
    made = subprocess.run(command, input=b"".join(pieces), capture_output=True)
    if made.returncode != 0:
        raise Failed(f"ffmpeg: {made.stderr.decode(errors='replace').strip()[:200]}")
    return file


def _by_ffmpeg(recording: Recording, bus: Bus, directory: Path, seconds: float) -> dict[str, float]:
    with bus.client() as client:
        material = _material(recording.picture, client, directory)
    files = [directory / f"theirs{number}.mp4" for number in range(recording.cameras)]
    told = [file.with_suffix(".progress") for file in files]
    begin = time.monotonic()
    with ExitStack() as stack, programs() as started:
        for file, progress in zip(files, told):
            for one in (file, progress):
                one.unlink(missing_ok=True)
                stack.callback(one.unlink, missing_ok=True)
            started.append(
                Program(
                    ["ffmpeg", "-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", material, *(recording.ffmpeg or ())]
                    + ["-movflags", "frag_keyframe+empty_moov", "-min_frag_duration", "10000000", "-progress", progress, "-y", file],
                    stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
        _wait_for_ffmpeg(started, told)
        # It reads a file no faster than it plays.
        found = _window(
            seconds, [program.pid for program in started], [],
            lambda: math.floor((time.monotonic() - begin) * RATE) * recording.cameras,
        )  # fmt: skip
        due = math.floor((time.monotonic() - begin - _LEEWAY) * RATE)
        for program in started:
            program.ask_to_end()
        for program in started:
            program.process.wait(30)
        # Whether it kept up, or the figures would be of fewer frames.
        counts = [_frames_in(file) for file in files]
        found["lost"] = sum(max(0, due - count) for count in counts if count is not None)
        return found


def _wait_for_ffmpeg(started: list[Program], told: list[Path]) -> None:
    """Until each says that it has written frames."""
    until = time.monotonic() + _PATIENCE
    for program, progress in zip(started, told):
        while not progress.exists() or not any(int(count) >= _STEADY for count in re.findall(r"^frame=(\d+)$", progress.read_text(), re.M)):
            if time.monotonic() > until or program.process.poll() is not None:
                raise Failed(f"{program.name}: no frame was written")
            time.sleep(0.02)


def measure(recording: Recording, bus: Bus, directory: Path, seconds: float) -> dict[str, float]:
    """One window, in which all cameras are recorded."""
    picture = recording.picture
    bus.configure(bus.devices, picture.pixel_format, picture.width, picture.height)
    return (_record if recording.ffmpeg is None else _by_ffmpeg)(recording, bus, directory, seconds)


def summary(recording: Recording, done: list[dict[str, float]]) -> dict[str, Any]:
    """Medians from round to round."""
    return {
        "group": recording.group,
        "lane": recording.lane,
        "cpu_ms_per_frame": rounds([one["cpu"] for one in done]),
        # Of the workers, for pictures that readers take, and of the coordinator, which tells how far each movie is.
        "beside_ms_per_frame": rounds([one["beside"] for one in done]),
        "core_percent": rounds([one["core_percent"] for one in done]),
        "machine": rounds([one["machine"] for one in done]),
        "frames": sum(int(one["frames"]) for one in done),
        "lost": sum(int(one["lost"]) for one in done),
    }


def recording_lines(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """All of them, group by group."""
    group = None
    for row in found.values():
        if row["group"] != group:
            group = row["group"]
            yield ""
            yield f"{group:48}{'CPU ms/frame':>12} {'(rounds)':>16}{'% core':>8}{'frames':>8}{'lost':>6}{'beside':>10}{'machine %':>11}"
        cpu, bus = row["cpu_ms_per_frame"], row["beside_ms_per_frame"]["median"]
        spread, beside = f"[{cpu['min']:.3f}-{cpu['max']:.3f}]", f"(+ {bus:.3f})" if bus else ""
        yield (
            f"  {row['lane']:46}{cpu['median']:>12.3f} {spread:>16}"
            f"{row['core_percent']['median']:>8.1f}{row['frames']:>8}{row['lost']:>6}"
            f"{beside:>10}{100 * row['machine']['median']:>11.0f}"
        )
