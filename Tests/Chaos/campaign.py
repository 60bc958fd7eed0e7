"""A busy bus of which anything is killed or stopped at any moment, as a plan says."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator

import final_look
from camerabus import BusTimeout, CaptureError, Client
from history import Writer
from plan import Act
from ports import free_port
from tested_bus import DEADLINE, BusUnderTest, started
from waiting import eventually
from workload import CAMERAS, CLIENTS, FORMAT, WATCHERS

#: Seconds that a process which is rare is waited for.
PATIENCE = 4.0
#: Seconds after the last act until all has to be well again; a worker that was killed often is started again later.
RECOVERY, RESTART = 10.0, 35.0


class Campaign:
    def __init__(self, programs: Path, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        cameras = ("--virtual", str(len(CAMERAS)), "--virtual-microphones", "2")
        self.bus = BusUnderTest(programs, folder, *cameras, settings="[library]\nmin_free = 0\n")
        self.gateway_settings = folder / "gateway.toml"
        self.port = free_port()
        self.gateway_settings.write_text(f'[web]\nlisten = "127.0.0.1:{self.port}"\n')
        self.history = Writer(folder, "campaign")
        self.clients: dict[str, subprocess.Popen[bytes]] = {}
        self.numbers: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.pauses: list[threading.Timer] = []

    def run(self, acts: Iterator[Act], kills: int) -> None:
        """Until so many processes were hit; the rest is in the history."""
        try:
            self._begin()
            with Stalls(self.history):
                while self.hits.total() < kills:
                    act = next(acts)
                    self._do(act)
                    time.sleep(act.pause)
                    self._replace_what_ended()
                for pause in self.pauses:
                    pause.join()
                self._end()
        finally:
            for pause in self.pauses:
                pause.cancel()
            for process in self.clients.values():
                process.kill()
                process.wait()
            self.bus.kill()

    def _begin(self) -> None:
        self.bus.start_ready()
        self.history.write(act="start", what="coordinator")
        with self.bus.client("campaign") as client:
            with client.lock(*CAMERAS, wait=DEADLINE):
                client.configure([{"device": camera, **FORMAT} for camera in CAMERAS])
            client.call("rig.set", {"name": "pair", "devices": ["cam0", "cam1"]})
        self.bus.start_gateway(self.gateway_settings)
        for role in (*WATCHERS, *CLIENTS):
            self._start_client(role)
        self._wait_for_clients()

    def _wait_for_clients(self) -> None:
        """Until the slowest one has begun, and the watchers have frames."""
        until = time.monotonic() + DEADLINE
        for role, process in self.clients.items():
            if not select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                raise AssertionError(f"{role} does not begin")
        topics = [f"state/device/{camera}/" for camera in CAMERAS]
        with self.bus.client("campaign") as client, client.mirror("state/device/") as devices:
            devices.wait(lambda state: all(state[topic]["isStreaming"] for topic in topics), DEADLINE)

    def _end(self) -> None:
        # For so long nothing is hit: clients get their answers, and what watchers lose now has no excuse.
        time.sleep(RECOVERY)
        try:
            with self.bus.client("campaign") as client:
                self._look_at_all(client)
        except CaptureError as error:
            self.history.write(final="bus.hello", value={"error": error.reason, "message": str(error)})
        self.history.write(act="stopping", what="coordinator")
        for role in WATCHERS:
            self.clients[role].terminate()
            self.clients[role].wait()
        for line in self.bus.stop():
            self.history.write(left=line)
        for line in self.bus.left():
            self.history.write(left=line)
        for line in self.bus.crashes():
            self.history.write(log=line)
        for fact in final_look.files(self.bus.state / "library"):
            self.history.write(**fact)

    def _look_at_all(self, client: Client) -> None:
        with client.mirror("state/device/") as devices, suppress(BusTimeout):
            devices.wait(lambda state: all(each["worker"]["state"] == "running" for each in state.values()), RESTART)
        self._look(client, "device.list")
        for role in CLIENTS:
            self.clients[role].kill()
        for role in CLIENTS:
            self.clients[role].wait()
        # Five seconds without a connection end what a client has; movies need time to be closed. That all has an end by
        # then is the rule, and no event says that nothing comes any more, such as a photo that was asked for.
        time.sleep(RECOVERY)
        for what in ("device.locks", "movie.list", "session.list", "profile.list"):
            self._look(client, what)
        for kind in ("photo", "movie", "take"):
            self._look(client, "library.list", {"kind": kind, "limit": 1000})

    def _look(self, client: Client, method: str, params: dict[str, Any] | None = None) -> None:
        try:
            value = client.call(method, params)
        except CaptureError as error:
            value = {"error": error.reason, "message": str(error)}
        self.history.write(final=method, value=value)

    def _start_client(self, role: str) -> None:
        command = [
            sys.executable, str(Path(__file__).with_name("workload.py")), role, str(self.folder), str(self.seed),
            str(self.numbers[role]), str(self.port),
        ]  # fmt: skip
        self.numbers[role] += 1
        with open(self.folder / "clients.log", "ab") as log:
            self.clients[role] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )

    def _replace_what_ended(self) -> None:
        """Whatever ended by itself is in the history, and is started again."""
        assert self.bus.process is not None and self.bus.gateway is not None
        if (status := self.bus.process.poll()) is not None:
            self.history.write(act="exited", what="coordinator", status=status)
            self._start_bus()
        if (status := self.bus.gateway.poll()) is not None:
            self.history.write(act="exited", what="gateway", status=status)
            self.bus.start_gateway(self.gateway_settings)
        for role, process in self.clients.items():
            if (status := process.poll()) is not None:
                self.history.write(act="exited", what=self._client_name(role), status=status)
                self._start_client(role)

    def _client_name(self, role: str) -> str:
        return f"{role}.{self.numbers[role] - 1}"

    def _start_bus(self) -> None:
        self.bus.start()
        self.history.write(act="start", what="coordinator")

    # What acts do

    def _do(self, act: Act) -> None:
        if act.what == "several":
            for other in act.others:
                self._do(other)
        elif act.what == "client":
            role = list(CLIENTS)[int(act.choice * len(CLIENTS))]
            self._hit(act, self.clients[role].pid, self._client_name(role))
            if not act.stop:
                self.clients[role].wait()
                self._start_client(role)
        elif act.what == "everything":
            for pid, what in self.bus.processes().items():
                self._send(pid, signal.SIGKILL, what)
            self._started_again(act)
        elif act.what == "restart":
            self._restart(act)
        elif pids := self._victims(act.what):
            self._hit(act, pids[int(act.choice * len(pids))], act.what)
            if not act.stop:
                self._started_again(act)

    def _victims(self, what: str) -> list[int]:
        if what == "coordinator":
            assert self.bus.process is not None
            return [self.bus.process.pid]
        if what == "librarian":
            return eventually(self.bus.librarians, PATIENCE, 0.003)
        return eventually(
            lambda: [pid for pid, kind in self.bus.processes().items() if kind == what],
            PATIENCE if what == "recorder" else 0, 0.1,
        )  # fmt: skip

    def _hit(self, act: Act, pid: int, what: str) -> None:
        if not act.stop:
            self._send(pid, signal.SIGKILL, what)
        elif (start := started(pid)) is not None and self._send(pid, signal.SIGSTOP, what):
            pause = threading.Timer(act.stop, self._go_on, (pid, start, what))
            pause.start()
            self.pauses.append(pause)

    def _go_on(self, pid: int, start: int, what: str) -> None:
        if started(pid) == start:
            self._send(pid, signal.SIGCONT, what)

    def _send(self, pid: int, number: signal.Signals, what: str) -> bool:
        # In the history first: what it causes comes later.
        self.history.write(act=number.name, what=what, pid=pid)
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            if number != signal.SIGCONT:
                self.hits[f"{number.name} {what.partition('.')[0]}"] += 1
            return True
        return False

    def _started_again(self, act: Act) -> None:
        """What nobody else starts again, after the act's delay."""
        assert self.bus.process is not None and self.bus.gateway is not None
        if act.what in ("coordinator", "everything"):
            self.bus.process.kill()
            self.bus.process.wait()
            time.sleep(act.delay)
            self._start_bus()
            if act.again is not None:
                time.sleep(act.again)
                self._send(self.bus.process.pid, signal.SIGKILL, "coordinator")
                self.bus.process.wait()
                self._start_bus()
        if act.what in ("gateway", "everything"):
            self.bus.gateway.kill()
            self.bus.gateway.wait()
            self.bus.start_gateway(self.gateway_settings)

    def _restart(self, act: Act) -> None:
        assert self.bus.process is not None
        self.history.write(act="stopping", what="coordinator")
        # A stopped process ends when it continues.
        self.bus.process.send_signal(signal.SIGTERM)
        self.bus.process.send_signal(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            self.bus.process.wait(DEADLINE)
        self.history.write(act="stopped", what="coordinator", status=self.bus.process.poll())
        self.bus.process.kill()
        self.bus.process.wait()
        self.hits["SIGTERM coordinator"] += 1
        time.sleep(act.delay)
        self._start_bus()


class Stalls:
    """Records when the machine gave us no processor."""

    def __init__(self, history: Writer) -> None:
        self._history = history
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._over.wait(0.01):
            now = time.monotonic()
            if now - last > 0.15:
                self._history.write(stall=[last, now])
            last = now

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
