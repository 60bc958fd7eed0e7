// SPDX-License-Identifier: Apache-2.0
import { element, icon } from "./elements.js"
import { format, ignorance, rate, refusal, sound, trouble, who } from "./words.js"

const RATE = 15

/** All cameras, live. */
export function showGrid(app) {
  const { state } = app
  const tiles = new Map()
  const grid = element("div", { class: "grid", role: "list" })
  const empty = element("p", { class: "empty" })
  const microphones = element("nav", { class: "microphones", "aria-label": "Microphones" })
  const place = element("div", {}, grid, empty, microphones)

  const refresh = () => {
    // While the bus is away the last pictures stay, dimmed, where they were.
    if (!state.isKnown && tiles.size > 0) return
    const cameras = state.devices("video")
    for (const [id, tile] of tiles) {
      if (cameras.some((camera) => camera.id === id)) continue
      tile.end()
      tile.element.remove()
      tiles.delete(id)
    }
    cameras.forEach((camera, index) => {
      if (!tiles.has(camera.id)) tiles.set(camera.id, makeTile(app, camera.id))
      const tile = tiles.get(camera.id)
      tile.update(camera)
      if (grid.children[index] !== tile.element) grid.insertBefore(tile.element, grid.children[index] ?? null)
    })
    // Whoever has one of them in focus is to keep it.
    const made = state.devices("audio").map((microphone) => makeMicrophone(app, microphone))
    if (made.map(({ outerHTML }) => outerHTML).join("") !== microphones.innerHTML) microphones.replaceChildren(...made)
    grid.dataset.count = String(cameras.length)
    empty.hidden = cameras.length > 0
    empty.textContent = ignorance(app) ?? "The bus has no cameras. A camera appears here when you plug it in. Run “camerabus doctor” to find faults."
  }

  const ends = [state.watch("state/", refresh)]
  return {
    element: place,
    key: (event) => step(grid, event.key),
    end: () => {
      ends.forEach((end) => end())
      tiles.forEach((tile) => tile.end())
    },
  }
}

function makeTile(app, id) {
  const canvas = element("canvas", { width: 16, height: 9, "aria-hidden": "true" })
  const name = element("span", { class: "name" })
  const what = element("span", { class: "what" })
  const marks = element("span", { class: "marks" })
  const veil = element("span", { class: "veil", hidden: true })
  const link = element("a", { class: "tile", href: `#/camera/${encodeURIComponent(id)}` },
    canvas, veil, marks, element("span", { class: "caption" }, name, what))
  const made = element("div", { role: "listitem", "data-camera": id }, link)
  const tell = (text) => {
    veil.hidden = text === null
    veil.textContent = text ?? ""
  }
  const picture = app.pictures.show({
    canvas, device: id, rate: RATE, lies: () => ({ rotation: 0, mirrored: false, gravity: "resizeAspect" }),
    shown: ({ sequence }) => {
      canvas.dataset.sequence = sequence
      tell(null)
    },
    failed: ({ message }) => tell(refusal(app, id, message)),
  })
  return {
    element: made,
    update: (camera) => {
      const movie = app.state.under("state/movie/").find((movie) => movie.device === id)
      name.textContent = camera.name
      what.textContent = [camera.id, camera.activeFormat && format(camera.activeFormat), rate(camera.frameRate)].filter(Boolean).join(" · ")
      marks.replaceChildren(
        movie ? element("span", { class: "mark recording" }, icon("record"), "REC") : "",
        camera.lock ? element("span", { class: "mark" }, icon("lock"), app.locks.isOurs(camera.lock) ? "yours" : who(camera.lock.holder)) : "")
      const wrong = trouble(camera)
      // What was told is taken back by the next picture.
      if (wrong) tell(wrong)
      link.setAttribute("aria-label", [camera.name, wrong ?? what.textContent, movie && "is being recorded", camera.lock && `locked by ${who(camera.lock.holder)}`]
        .filter(Boolean).join(", "))
    },
    end: () => picture.end(),
  }
}

// It is listened to on its own page only: whoever looks at cameras has not asked to hear a room.
function makeMicrophone(app, { id, name, lock, ...device }) {
  return element("a", { class: "ear", href: `#/microphone/${encodeURIComponent(id)}` }, icon("microphone"),
    element("span", { class: "name" }, name), element("span", { class: "what" }, trouble(device) ?? sound({ id, ...device })),
    lock ? element("span", { class: "mark" }, icon("lock"), app.locks.isOurs(lock) ? "yours" : who(lock.holder)) : null)
}

// The arrows go as the eye does, whatever number of columns there is.
function step(grid, key) {
  const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key]
  if (!by) return false
  const links = [...grid.querySelectorAll("a")]
  const at = links.indexOf(document.activeElement)
  if (at < 0) return links[0]?.focus(), links.length > 0
  const top = links[0].getBoundingClientRect().top
  const columns = Math.max(1, links.filter((link) => link.getBoundingClientRect().top === top).length)
  links[at + by[0] + columns * by[1]]?.focus()
  return true
}
