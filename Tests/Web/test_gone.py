# SPDX-License-Identifier: Apache-2.0
"""Roles, and what becomes of the page when what it talks to goes."""

from __future__ import annotations

import json
import signal

import rig
from test_camera import READING, sent


class Roles(rig.WebTestCase):
    def test_who_may_only_watch_changes_nothing(self) -> None:
        address = self.rig.start_gateway("view")
        self.addCleanup(self.rig.gateways["view"].end)
        self.open_camera(address=address)
        self.page.wait("document.querySelector('.status').textContent === 'View only'")
        self.page.wait("document.querySelector('[data-control=brightness] input')")
        self.page.wait(
            "[...document.querySelectorAll('.panel input, .panel select, .zoom input')].every((each) => each.disabled)"
        )
        for button in (".shutter.record", ".shutter.photo", "[aria-label=Lamp]", "[title^='Your role']"):
            self.page.wait(f"document.querySelector({json.dumps(button)}).getAttribute('aria-disabled') === 'true'")
        before = self.client.device("cam0")
        box = self.page.box(".picture")
        self.page.press(box["x"] + 200, box["y"] + 200, times=2)
        for key in (" ", "x", "0", "r", "p", "+"):
            self.page.key(key)
        self.page.click(".shutter.record")
        asked = set(sent(self.page))
        self.assertEqual(asked - READING, {"web.subscribe", "bus.snapshot"}, "what is off asks for nothing")
        # Nor would asking help.
        reasons = self.page.evaluate("""new Promise((resolve) => {
                const socket = new WebSocket(new URL("/bus", location.href.replace("http", "ws")))
                const orders = [["device.focus", {device: "cam0", point: {x: 0.1, y: 0.1}}],
                    ["device.lock", {devices: ["cam0"]}],
                    ["movie.start", {device: "cam0"}], ["photo.capture", {device: "cam0"}]]
                const reasons = []
                socket.onmessage = ({ data }) => {
                    const message = JSON.parse(data)
                    if (message.method === "web.hello") {
                        orders.forEach(([method, params], id) =>
                            socket.send(JSON.stringify({jsonrpc: "2.0", id, method, params})))
                    } else if (message.id !== undefined) reasons.push(message.error?.data.reason ?? "done")
                    if (reasons.length === orders.length) { socket.close(); resolve(reasons) }
                }
            })""")
        self.assertEqual(reasons, ["unauthorized"] * 4)
        self.assertEqual(self.client.device("cam0").generation, before.generation)


    def test_a_limit_of_the_bus_is_in_force_at_once(self) -> None:
        self.addCleanup(self.rig.configure_bus, "")
        self.open_camera()
        picture = "document.querySelector('.picture')"
        for limit, status, why in (
            ("none", "No access", "The bus gives pages no access now"),
            ("view", "View only", "The bus limits pages to the role “view” now"),
        ):
            self.rig.configure_bus(f'[permission]\nremote_role = "{limit}"\n')
            self.page.wait(f"document.querySelector('.status').textContent === '{status}'")
            self.page.wait(f"document.querySelector('.shutter.record').title.startsWith('{why}')")
            if limit == "none":
                self.page.wait("document.querySelector('.veil').textContent.includes('limits clients on other')")
                self.page.evaluate(f"{picture}.dataset.sequence = 'before'")
            else:
                self.page.wait(f"{picture}.dataset.sequence !== 'before'")
        self.rig.configure_bus("[permission]\nview_sound = false\n")
        self.page.wait("document.querySelector('.status').textContent === 'Live'")


