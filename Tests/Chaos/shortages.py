"""A bus that runs out of disk, inodes, descriptors or memory, or whose readers do not read: who is hurt, and does all
come back?
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator

import final_look
import frame_rules
import history
import zmq
from camerabus import BusTimeout, CaptureError, Client
from story import Story
from tested_bus import DEADLINE, BusUnderTest, memory
from waiting import eventually
from workload import FORMAT

SETTINGS = "[library]\nmin_free = 0\n"
#: Bytes that a process may hold for readers that do not read ([LIM-1]).
HELD = 200 << 20
#: What a program ends with that refuses to start.
REFUSALS = (1, 2, 78)
#: Seconds until movies have noticed that nothing can be written, and until devices are found after a start.
NOTICE, FIND = 40.0, 15.0


class Shortage:
    """One kind, with buses of its own. What is wrong is in `wrong`."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.wrong: list[str] = []
        self.buses: list[BusUnderTest] = []

    def bus(self, *arguments: str, folder: str = "bus") -> BusUnderTest:
        options = ("--virtual", "2", *arguments)
        self.buses.append(BusUnderTest(self.programs, self.folder / folder, *options, settings=SETTINGS))
        return self.buses[-1]

    def fail(self, text: str) -> None:
        self.wrong.append(text[:700])

    def ask(self, client: Client, method: str, params: dict[str, Any] | None = None, needed: bool = False) -> Any:
        """The result; None if it is refused, which fails if it is needed. No answer fails."""
        try:
            return client.call(method, params)
        except CaptureError as error:
            if needed or type(error).__name__ in ("BusTimeout", "BusGone", "ProtocolError"):
                self.fail(f"{method}: {type(error).__name__}: {error}")
            return None

    def prepare(self, client: Client) -> int:
        """Small pictures; the newest fence."""
        with client.lock("cam0", "cam1", wait=DEADLINE) as lock:
            client.configure([{"device": camera, **FORMAT} for camera in ("cam0", "cam1")])
            return lock.fence

    def finish(self, bus: BusUnderTest) -> None:
        for line in (*bus.stop(), *bus.crashes()):
            self.fail(line)

    @contextmanager
    def watched(self, bus: BusUnderTest, client: Client) -> Iterator[None]:
        """From when a reader has frames of both cameras; those that it loses meanwhile are a failure."""
        script = Path(__file__).with_name("workload.py")
        command = [sys.executable, str(script), "watch-frames", str(bus.folder), "1", "0", "0"]
        watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        topics = [f"state/device/{camera}/" for camera in ("cam0", "cam1")]
        try:
            with client.mirror("state/device/") as devices:
                devices.wait(lambda state: all(state[topic]["isStreaming"] for topic in topics), DEADLINE)
            yield
        finally:
            watcher.terminate()
            watcher.wait()
        for violation in frame_rules.check(Story(history.read(bus.folder))):
            self.fail(f"{violation.rule} {violation.text}")

    # What is changed while nothing can be written, and looked for after the bus was killed

    def change_all(self, client: Client) -> dict[str, Callable[[Client], bool]]:
        """Tries to change what a bus keeps: how to see each change that was answered without `kept: false`."""
        promised: dict[str, Callable[[Client], bool]] = {}

        def change(method: str, params: dict[str, Any], is_there: Callable[[Client, Any], bool]) -> None:
            result = self.ask(client, method, params)
            if result is not None and result.get("kept") is not False:
                promised[f"{method} {json.dumps(params)}"] = lambda client: is_there(client, result)

        def names(method: str, member: str) -> Callable[[Client, Any], bool]:
            return lambda client, _: "made" in [each["name"] for each in client.call(method)[member]]

        def has_session(client: Client, result: Any) -> bool:
            return result["session"] in [each["id"] for each in client.call("session.list")["sessions"]]

        change("profile.save", {"name": "made", "devices": "cam0"}, names("profile.list", "profiles"))
        change("rig.set", {"name": "made", "devices": ["cam0", "cam1"]}, names("rig.list", "rigs"))
        change("take.create", {"device": "cam0", "name": "made"}, names("take.list", "takes"))
        change("session.create", {"inputs": ["cam0"], "detached": True}, has_session)
        change("device.rename", {"device": "mic0", "name": "other"}, lambda client, _: bool(client.device("other")))
        for deliver in (["library"], ["library", "reply"]):
            self.ask(client, "photo.capture", {"device": "cam0", "deliver": deliver})
        return promised

    def kill_and_look(self, bus: BusUnderTest, promised: dict[str, Callable[[Client], bool]], fence: int) -> None:
        """[FAI-5] What was answered is there after the bus was killed; [LCK-16] fences rise all the same."""
        assert bus.process is not None
        bus.process.kill()
        bus.process.wait()
        try:
            client = self.start(bus)
        except CaptureError:
            if bus.process.poll() not in REFUSALS:
                self.fail(f"it neither starts nor refuses to: {bus.end_of_log()[-300:]}")
            return
        with client:
            for what, is_there in promised.items():
                if not self.wait(client, partial(self._holds, is_there, client)):
                    self.fail(f"[FAI-5] {what} was answered, and is not there after the bus was killed")
            lock = self.ask(client, "device.lock", {"devices": "cam0", "wait": 3000})
            if lock is not None:
                self.ask(client, "device.unlock", {"lock": lock["lock"]}, needed=True)
                if lock["fence"] <= fence:
                    self.fail(f"[LCK-16] the fence {lock['fence']} is not above {fence}")

    @staticmethod
    def start(bus: BusUnderTest) -> Client:
        """A client of the bus that this starts. Raises if the bus refuses to start."""
        bus.start(FIND)
        return bus.client("shortage")

    def works_again(self, bus: BusUnderTest) -> None:
        """The next bus has all that it needs. ([LIB-2] It is the next one that has to repair what could not be.)"""
        for line in bus.stop():
            self.fail(line)
        bus.start_ready()
        with bus.client("shortage") as client:
            self.wait(client, lambda: client.device("cam0").worker.state == "running")
            # No topic has the state of entries.
            eventually(lambda: not unrepaired(client), FIND, 0.1)
            self.ask(client, "photo.capture", {"device": "cam0"}, needed=True)
            lock = self.ask(client, "device.lock", {"devices": "cam0", "wait": 10000}, needed=True)
            if lock is not None:
                change = {"device": "cam0", "controls": {"brightness": 21}}
                done = self.ask(client, "device.configure", {"lock": lock["lock"], "changes": [change]}, needed=True)
                if done is not None and done.get("kept") is False:
                    self.fail("[KEP-1] a change is not kept though there is room again")
            for entry in unrepaired(client):
                self.fail(f"[LIB-2] {entry['path']} is {entry['state']}: {entry.get('problem')}")

    @staticmethod
    def _holds(is_there: Callable[[Client], bool], client: Client) -> bool:
        with suppress(CaptureError):
            return is_there(client)
        return False

    @staticmethod
    def wait(client: Client, is_so: Callable[[], bool]) -> bool:
        """Looks at each change of the state until it is so, at most for FIND seconds, and returns whether it is."""
        until = time.monotonic() + FIND
        with client.mirror() as state:
            while not (result := is_so()) and time.monotonic() < until:
                state.update(until - time.monotonic())
        return result


