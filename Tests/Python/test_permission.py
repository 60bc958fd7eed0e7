"""Permission, as both clients ask for it and give it."""

from __future__ import annotations

import asyncio
import pwd
import unittest
from typing import Any

from camerabus import AsyncClient, Client, Unauthorized
from camerabus.permission import user_id
from fake_bus import BusTestCase


class Permission(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.bus.features = [*self.bus.features, "permission"]
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.statuses = {"video": "authorized", "audio": "notDetermined"}
        answers: dict[str, Any] = {
            "status": lambda params: {"uid": 5, "role": "ask", "authorization": self.statuses, "asked": []},
            "request": lambda params: {"media": params["media"], "status": "denied"},
            "list": lambda params: {"requests": [], "decisions": []},
        }
        for name in ("status", "request", "list", "grant", "deny", "reset"):
            self.bus.methods[f"authorization.{name}"] = self.recorder(
                name, answers.get(name, lambda params: {"uid": 5, "media": []})
            )
        self.client = Client(self.bus.directory, name="test", timeout=5)
        self.addCleanup(self.client.close)

    def recorder(self, name: str, answer: Any) -> Any:
        def serve(params: dict[str, Any]) -> Any:
            self.asked.append((name, params))
            return answer(params)

        return serve

    def test_asking_and_deciding(self) -> None:
        self.assertEqual(self.client.authorization(), self.statuses)
        self.assertEqual(self.client.request_authorization("audio", reason="why", wait=2), "denied")
        self.assertEqual(self.client.authorizations(), {"requests": [], "decisions": []})
        root = pwd.getpwuid(0).pw_name
        self.client.allow(root)
        self.client.allow(5, "video", "audio", once=True)
        self.client.deny("7", "audio")
        self.client.reset_authorization(5)
        self.assertEqual(
            self.asked,
            [
                ("status", {}),
                ("request", {"media": "audio", "reason": "why", "wait": 2000}),
                ("list", {}),
                ("grant", {"uid": 0, "media": ["video"]}),
                ("grant", {"uid": 5, "media": ["video", "audio"], "once": True}),
                ("deny", {"uid": 7, "media": ["audio"]}),
                ("reset", {"uid": 5}),
            ],
        )

    def test_the_same_with_asyncio(self) -> None:
        async def ask() -> None:
            async with AsyncClient(self.bus.directory, name="test", timeout=5) as client:
                self.assertEqual(await client.authorization(), self.statuses)
                self.assertEqual(await client.request_authorization(reason="why"), "denied")
                await client.allow(5, once=True)
                await client.deny(5)
                await client.reset_authorization(5, "video")
                self.assertEqual(await client.authorizations(), {"requests": [], "decisions": []})

        asyncio.run(ask())
        self.assertEqual([name for name, _ in self.asked], ["status", "request", "grant", "deny", "reset", "list"])
        self.assertEqual(self.asked[4], ("reset", {"uid": 5, "media": ["video"]}))

    def test_a_user_that_there_is_not_is_told_before_the_bus_is_asked(self) -> None:
        with self.assertRaises(ValueError):
            user_id("nobody of that name")
        self.assertEqual(self.asked, [])

    def test_who_waits_in_vain_is_told_why(self) -> None:
        self.statuses["video"] = "notDetermined"
        self.bus.authorization["video"] = "notDetermined"
        self.bus.do(lambda: self.bus._publishers["cam0"].close(linger=0))
        with self.assertRaises(Unauthorized) as caught:
            self.client.frames("cam0", timeout=0.1)
        self.assertEqual(caught.exception.status, "notDetermined")
        self.assertIn("camerabus allow", str(caught.exception))
        self.bus.do(lambda: self.bus._publishers.__setitem__("cam0", self.bus._publisher("media/cam0.sock")))

    def test_a_permission_that_was_taken_back_ends_frames_with_the_reason(self) -> None:
        with self.client.frames("cam0", timeout=2) as frames:
            self.statuses["video"] = "denied"
            with self.assertRaises(Unauthorized) as caught:
                next(frames)
        self.assertEqual(caught.exception.status, "denied")


if __name__ == "__main__":
    unittest.main()
