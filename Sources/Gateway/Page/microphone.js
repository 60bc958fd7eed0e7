// SPDX-License-Identifier: Apache-2.0
import { makeControls } from "./controls.js"
import { element, icon } from "./elements.js"
import { makeHolders } from "./holders.js"
import { makeLevels } from "./levels.js"
import { ignorance, sound, trouble } from "./words.js"

/** One microphone: how loud it is, and how it is set. */
export function showMicrophone(app, id) {
  const levels = makeLevels(app)
  const holders = makeHolders(app, id)
  const controls = makeControls(app, id)
  const name = element("h1", {})
  const what = element("p", { class: "what" })
  const told = element("p", { class: "warning", role: "status", hidden: true })
  const loud = element("div", { class: "loud" }, levels.element, levels.scale, what, told)
  const place = element("section", { class: "microphone" },
    element("div", { class: "heading" }, element("a", { href: "#/", class: "tool", title: "All cameras", "aria-label": "All cameras" }, icon("back")), name),
    loud, element("div", { class: "panel", role: "group", "aria-label": "Settings" }, holders.element, controls.element))

  const refresh = () => {
    const device = app.state.device(id)
    name.textContent = device?.name ?? id
    what.textContent = device ? sound(device) : ""
    const wrong = ignorance(app) ?? trouble(device)
    told.hidden = wrong === null
    told.textContent = wrong ?? ""
    levels.listen(device?.connected ? id : "")
    levels.scale.hidden = !device?.connected
    for (const part of [holders, controls]) part.refresh()
  }
  const ends = [
    app.state.watch("state/", refresh),
    app.state.listen(`event/device/${id}/`, (topic, { event, to }) => {
      if (event === "renamed") location.replace(`#/microphone/${encodeURIComponent(to)}`)
    }),
  ]
  app.locks.addEventListener("change", refresh)
  return {
    element: place,
    get title() {
      return app.state.device(id)?.name ?? id
    },
    key: ({ key }) => key === "Escape" && ((location.hash = "#/"), true),
    end: () => {
      ends.forEach((end) => end())
      app.locks.removeEventListener("change", refresh)
      for (const part of [levels, controls]) part.end()
      app.locks.giveBack(id)
    },
  }
}
