// SPDX-License-Identifier: Apache-2.0
import { element } from "./elements.js"

const QUIETEST = -60
const REFUSED_AGAIN = 1000

/** How loud a microphone is, ten times a second, while it is looked at. */
export function makeLevels(app) {
  const place = element("div", { class: "levels", role: "meter", "aria-label": "Sound level", "aria-valuemin": QUIETEST, "aria-valuemax": 0, hidden: true })
  // What the bar's ends and thirds are, in decibels below the loudest that there is.
  const scale = element("div", { class: "scale", "aria-hidden": "true", hidden: true },
    ...[QUIETEST, (2 * QUIETEST) / 3, QUIETEST / 3, 0].map((value) => element("span", {}, value === 0 ? "0 dB" : String(value).replace("-", "−"))))
  let topic = null
  // A refusal is looked at again after a while, as it may be there at once each time.
  let again = null

  const listen = (microphone) => {
    const next = microphone ? `level/${microphone}/` : null
    if (next === topic) return
    if (topic) app.connection.end(topic)
    topic = next
    place.hidden = topic === null
    place.replaceChildren()
    ask()
  }
  const ask = () => {
    if (topic && !document.hidden) for (let count = 0; count < 2; count++) app.connection.ask(topic)
  }
  const take = ({ detail }) => {
    if (detail.topic !== topic) return
    const { average = [], peak = [], error } = detail.header
    place.title = error?.message ?? ""
    if (error) {
      // What was loud before is not what is heard now.
      place.replaceChildren(error.message)
      return void (again ??= setTimeout(() => ((again = null), askOne()), REFUSED_AGAIN))
    }
    askOne()
    if (place.childElementCount === 0) place.replaceChildren()
    while (place.children.length > average.length) place.lastElementChild.remove()
    while (place.children.length < average.length) place.append(element("span", { class: "level" }, element("i"), element("b")))
    average.forEach((value, channel) => {
      const [bar, mark] = place.children[channel].children
      bar.style.width = `${share(value)}%`
      mark.style.left = `${share(peak[channel])}%`
    })
    if (average.length > 0) place.setAttribute("aria-valuenow", String(Math.round(Math.max(...average))))
  }
  const askOne = () => topic && !document.hidden && app.connection.ask(topic)
  const begin = () => app.connection.busIsHere && ask()
  app.connection.addEventListener("media", take)
  app.connection.addEventListener("change", begin)
  document.addEventListener("visibilitychange", ask)
  return {
    element: place,
    scale,
    listen,
    end: () => {
      listen(null)
      app.connection.removeEventListener("media", take)
      app.connection.removeEventListener("change", begin)
      document.removeEventListener("visibilitychange", ask)
    },
  }
}

function share(decibels) {
  return Math.max(0, Math.min(100, 100 * (1 - decibels / QUIETEST)))
}
