// SPDX-License-Identifier: Apache-2.0
import { element, turnOff } from "./elements.js"
import { whyNothing } from "./rights.js"
import { interruption } from "./words.js"

/** AVCaptureSession.Preset, by the names that the bus has. */
const PRESETS = [
  "photo", "high", "medium", "low", "352x288", "640x480", "1280x720", "1920x1080", "3840x2160", "iFrame960x540", "iFrame1280x720", "inputPriority",
]
const NAME = "web page"

/**
 * A session with one camera, at a preset: the bus sets the camera as that needs, and again after whatever comes between, until another
 * preset, or none, is chosen. It stays when the page is closed, and is found again by the next one of the same user.
 */
export function makePresets(app, id) {
  const select = element("select", { "aria-label": "Preset", on: { change: () => choose(select.value) } },
    element("option", { value: "" }, "none"), ...PRESETS.map((preset) => element("option", { value: preset }, preset)))
  const line = element("p", { class: "told", role: "status", hidden: true })
  const place = element("div", { class: "presets" },
    element("label", { class: "control", title: "A session keeps the camera configured for the preset until you choose another one or none" },
      element("span", { class: "label" }, "Session preset"), select), line)
  let isBusy = false

  const session = () => app.state.under("state/session/").find(({ name, detached, owner, inputs }) =>
    name === NAME && detached && owner.name === app.connection.hello?.name && inputs.some(({ device }) => device === id))

  const choose = async (preset) => {
    const ask = (method, params) => app.connection.request(method, params)
    // A camera that this page has locked is set by its session all the same.
    const token = app.locks.token(id)
    const lock = token ? { lock: token } : {}
    const now = session()
    let made = null
    isBusy = true
    refresh()
    try {
      if (now && preset) {
        await ask("session.configure", { session: now.id, actions: [{ preset }], ...lock })
        // One whose page was gone before it could start it.
        if (!now.wanted) await ask("session.start", { session: now.id, ...lock })
      }
      else if (now) await ask("session.delete", { session: now.id })
      else if (preset) {
        made = (await ask("session.create", { name: NAME, preset, detached: true, inputs: [id], outputs: ["preview"] })).session
        await ask("session.start", { session: made, ...lock })
      }
    } catch (error) {
      app.notices.fail(error)
      // What the camera can't have at all is not offered any more.
      const { supported } = error.data ?? {}
      if (error.reason === "presetUnsupported") for (const option of select.options) option.disabled = Boolean(option.value) && !supported.includes(option.value)
      if (made) await ask("session.delete", { session: made }).catch(() => {})
    }
    isBusy = false
    refresh()
  }

  const refresh = () => {
    const now = session()
    if (!isBusy) select.value = now?.preset ?? ""
    turnOff(select, whyNothing(app) ?? (isBusy ? "The preset is being applied." : null))
    const text = !now ? "" : now.interruption ? `Interrupted, as ${interruption(now.interruption)}.` : now.error?.message ?? now.explanation.join(" ")
    line.hidden = text === ""
    if (line.textContent !== text) line.textContent = text
  }
  return { element: place, refresh }
}
