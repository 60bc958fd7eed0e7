// SPDX-License-Identifier: Apache-2.0
import { button, element, turnOff } from "./elements.js"
import { recognize } from "./gestures.js"
import { PreviewLayout } from "./points.js"
import { whyNot } from "./rights.js"
import { ignorance, refusal, title, trouble, who } from "./words.js"

const SHRINKING = 150
const STAYING = 500
const RATE = 30

/**
 * One camera's picture, and what is done on it: a tap focuses, two expose and then lock, two fingers twice reset both. `turn` has
 * {rotation, mirrored, gravity}, as it is to be seen.
 */
export function makeStage(app, id, turn) {
  const canvas = element("canvas", { class: "picture", width: 16, height: 9, tabIndex: 0, role: "img", "aria-describedby": "hint" })
  const boxes = element("div", { class: "boxes", "aria-hidden": "true" })
  const aim = element("div", { class: "aim", hidden: true, "aria-hidden": "true" })
  const veil = element("p", { class: "veil", role: "status", hidden: true })
  const hint = element("p", { class: "hint", id: "hint" })
  const stage = element("div", { class: "stage" }, canvas, boxes, aim, veil)
  // The aim of the keyboard, in the view's share: where the eye sees it.
  const at = { x: 0.5, y: 0.5 }
  let header = null

  const lies = () => ({ rotation: turn.rotation, mirrored: turn.mirrored, gravity: turn.gravity })
  const tell = (text) => {
    veil.hidden = text === null
    if (veil.textContent !== (text ?? "")) veil.textContent = text ?? ""
  }
  const picture = app.pictures.show({
    canvas, device: id, rate: RATE, lies,
    shown: (next) => {
      header = next
      canvas.dataset.sequence = next.sequence
      tell(null)
    },
    failed: ({ message }) => tell(refusal(app, id, message)),
  })

  const layout = () => {
    const size = lies().rotation % 180 === 0 ? canvas : { width: canvas.height, height: canvas.width }
    return new PreviewLayout({
      ...lies(), view: { width: canvas.clientWidth, height: canvas.clientHeight },
      picture: { width: size.width, height: size.height }, zoom: header?.zoom ?? 1,
    })
  }

  /** A box in the view's pixels, large at first, gone soon. */
  const box = (kind, { x, y }) => {
    const made = element("div", { class: `box ${kind}` })
    made.style.left = `${x}px`
    made.style.top = `${y}px`
    boxes.append(made)
    setTimeout(() => made.remove(), SHRINKING + STAYING)
  }

  const can = () => {
    const { supports = {} } = app.state.device(id) ?? {}
    return {
      focus: supports.focusPointOfInterest === true,
      expose: supports.exposurePointOfInterest === true,
      lock: Array.isArray(supports.exposureMode) && supports.exposureMode.includes("locked"),
    }
  }

  const order = async (method, params = {}) => {
    // One whole change needs no lock of the page's own; if it has one, that is shown.
    const lock = app.locks.token(id)
    try {
      await app.connection.request(method, { device: id, ...params, ...(lock ? { lock } : {}) })
    } catch (error) {
      app.notices.fail(error)
    }
  }

  const focus = (view) => {
    const point = layout().devicePoint(view)
    if (!point || !can().focus || whyNot(app, id)) return
    box("focus", view)
    order("device.focus", { point })
  }
  const expose = (view) => {
    const point = layout().devicePoint(view)
    if (!point || !can().expose || whyNot(app, id)) return
    box("exposure", view)
    order("device.expose", { point, ...(can().lock ? { thenLock: true } : {}) })
  }
  const reset = () => {
    const { focus, expose } = can()
    if (!(focus || expose) || whyNot(app, id)) return
    const middle = layout().viewPoint({ x: 0.5, y: 0.5 })
    if (focus) box("focus", middle)
    if (expose) box("exposure", middle)
    order("device.resetFocusAndExposure")
  }
  const endGestures = recognize(canvas, { tapped: focus, doubleTapped: expose, twoFingersTwice: reset })
  const resetButton = button("Automatic focus and exposure", { picture: "reset", class: "tool" }, reset)

  const endEvents = app.state.listen(`event/device/${id}/`, (topic, { event, reason, holder }) => {
    if (event !== "exposureLockFailed") return
    app.notices.say(`The exposure was not locked: ${holder ? `${who(holder)} has locked the camera` : title(reason).toLowerCase()}.`, { kind: "failure" })
  })

  const aimAt = () => {
    aim.hidden = false
    aim.style.left = `${at.x * 100}%`
    aim.style.top = `${at.y * 100}%`
    return { x: at.x * canvas.clientWidth, y: at.y * canvas.clientHeight }
  }
  const key = (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key]
    if (by) {
      const step = event.shiftKey ? 0.01 : 0.05
      at.x = Math.min(1, Math.max(0, at.x + step * by[0]))
      at.y = Math.min(1, Math.max(0, at.y + step * by[1]))
      aimAt()
    } else if (event.key === " " && !event.target.closest("button, a, summary")) focus(aimAt())
    else if (event.key === "x") expose(aimAt())
    else if (event.key === "0") reset()
    else return false
    return true
  }

  const refresh = () => {
    const device = app.state.device(id)
    const { focus, expose } = can()
    canvas.setAttribute("aria-label", `Live picture of ${device?.name ?? id}`)
    // What was told is taken back by the next picture.
    const wrong = ignorance(app) ?? trouble(device)
    if (wrong) tell(wrong)
    const why = whyNot(app, id)
    const gestures = [focus && "tap to focus", expose && (can().lock ? "tap twice to expose and lock" : "tap twice to expose"),
      (focus || expose) && "two fingers twice to reset"].filter(Boolean)
    const text = !device ? "" : gestures.length === 0 ? "This camera does not support focus or exposure points." : why ?? gestures.join(" · ")
    hint.textContent = text.slice(0, 1).toUpperCase() + text.slice(1)
    turnOff(resetButton, why ?? (focus || expose ? null : "This camera does not support focus or exposure points."))
    canvas.classList.toggle("tappable", why === null && (focus || expose))
  }
  return {
    element: stage, hint, resetButton, refresh, key,
    update: () => picture.update(),
    end: () => {
      endGestures()
      endEvents()
      picture.end()
    },
  }
}
