// SPDX-License-Identifier: Apache-2.0
import { makeControls } from "./controls.js"
import { button, element, icon } from "./elements.js"
import { makeFormats } from "./formats.js"
import { makeHolders } from "./holders.js"
import { makePhotos } from "./photos.js"
import { makePresets } from "./presets.js"
import { makeProfiles } from "./profiles.js"
import { makeRecord } from "./record.js"
import { makeStage } from "./stage.js"
import { makeZoom } from "./zoom.js"

/** One camera: its picture, what is done with it, and how it is set. */
export function showCamera(app, id) {
  const turn = { rotation: 0, mirrored: app.state.device(id)?.position === "front", gravity: "resizeAspect" }
  let isMirrorChosen = false
  const stage = makeStage(app, id, turn)
  const zoom = makeZoom(app, id)
  const record = makeRecord(app, id, turn)
  const photos = makePhotos(app, id, turn)
  const controls = makeControls(app, id)
  const formats = makeFormats(app, id)
  const holders = makeHolders(app, id)
  const presets = makePresets(app, id)
  const profiles = makeProfiles(app, id)

  const name = element("h1", {})
  const others = element("nav", { class: "others", "aria-label": "Cameras" })
  const change = (what) => {
    what()
    mirror.setAttribute("aria-pressed", String(turn.mirrored))
    fill.setAttribute("aria-pressed", String(turn.gravity === "resizeAspectFill"))
    stage.element.dataset.gravity = turn.gravity
    stage.element.dataset.rotation = turn.rotation
    stage.update()
  }
  const turnRound = () => change(() => (turn.rotation = (turn.rotation + 90) % 360))
  const mirrorIt = () => change(() => ((isMirrorChosen = true), (turn.mirrored = !turn.mirrored)))
  const fillIt = () => change(() => (turn.gravity = turn.gravity === "resizeAspect" ? "resizeAspectFill" : "resizeAspect"))
  const whole = () => (document.fullscreenElement ? document.exitFullscreen() : frame.requestFullscreen?.().catch(() => {}))
  const mirror = button("Mirror the picture", { picture: "mirror", class: "tool", "aria-pressed": String(turn.mirrored) }, mirrorIt)
  const fill = button("Fill the view", { picture: "fill", class: "tool", "aria-pressed": "false" }, fillIt)
  const tools = element("div", { class: "tools", role: "toolbar", "aria-label": "View" },
    button("Rotate the picture", { picture: "turn", class: "tool" }, turnRound), mirror, fill, stage.resetButton, zoom.lamp)

  const frame = element("div", { class: "frame" }, stage.element, tools, zoom.element, record.clock)
  const bar = element("div", { class: "bar", role: "toolbar", "aria-label": "Capture" },
    record.sound, element("div", { class: "shutters" }, photos.live, photos.main, record.main, record.pause), stage.hint)
  const panel = element("aside", { class: "panel", "aria-label": "Settings" }, holders.element, formats.element, profiles.element, controls.element)
  const place = element("section", { class: "camera" },
    element("div", { class: "heading" }, element("a", { href: "#/", class: "tool", title: "All cameras", "aria-label": "All cameras" }, icon("back")), name, others),
    element("div", { class: "sides" }, element("div", { class: "main" }, frame, bar), panel))
  formats.element.prepend(presets.element)
  stage.element.dataset.gravity = turn.gravity

  const refresh = () => {
    const device = app.state.device(id)
    name.textContent = device?.name ?? id
    if (!isMirrorChosen && device && turn.mirrored !== (device.position === "front")) {
      change(() => (turn.mirrored = device.position === "front"))
    }
    const cameras = app.state.devices("video")
    const key = cameras.map((camera) => `${camera.id} ${camera.name}`).join()
    if (others.dataset.key !== key && cameras.length > 0) {
      others.dataset.key = key
      others.replaceChildren(...(cameras.length > 1 ? cameras : []).map((camera) => element("a", {
        href: `#/camera/${encodeURIComponent(camera.id)}`, title: camera.name, "aria-current": camera.id === id ? "page" : null,
      }, camera.id)))
    }
    for (const part of [stage, zoom, record, photos, controls, formats, presets, holders, profiles]) part.refresh()
  }
  const ends = [
    app.state.watch("state/", refresh),
    app.state.listen(`event/device/${id}/`, (topic, { event, to }) => {
      if (event === "renamed") location.replace(`#/camera/${encodeURIComponent(to)}`)
    }),
  ]
  app.locks.addEventListener("change", refresh)

  const next = (by) => {
    const ids = app.state.devices("video").map((camera) => camera.id)
    const other = ids[(ids.indexOf(id) + by + ids.length) % ids.length]
    if (other && other !== id) location.hash = `#/camera/${encodeURIComponent(other)}`
  }
  const keys = {
    r: record.toggle, p: photos.capture, f: whole, t: turnRound, m: mirrorIt, Escape: () => document.fullscreenElement || (location.hash = "#/"),
    "+": () => zoom.step(1), "=": () => zoom.step(1), "-": () => zoom.step(-1), ",": () => next(-1), ".": () => next(1),
  }
  return {
    element: place,
    get title() {
      return app.state.device(id)?.name ?? id
    },
    key: (event) => {
      if (event.repeat && "rpft".includes(event.key)) return true
      if (keys[event.key]) return keys[event.key](), true
      return stage.key(event)
    },
    end: () => {
      ends.forEach((end) => end())
      app.locks.removeEventListener("change", refresh)
      for (const part of [stage, record, controls, photos]) part.end()
      app.locks.giveBack(id)
    },
  }
}