def unrepaired(client: Client) -> list[dict[str, Any]]:
    entries = client.call("library.list", {"limit": 1000})["entries"]
    return [entry for entry in entries if entry["state"] not in ("finished", "recovered")]


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


def fill(folder: Path) -> Path:
    """Until not one byte more can be written."""
    path = folder / "filler"
    with open(path, "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return path


def disk(case: Shortage) -> None:
    """The disk of the state and the library is full."""
    bus = case.bus()
    with small_disk(bus.state, "size=6m"):
        bus.start_ready()
        with bus.client("shortage") as client:
            fence = case.prepare(client)
            with case.watched(bus, client):
                movies = [
                    client.call("movie.start", {"device": device, "fragmentInterval": 1000, "name": name})
                    for device, name in (("cam0", "one.mp4"), ("cam1", "two.mkv"))
                ]
                for movie in movies:
                    topic = f"state/movie/{movie['movie']}/"
                    with client.mirror(topic) as state:
                        state.wait(lambda state: state[topic]["recordedDuration"] >= 2000, DEADLINE)
                filler = fill(bus.state)
                for movie in movies:
                    check_end(case, client, movie)
                case.kill_and_look(bus, case.change_all(client), fence)
            filler.unlink()
        case.works_again(bus)
        case.finish(bus)


def check_end(case: Shortage, client: Client, movie: dict[str, Any]) -> None:
    """[MOV-10] Its end says whether there is a file, and that plays."""
    topic = f"state/movie/{movie['movie']}/"
    with client.mirror(topic) as state, suppress(BusTimeout):
        state.wait(lambda state: state.get(topic) is None, NOTICE)
    end = client.call("movie.status", {"movie": movie["movie"]})["movie"].get("end")
    if end is None:
        case.fail(f"{movie['path']} does not end though nothing can be written")
        return
    if end["kept"]:
        fact = final_look.movie(Path(movie["path"]))
        if not fact["plays"] or fact["duration"] < end["duration"] / 1000 - 1.5:
            case.fail(f"[MOV-10] {movie['path']} is {fact}, and its end was {end}")


def inodes(case: Shortage) -> None:
    """No file can be made any more where state and library are."""
    bus = case.bus()
    with small_disk(bus.state, "size=60m,nr_inodes=80"):
        bus.start_ready()
        with bus.client("shortage") as client:
            fence = case.prepare(client)
            made: list[Path] = []
            with suppress(OSError):
                while True:
                    made.append(bus.state / f"filler-{len(made)}")
                    made[-1].touch(exist_ok=False)
            case.kill_and_look(bus, case.change_all(client), fence)
        for path in made:
            path.unlink(missing_ok=True)
        case.works_again(bus)
        case.finish(bus)


def runtime(case: Shortage) -> None:
    """The runtime directory is full."""
    bus = case.bus()
    with small_disk(bus.runtime, "size=1m,mode=0700"):
        bus.start_ready()
        with bus.client("shortage") as client:
            fence = case.prepare(client)
            with case.watched(bus, client):
                filler = fill(bus.runtime)
                case.kill_and_look(bus, case.change_all(client), fence)
            filler.unlink()
        case.works_again(bus)
        case.finish(bus)


def descriptors(case: Shortage) -> None:
    """Few descriptors for every process: it serves, or it refuses to start and says why."""
    for limit in (40, 256, 512, 600):
        bus = case.bus(folder=str(limit))
        bus.command[:0] = ["prlimit", f"--nofile={limit}:{limit}"]
        try:
            client = case.start(bus)
        except CaptureError:
            assert bus.process is not None
            if bus.process.poll() not in REFUSALS or "LimitNOFILE" not in bus.end_of_log():
                case.fail(f"{limit}: it neither serves nor says what it needs: {bus.end_of_log()[-200:]}")
            bus.kill()
            continue
        held = []
        for number in range(300):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(0.2)
            with suppress(OSError):
                connection.connect(str(bus.runtime / ("command.sock", "events.sock", "media/cam0.sock")[number % 3]))
            held.append(connection)
        with client:
            case.ask(client, "device.list", needed=True)
            close_all(held)
            case.ask(client, "device.controls", {"device": "cam0"}, needed=True)
            case.ask(client, "photo.capture", {"device": "cam0", "deliver": ["reply"]}, needed=True)
            case.ask(client, "movie.start", {"device": "cam0", "maxDuration": 1000})
            case.ask(client, "library.list")
        lines = len(bus.log.read_text(errors="replace").splitlines())
        if lines > 300:
            case.fail(f"{limit}: {lines} lines in the log")
        case.finish(bus)


def close_all(connections: list[socket.socket]) -> None:
    """Returns when the bus has closed its ends, too, after FIND seconds at the latest."""
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
    until = time.monotonic() + FIND
    for connection in connections:
        with connection, suppress(OSError):
            connection.settimeout(max(0.001, until - time.monotonic()))
            while connection.recv(4096):
                pass


def address_space(case: Shortage) -> None:
    """Little memory for every process: what cannot be done is refused, and nothing traps."""
    for limit in (300, 700, 1500):
        bus = case.bus(folder=str(limit))
        bus.command[:0] = ["prlimit", f"--as={limit << 20}"]
        with suppress(CaptureError), case.start(bus) as client:
            for method, params in (
                ("device.controls", {"device": "cam0"}), ("photo.capture", {"device": "cam0", "deliver": ["reply"]}),
                ("movie.start", {"device": "cam0", "maxDuration": 1000}), ("library.list", {}),
            ):  # fmt: skip
                case.ask(client, method, params)
        case.finish(bus)


def readers(case: Shortage) -> None:
    """Readers of each kind that do not read cost others nothing, and the bus a bounded amount of memory."""
    bus = case.bus("--virtual-microphones", "2")
    bus.start_ready()
    with bus.client("shortage") as client:
        case.prepare(client)
        client.call("rig.set", {"name": "pair", "devices": ["cam0", "cam1"]})
        with case.watched(bus, client):
            before = {pid: memory(pid) for pid in bus.processes()}
            context = zmq.Context()
            rings = [no_reader(bus, context) for _ in range(6)]
            # For so long they do not read, and another client is served; nothing is waited for.
            until = time.monotonic() + 30
            while time.monotonic() < until:
                case.ask(client, "bus.ping", needed=True)
                time.sleep(0.05)
            for pid, kind in bus.processes().items():
                if pid in before and memory(pid) - before[pid] > HELD:
                    case.fail(f"[LIM-1] {kind} grew by {(memory(pid) - before[pid]) >> 20} MiB")
            context.destroy(linger=0)
            for ring in rings:
                ring.close()
    case.finish(bus)


def no_reader(bus: BusUnderTest, context: zmq.Context[zmq.Socket[bytes]]) -> socket.socket:
    """Connections of one such client; that of the ring has to be closed."""
    for path, topic in (
        ("media/cam0.sock", b"frame/cam0/native/"), ("media/cam0.sock", b"frame/cam0/jpeg/"),
        ("media/cam1.sock", b"buffer/cam1/native/"), ("media/mic0.sock", b"audio/mic0/native/"),
        ("media/pair.sock", b"set/pair/native/"), ("events.sock", b""),
    ):  # fmt: skip
        subscriber = context.socket(zmq.SUB)
        subscriber.setsockopt(zmq.RCVHWM, 1)
        subscriber.setsockopt(zmq.RCVBUF, 4096)
        subscriber.setsockopt(zmq.SUBSCRIBE, topic)
        subscriber.connect(f"ipc://{bus.runtime / path}")
    dealer = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.RCVHWM, 1)
    dealer.connect(f"ipc://{bus.runtime / 'command.sock'}")
    for number in range(200):
        dealer.send_multipart([b"", json.dumps({"jsonrpc": "2.0", "id": number, "method": "bus.methods"}).encode()])
    ring = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ring.connect(str(bus.runtime / "media" / "cam0.ring"))
    ring.send(b'{"rendition":"native"}')
    return ring


KINDS: dict[str, Callable[[Shortage], None]] = {
    "disk": disk, "inodes": inodes, "runtime": runtime, "descriptors": descriptors, "memory": address_space,
    "readers": readers,
}  # fmt: skip


def run(programs: Path, folder: Path, kinds: str) -> int:
    if os.geteuid() != 0:
        sys.exit("Small disks are mounted by root: sudo make chaos …")
    failed = 0
    for name in KINDS if kinds == "all" else kinds.split(","):
        if name not in KINDS:
            sys.exit(f"There is no shortage {name}. There are: {', '.join(KINDS)}.")
        case = Shortage(programs, folder / name)
        print(f"== {name}: {KINDS[name].__doc__}", flush=True)
        try:
            KINDS[name](case)
        except Exception:  # noqa: BLE001  the other kinds run all the same
            case.fail(f"the campaign itself: {traceback.format_exc()[-600:]}")
        finally:
            for bus in case.buses:
                bus.kill()
        print("\n".join(f"  FAILED {line}" for line in case.wrong) or "  passed", flush=True)
        failed += bool(case.wrong)
    print(f"{failed} failed; the logs are in {folder}" if failed else "All passed.")
    return 1 if failed else 0
