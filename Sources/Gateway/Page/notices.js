// SPDX-License-Identifier: Apache-2.0
import { button, element } from "./elements.js"

const STAY = 8000
const MOST = 4

/** Messages at the edge of the page; errors are said in the bus's own words. */
export class Notices {
  #place

  constructor(place) {
    this.#place = place
  }

  /** Says something; `more` are elements behind it, as a link to what was made. */
  say(text, { kind = "plain", more = [] } = {}) {
    // The same once more is no news.
    for (const other of this.#place.children) if (other.text === text) other.remove()
    const note = element("div", { class: `notice ${kind}` }, element("p", {}, text), ...more,
      button("Close", { class: "close", text: true }, () => note.remove()))
    note.text = text
    let timer = null
    // Who reads it, or is about to press something on it, isn't hurried.
    const stay = () => clearTimeout(timer)
    const leave = () => (stay(), (timer = setTimeout(() => note.remove(), STAY)))
    for (const name of ["pointerenter", "focusin"]) note.addEventListener(name, stay)
    for (const name of ["pointerleave", "focusout"]) note.addEventListener(name, leave)
    leave()
    this.#place.append(note)
    while (this.#place.children.length > MOST) this.#place.firstChild.remove()
    return note
  }

  fail(error) {
    if (!error.reason) console.error(error)
    this.say(error.message, { kind: "failure" })
  }
}
