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

  /** Says something; `more` are elements behind it, as a link to what was made; `gone` is called when it is said no more. */
  say(text, { kind = "plain", more = [], gone = () => {} } = {}) {
    // The same once more is no news, but another photo may be as large.
    if (more.length === 0) for (const other of [...this.#place.children]) if (other.text === text) other.end()
    const note = element("div", { class: `notice ${kind}` }, element("p", {}, text), ...more,
      button("Close", { class: "close", text: true }, () => note.end()))
    let timer = null
    note.text = text
    note.end = () => {
      clearTimeout(timer)
      note.remove()
      gone()
    }
    // Who reads it, or is about to press something on it, isn't hurried.
    const stay = () => clearTimeout(timer)
    const leave = () => (stay(), (timer = setTimeout(note.end, STAY)))
    for (const name of ["pointerenter", "focusin"]) note.addEventListener(name, stay)
    for (const name of ["pointerleave", "focusout"]) note.addEventListener(name, leave)
    leave()
    this.#place.append(note)
    while (this.#place.children.length > MOST) this.#place.firstChild.end()
    return note
  }

  fail(error) {
    if (!error.reason) console.error(error)
    this.say(error.message, { kind: "failure" })
  }
}
