// SPDX-License-Identifier: Apache-2.0
import { button, element, turnOff } from "./elements.js"
import { whyNot } from "./rights.js"

/** Settings under a name: all that a camera is set to, kept by the bus, and put back at once. */
export function makeProfiles(app, id) {
  const select = element("select", { "aria-label": "Profile" })
  const apply = button("Apply", { class: "plain small" }, () => act(apply, async () => {
    // One of another camera fits as far as it can.
    const { adjusted = [] } = await app.locks.under(id, (lock) =>
      app.connection.request("profile.apply", { name: select.value, devices: [id], mode: "nearest", lock }))
    for (const { path, why } of adjusted) app.notices.say(`${path}: ${why}`)
  }))
  const name = element("input", { type: "text", placeholder: "new name", maxLength: 32, "aria-label": "Name of a new profile", pattern: "[a-z0-9][a-z0-9-]{0,31}" })
  const save = button("Save as", { class: "plain small" }, () => act(save, async () => {
    await app.connection.request("profile.save", { name: name.value, devices: [id] })
    name.value = ""
    isAsked = false
  }))
  const remove = button("Delete", { class: "plain small" }, () => act(remove, async () => {
    await app.connection.request("profile.delete", { name: select.value })
    isAsked = false
  }))
  const chosen = element("div", { class: "control" }, select, apply, remove)
  const place = element("details", { class: "group", "data-group": "Profiles" }, element("summary", {}, "Profiles"),
    chosen, element("div", { class: "control" }, name, save))
  let isAsked = false

  const act = async (press, change) => {
    if (press.ariaDisabled === "true") return
    try {
      await change()
    } catch (error) {
      app.notices.fail(error)
    }
    list()
  }

  // Profiles are no state that is told: they are asked for when somebody looks.
  const list = async () => {
    if (!place.open || isAsked || !app.connection.busIsHere) return
    isAsked = true
    try {
      const { profiles } = await app.connection.request("profile.list")
      const before = select.value
      select.replaceChildren(...profiles.map((each) => element("option", { value: each.name }, each.name)))
      if (profiles.some((each) => each.name === before)) select.value = before
      chosen.hidden = profiles.length === 0
    } catch (error) {
      isAsked = false
      app.notices.fail(error)
    }
  }
  place.addEventListener("toggle", () => {
    isAsked = false
    list()
  })
  chosen.hidden = true

  const refresh = () => {
    place.hidden = !app.state.device(id)
    const why = whyNot(app, id)
    for (const part of [select, apply, remove, name, save]) turnOff(part, why)
  }
  return { element: place, refresh }
}
