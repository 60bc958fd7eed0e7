// SPDX-License-Identifier: Apache-2.0
// Elements in a line each. Text is always set as text: names of cameras and messages come from elsewhere and are no markup.

/** An element with properties (`class`, `on` {event: listener}, `data-…`, `aria-…`, else as the element has them) and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue
    if (name === "class") made.className = value
    else if (name === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener)
    else if (name in made && !name.includes("-") && name !== "list" && name !== "role") made[name] = value
    else made.setAttribute(name, value)
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false))
  return made
}

const PATHS = {
  record: "M12 5a7 7 0 1 0 0 14a7 7 0 1 0 0-14z",
  stop: "M7 7h10v10H7z",
  pause: "M8 6h3v12H8zM13 6h3v12h-3z",
  play: "M8 5l11 7-11 7z",
  photo: "M4 8h3.5L9 6h6l1.5 2H20v11H4zM12 10a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7z",
  live: "M12 9a3 3 0 1 0 0 6a3 3 0 1 0 0-6zM12 5.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM12 2a10 10 0 1 0 0 20a10 10 0 1 0 0-20z",
  lock: "M7 11V8a5 5 0 0 1 10 0v3h1v9H6v-9zm2 0h6V8a3 3 0 0 0-6 0z",
  microphone: "M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3zM6 11a6 6 0 0 0 12 0M12 17v4",
  back: "M15 5l-7 7 7 7",
  turn: "M5 12a7 7 0 1 1 2 5M5 19v-5h5",
  mirror: "M12 4v16M9 8l-5 4 5 4zM15 8l5 4-5 4z",
  sliders: "M4 7h8M16 7h4M14 5a2 2 0 1 0 0 4a2 2 0 1 0 0-4zM4 17h2M10 17h10M8 15a2 2 0 1 0 0 4a2 2 0 1 0 0-4z",
  fill: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  reset: "M12 4v3M12 17v3M4 12h3M17 12h3M12 9a3 3 0 1 0 0 6a3 3 0 1 0 0-6z",
  lamp: "M9 3h6v5l-1 3v10h-4V11L9 8z",
  library: "M4 5h7v6H4zM13 5h7v6h-7zM4 13h7v6H4zM13 13h7v6h-7z",
  help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 17.5v.5",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  delete: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  leave: "M10 4H5v16h5M14 8l4 4-4 4M9 12h9",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 9h4M4 15h4M16 9h4M16 15h4",
  camera: "M4 8h3.5L9 6h6l1.5 2H20v11H4z",
}
const SOLID = new Set(["record", "stop", "pause", "play", "lock"])

/** A small picture beside a word that says the same. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg"
  const made = document.createElementNS(space, "svg")
  made.setAttribute("viewBox", "0 0 24 24")
  made.setAttribute("class", SOLID.has(name) ? "icon solid" : "icon")
  made.setAttribute("aria-hidden", "true")
  const path = document.createElementNS(space, "path")
  path.setAttribute("d", PATHS[name])
  made.append(path)
  return made
}

/** A button; `label` is read out where only a picture is seen. */
export function button(label, { picture, text = picture === undefined, ...properties } = {}, press) {
  return element("button", { type: "button", title: label, "aria-label": label, ...properties, on: { click: press, ...properties.on } },
    picture ? icon(picture) : null, text ? element("span", {}, label) : null)
}

/**
 * Says on an element, and to screen readers, why it is off; null: it is on. What is off stays reachable: a button that can't be
 * reached can't say why.
 */
export function turnOff(target, why) {
  if (target.told === why) return
  target.told = why
  if (target.plainTitle === undefined) target.plainTitle = target.title
  target.classList.toggle("off", why !== null)
  target.title = why ?? target.plainTitle
  if (why === null) target.removeAttribute("aria-disabled")
  else target.setAttribute("aria-disabled", "true")
  if (target.matches("input, select")) target.disabled = why !== null
}
