# SPDX-License-Identifier: Apache-2.0
"""Microphones on the page: how loud they are, and how they are set."""

from __future__ import annotations

import rig


class Microphones(rig.WebTestCase):
    def device(self, condition) -> None:
        self.state("state/device/mic0/", condition)

    def set(self, control: str, change: str) -> None:
        self.page.wait(f"document.querySelector('[data-control={control}] input')")
        self.page.evaluate(
            f"""(() => {{ const it = document.querySelector("[data-control={control}] input"); {change};
                it.dispatchEvent(new Event("input"));
            it.dispatchEvent(new Event("change")) }})()"""
        )

    def test_a_microphone_is_found_heard_and_set(self) -> None:
        self.page.open(self.rig.address)
        self.page.wait("document.querySelector('.ear')")
        self.page.click(".ear")
        self.page.wait("document.querySelector('.microphone h1').textContent === 'Virtual Microphone 0'")
        self.page.wait("document.querySelector('.loud .what').textContent.includes('48 kHz · stereo')")
        loud = "Math.max(...[...document.querySelectorAll('.level i')].map((bar) => parseFloat(bar.style.width)))"
        self.page.wait(f"{loud} > 5")
        # Decibels, as people have them.
        self.assertEqual(
            self.page.evaluate(
                "[...document.querySelectorAll('[data-control=gain] input')].map(({min, max}) => [Number(min), "
                "Number(max)])"
            ),
            [[-40, 20]] * 2,
        )
        self.set("gain", "it.value = '-7.5'")
        self.device(lambda device: device["controls"]["gain"] == -750 and device["lock"] is not None)
        self.page.wait("document.querySelector('.lock-line').textContent === 'Locked by you.'")
        self.set("mute", "it.checked = true")
        self.device(lambda device: device["controls"]["mute"] in (True, 1))
        self.page.wait(f"{loud} === 0")
        self.set("mute", "it.checked = false")
        self.page.wait(f"{loud} > 5")
        self.set("gain", "it.value = '0'")
        self.device(lambda device: device["controls"]["gain"] == 0)
        self.page.key("Escape")
        self.page.wait("document.querySelector('.grid')")
        self.device(lambda device: device["lock"] is None)

    def test_the_one_that_is_chosen_for_a_movie_is_set_from_there(self) -> None:
        self.open_camera()
        self.page.wait(
            "document.querySelector('.sound .tool').hidden && document.querySelectorAll('.sound option').length === 2"
        )
        self.page.evaluate(
            """(() => {
                const it = document.querySelector(".sound select"); it.value = "mic0";
                it.dispatchEvent(new Event("change"))
            })()"""
        )
        self.page.click(".sound .tool")
        self.page.wait("document.querySelector('.microphone [data-control=gain]')")
        self.page.evaluate("localStorage.clear()")
