# SPDX-License-Identifier: Apache-2.0
"""Presets of sessions, as the page has them."""

from __future__ import annotations

import rig

SELECT = "document.querySelector('.presets select')"


class Presets(rig.WebTestCase):
    def choose(self, preset: str) -> None:
        self.page.wait(f"!{SELECT}.disabled")
        self.page.evaluate(
            f"(() => {{ const it = {SELECT}; it.value = '{preset}'; it.dispatchEvent(new Event('change')) }})()"
        )

    def sessions(self, *wanted: tuple[str, str, list[str]]) -> None:
        """Waits until these are the bus's: the preset, the state and the cameras of each."""
        with self.client.mirror("state/session/") as mirror:
            mirror.wait(lambda state: [
                (session["preset"], session["state"], [each["device"] for each in session["inputs"]])
                for session in state.values()
            ] == list(wanted), rig.DEADLINE)  # fmt: skip

    def test_a_camera_is_kept_at_a_preset_until_none_is_chosen(self) -> None:
        self.open_camera("cam1")
        names = self.page.evaluate(f"[...{SELECT}.options].map((option) => option.textContent)")
        self.assertEqual((names[0], len(names)), ("none", 13))
        self.choose("photo")
        self.page.wait("document.querySelector('.presets .told').textContent.startsWith('cam1 streams')")
        self.sessions(("photo", "running", ["cam1"]))
        self.choose("352x288")
        self.page.wait("document.querySelector('.presets .told').textContent.includes('352x288')")
        # Another page of the same user has it, and ends it.
        self.page.call("Page.reload")
        self.page.wait(f"{SELECT}.value === '352x288'")
        # What the camera hasn't is refused in the bus's words, and offered no more.
        self.choose("3840x2160")
        self.page.wait("document.querySelector('.notice.failure').textContent.includes('3840x2160')")
        self.page.wait(
            f"{SELECT}.value === '352x288' && [...{SELECT}.options].filter((option) => option.disabled).map((option) "
            "=> option.value).join() === '3840x2160'"
        )
        self.choose("")
        self.page.wait("document.querySelector('.presets .told').hidden")
        self.sessions()
