// SPDX-License-Identifier: Apache-2.0
import { element, icon, turnOff } from "./elements.js"
import { Changes } from "./changes.js"
import { whyNot } from "./rights.js"
import { number } from "./words.js"

/** Doublings a second: of the slider, which the hand leads, and of a button that is held. */
const FOLLOWING = 4
const HELD = 1

/** The zoom's slider and buttons, and the lamp: what is used while looking at the picture. */
export function makeZoom(app, id) {
  const slider = element("input", { type: "range", min: 0, max: 1, step: 0.001, "aria-label": "Zoom" })
  const factor = element("output", { class: "factor" })
  const out = element("button", { type: "button", class: "round", title: "Zoom out", "aria-label": "Zoom out" }, "−")
  const into = element("button", { type: "button", class: "round", title: "Zoom in", "aria-label": "Zoom in" }, "+")
  const zoom = element("div", { class: "zoom", role: "group", "aria-label": "Zoom" }, out, slider, into, factor)
  const lamp = element("button", { type: "button", class: "tool", title: "Lamp", "aria-label": "Lamp", "aria-pressed": "false" }, icon("lamp"))
  const changes = new Changes(app, id, () => refresh())
  let target = null
  let isRunning = false
  let isDrawn = false

  // The newest place of the hand counts; a ramp that is on its way is replaced by the next.
  const follow = async (method, params) => {
    target = { method, params }
    if (isRunning) return
    isRunning = true
    while (target) {
      const { method, params } = target
      target = null
      try {
        await app.locks.under(id, (lock) => app.connection.request(method, { device: id, ...params, lock }))
      } catch (error) {
        app.notices.fail(error)
      }
    }
    isRunning = false
    refresh()
  }

  const hold = (press, value) => {
    let isHeld = false
    const begin = () => {
      isHeld = press.ariaDisabled !== "true"
      if (isHeld) follow("device.zoomRamp", { value, rate: HELD })
    }
    // What was begun is ended, also where the button is off by now.
    const end = () => {
      if (isHeld) follow("device.cancelZoomRamp", {})
      isHeld = false
    }
    press.addEventListener("pointerdown", (event) => {
      press.setPointerCapture(event.pointerId)
      begin()
    })
    press.addEventListener("pointerup", end)
    press.addEventListener("pointercancel", end)
    // A key that is pressed has no end that can be trusted: each press is a step.
    press.addEventListener("click", (event) => event.detail === 0 && step(value === 1 ? 1 : -1))
  }
  hold(out, 0)
  hold(into, 1)

  const step = (by) => {
    const { supports = {}, controls = {} } = app.state.device(id) ?? {}
    if (supports.zoomValue !== true || whyNot(app, id)) return
    const value = Math.min(1, Math.max(0, (Number(slider.value) || controls.zoomValue || 0) + 0.08 * by))
    slider.value = value
    follow("device.zoomRamp", { value, rate: FOLLOWING })
  }
  slider.addEventListener("input", () => {
    isDrawn = true
    follow("device.zoomRamp", { value: Number(slider.value), rate: FOLLOWING })
  })
  slider.addEventListener("change", () => (isDrawn = false))
  lamp.addEventListener("click", () => {
    const { torchMode } = app.state.device(id)?.controls ?? {}
    if (lamp.ariaDisabled !== "true") changes.set("torchMode", torchMode === "on" ? "off" : "on")
  })

  const refresh = () => {
    const { supports = {}, controls = {} } = app.state.device(id) ?? {}
    const why = whyNot(app, id)
    zoom.hidden = supports.zoomValue !== true
    lamp.hidden = !(Array.isArray(supports.torchMode) && supports.torchMode.includes("on"))
    for (const part of [slider, out, into, lamp]) turnOff(part, why)
    if (!isDrawn && !isRunning) slider.value = controls.zoomValue ?? 0
    factor.textContent = `${number(Math.round((controls.videoZoomFactor ?? 1) * 10) / 10)}×`
    slider.setAttribute("aria-valuetext", `${factor.textContent.slice(0, -1)} times`)
    lamp.setAttribute("aria-pressed", String(controls.torchMode === "on"))
  }
  return { element: zoom, lamp, refresh, step }
}