class Restarts(rig.WebTestCase):
    def test_the_page_outlives_the_bus(self) -> None:
        self.page.open(self.rig.address)
        canvas = "document.querySelector('[data-camera=cam1] canvas')"
        self.page.wait(f"{canvas}.dataset.sequence")
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how):
                self.rig.bus.end(how)
                if how == signal.SIGTERM:
                    self.page.wait(
                        "document.querySelector('.status').textContent === 'No bus' && "
                        "!document.querySelector('#banner').hidden"
                    )
                    self.who_comes_now_is_told()
                self.page.evaluate(f"{canvas}.dataset.sequence = 'before'")
                self.rig.start_bus()
                self.page.wait("document.querySelector('.status').textContent === 'Live'")
                self.page.wait(f"{canvas}.dataset.sequence !== 'before'")
                self.page.wait(
                    f"document.querySelectorAll('.tile').length === {rig.CAMERAS} && "
                    "document.querySelector('#banner').hidden"
                )

    def who_comes_now_is_told(self) -> None:
        assert self.rig.browser is not None
        late = self.rig.browser.page()
        for where, place in (
            ("#/", ".empty"), ("#/camera/cam0", ".veil"), ("#/microphone/mic0", ".loud .warning"),
            ("#/library", ".empty"),
        ):
            late.open(self.rig.address + where)
            late.wait(
                "document.querySelector('.status').textContent === 'No bus' && "
                f"document.querySelector('{place}').textContent.startsWith('The bus does not run')"
            )
        late.open(f"{self.rig.address}#/camera/cam0")
        late.wait("document.querySelector('.veil')")
        # Nothing is said of a camera that nobody knows anything of.
        self.assertEqual(
            late.evaluate(
                "[...document.querySelectorAll('.panel > *, .hint')].filter((each) => each.checkVisibility() && "
                "each.innerText).map((each) => each.innerText)"
            ),
            [],
        )
        self.assertEqual(late.complaints(), [])
        late.close()
        self.page.call("Page.bringToFront")

    def test_the_page_outlives_the_gateway(self) -> None:
        self.open_camera()
        self.page.evaluate("document.querySelector('.lock-row .plain:not([hidden])').click()")
        self.page.wait("document.querySelector('.lock-line').textContent === 'Locked by you.'")
        self.rig.gateways["control"].end(signal.SIGKILL)
        self.page.wait("document.querySelector('.status').textContent.startsWith('Connecting')")
        self.page.wait("document.querySelector('.shutter.record').title.startsWith('Not connected')")
        self.page.evaluate("document.querySelector('.picture').dataset.sequence = 'before'")
        self.rig.restart_gateway("control")
        self.page.wait("document.querySelector('.status').textContent === 'Live'")
        self.page.wait("document.querySelector('.picture').dataset.sequence !== 'before'")
        # That nobody was there is in the console; what else is wrong is not to be.
        self.assertEqual([each for each in self.page.complaints() if "ERR_CONNECTION_REFUSED" not in each], [])
        self.page.forget()
        self.page.key("Escape")
        self.state("state/device/cam0/", lambda device: device["lock"] is None)

    def test_a_link_that_is_cut_without_a_word_is_noticed(self) -> None:
        # The page's clock is fast, so that nobody waits for it.
        self.page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="""{ const wait = setTimeout, now = performance.now.bind(performance)
                window.setTimeout = (act, time, ...more) => wait(act, time / 4, ...more)
                performance.now = () => 4 * now() }""",
        )
        deadline = 4 * rig.DEADLINE
        self.page.open(self.rig.address)
        canvas = "document.querySelector('[data-camera=cam1] canvas')"
        self.page.wait(f"{canvas}.dataset.sequence", deadline)
        gateway = self.rig.gateways["control"].process
        self.addCleanup(gateway.send_signal, signal.SIGCONT)
        gateway.send_signal(signal.SIGSTOP)
        self.page.wait("document.querySelector('.status').textContent.startsWith('Connecting')", deadline)
        self.page.evaluate(f"{canvas}.dataset.sequence = 'before'")
        gateway.send_signal(signal.SIGCONT)
        self.page.wait("document.querySelector('.status').textContent === 'Live'", deadline)
        self.page.wait(f"{canvas}.dataset.sequence !== 'before'", deadline)

    def test_a_page_of_which_a_part_did_not_come_begins_anew(self) -> None:
        self.page.call("Network.setBlockedURLs", urls=["*/page/grid.js"])
        self.page.open(self.rig.address)
        self.page.wait("document.readyState === 'complete'")
        self.assertFalse(self.page.evaluate("Boolean(document.querySelector('.grid'))"))
        self.page.call("Network.setBlockedURLs", urls=[])
        self.page.wait("document.querySelector('.tile')")
        self.page.forget()
