# SPDX-License-Identifier: Apache-2.0
"""What becomes of requests that nobody answers, in the page's module as the browser has it."""

from __future__ import annotations

import rig


class Requests(rig.WebTestCase):
    def test_what_is_not_answered_is_given_up_unless_it_may_take_long(self) -> None:
        self.page.open(self.rig.address)
        self.page.wait("document.readyState === 'complete'")
        outcomes = self.page.evaluate("""import("/page/connection.js").then(async ({ Connection }) => {
                // A gateway that answers when it is told to, and a clock that is fast, so that nobody waits for it.
                const before = [window.WebSocket, window.setTimeout]
                const sent = []
                let socket = null
                window.WebSocket = class extends EventTarget {
                    constructor() { super(); socket = this }
                    send(text) { sent.push(JSON.parse(text)) }
                    close() {}
                    say(message) { this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) })) }
                }
                window.setTimeout = (act, time, ...more) => before[1].call(window, act, time / 1000, ...more)
                const connection = new Connection("ws://nowhere/")
                connection.open()
                socket.say({ method: "web.hello", params: { name: "web", role: "control", limits: {} } })
                socket.say({ method: "web.bus", params: { here: false } })
                const outcome = (promise) => promise.then(({ a }) => a ?? "answered", ({ reason }) => reason)
                const slow = [["movie.stop", {}], ["photo.capture", {}], ["take.finish", {}], ["library.list", {}],
                    ["device.lock", { wait: 90000 }]]
                    .map(([method, params]) => outcome(connection.request(method, params)))
                const quick = outcome(connection.request("bus.ping"))
                const lost = outcome(connection.request("device.set"))
                socket.say({ jsonrpc: "2.0",
                    id: sent.find(({ method }) => method === "bus.ping").id, result: { a: "at once" } })
                const outcomes = [await quick, await lost]
                for (const { id } of sent) socket.say({ jsonrpc: "2.0", id, result: {} })
                outcomes.push(...(await Promise.all(slow)))
                ;[window.WebSocket, window.setTimeout] = before
                return outcomes
            })""")
        self.assertEqual(outcomes, ["at once", "noAnswer"] + 5 * ["answered"])
