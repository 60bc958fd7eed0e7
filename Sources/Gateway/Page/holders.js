// SPDX-License-Identifier: Apache-2.0
import { button, element, icon, turnOff } from "./elements.js"
import { whyNothing } from "./rights.js"
import { interruption, warning, watcher, who } from "./words.js"

/** Who holds the lock of a camera, what interrupts whom, and who looks on. */
export function makeHolders(app, id) {
  const lock = element("p", { class: "lock-line" })
  const give = button("Unlock", { class: "plain small" }, () => app.locks.giveBack(id))
  const take = button("Lock", { class: "plain small" }, async () => {
    if (take.ariaDisabled !== "true") await app.locks.keep(id).catch((error) => app.notices.fail(error))
  })
  const warn = element("p", { class: "warning", hidden: true })
  const sessions = element("ul", { class: "plain-list" })
  const watchers = element("ul", { class: "plain-list" })
  const details = element("details", { class: "group", "data-group": "Who" }, element("summary", {}, "Users"), sessions, watchers)
  const place = element("div", { class: "holders" }, element("div", { class: "lock-row" }, icon("lock"), lock, give, take), warn, details)

  const look = async () => {
    if (!details.open || !app.connection.busIsHere) return
    try {
      const { subscribers, waiters, foreign, complete } = await app.connection.request("device.who", { device: id })
      const line = (text) => element("li", {}, text)
      watchers.replaceChildren(
        ...waiters.map(({ holder, note }) => line(`${who(holder)} is waiting for the lock${note ? `: ${note}` : ""}`)),
        ...subscribers.map((one) => line(`${watcher(one)} watches ${one.renditions.join(", ")}`)),
        ...foreign.map((one) => line(`${who(one)}, outside the bus, has opened it`)),
        complete || foreign.length > 0 ? "" : line("Programs of other users may be hidden from the bus."))
    } catch (error) {
      watchers.replaceChildren(element("li", {}, error.message))
    }
  }
  details.addEventListener("toggle", look)

  let before = ""
  const refresh = () => {
    const device = app.state.device(id)
    place.hidden = !device
    const held = device?.lock
    const isOurs = Boolean(held) && app.locks.isOurs(held)
    const whole = held && app.state.get(`state/lock/${held.id}/`)
    lock.textContent = !held ? "Not locked." : isOurs ? "Locked by you."
      : `Locked by ${who(held.holder)}${whole?.note ? `, for: ${whole.note}` : ""}${whole?.lease ? ", until its lease ends" : ""}.`
    place.dataset.lock = !held ? "free" : isOurs ? "ours" : "other"
    give.hidden = !isOurs
    take.hidden = Boolean(held)
    turnOff(take, whyNothing(app))
    const text = warning(device)
    warn.hidden = text === null
    warn.textContent = text ?? ""
    const here = app.state.under("state/session/").filter(({ inputs = [] }) => inputs.some(({ device }) => device === id))
    sessions.replaceChildren(...here.map((session) => element("li", {}, `Session ${session.name ?? session.id} of ${who(session.owner)}: `,
      session.interruption ? `interrupted, as ${interruption(session.interruption)}` : session.state, session.preset ? `, preset ${session.preset}` : "")))
    const key = `${held?.fence} ${here.length} ${device?.isStreaming}`
    if (key !== before) {
      before = key
      look()
    }
  }
  return { element: place, refresh }
}
