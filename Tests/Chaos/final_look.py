"""What the files of a library are at the end."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any, Iterator

from history import Entry

MOVIES = (".mp4", ".mov", ".mkv", ".m4a", ".mka")


def files(library: Path) -> Iterator[Entry]:
    """A fact of each file that is no file of the library's own."""
    for path in sorted(library.glob("[0-9]*/*")):
        if path.is_file() and not path.name.startswith("."):
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            fact = {"file": str(path), "size": path.stat().st_size, "digest": digest}
            yield {**fact, **movie(path)} if path.suffix in MOVIES else fact


def movie(path: Path) -> dict[str, Any]:
    """Whether FFmpeg plays it from beginning to end, how many seconds, and the longest gap between two pictures."""
    decode = ["-nostdin", "-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "null", "-"]
    decoded = _run("ffmpeg", "-v", "error", "-i", str(path), *decode)
    asked = _run("ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", str(path))
    if asked.stdout.strip() in ("", "N/A"):
        # A Matroska file that was repaired does not say how long it is.
        asked = _run("ffprobe", "-v", "error", "-show_entries", "packet=pts_time", "-of", "csv=p=0", str(path))
    times = [float(word.strip(",")) for word in asked.stdout.split() if word.strip(",") not in ("", "N/A")]
    problem = (decoded.stderr + asked.stderr).strip()[:300]
    plays = decoded.returncode == 0 and not problem
    return {"plays": plays, "duration": max(times, default=0.0), "gap": _gap(path), "problem": problem}


def _gap(path: Path) -> float:
    side_car = Path(f"{path}.frames.jsonl")
    if not side_car.exists():
        return 0.0
    times = []
    for line in side_car.read_text().splitlines():
        try:
            times.append(json.loads(line).get("timestamp"))
        except ValueError:
            continue  # the last one of a recorder that was killed
    known = [time for time in times if isinstance(time, int)]
    return max((later - earlier for earlier, later in zip(known, known[1:])), default=0) / 1e9


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300)
