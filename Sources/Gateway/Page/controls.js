// SPDX-License-Identifier: Apache-2.0
import { Changes } from "./changes.js"
import { element } from "./elements.js"
import { whyNot } from "./rights.js"
import { makeWidget } from "./widgets.js"
import { title } from "./words.js"

/** In which group people look for a camera control; one that has none of them here is among the others. */
const GROUPS = [
  ["Focus", /focus|lens/i],
  ["Exposure", /exposure|^ISO|lowLight/i],
  ["White balance", /whiteBalance/i],
  ["Light", /flash|torch/i],
  ["Picture", /./],
]
/** What has a place of its own beside the picture. */
const ELSEWHERE = new Set(["zoomValue", "rampingVideoZoom"])

/** All controls of a device, generated from their descriptions: a control that no bus has yet is there all the same. */
export function makeControls(app, id) {
  const place = element("div", { class: "controls" })
  const changes = new Changes(app, id, () => refresh())
  let widgets = []
  let asked = null
  let isAsking = false

  // Descriptions change with the format, and when the camera says so; values come as state.
  const describe = async () => {
    if (isAsking) return
    isAsking = true
    try {
      build(await app.connection.request("device.controls", { device: id }))
    } catch (error) {
      asked = null
      if (widgets.length === 0) place.replaceChildren(element("p", { class: "quiet" }, error.message))
    }
    isAsking = false
  }

  const build = ({ controls, cameraControls }) => {
    const open = new Set([...place.querySelectorAll("details[open]")].map((part) => part.dataset.group))
    const isFirst = widgets.length === 0
    widgets = []
    const groups = new Map()
    const put = (group, control, name) => {
      const widget = makeWidget(control, name, (value) => changes.set(control.name, value))
      widget.element.dataset.control = control.name
      widgets.push({ control, widget })
      if (!groups.has(group)) groups.set(group, [])
      groups.get(group).push(widget.element)
    }
    for (const control of cameraControls) {
      if (ELSEWHERE.has(control.name)) continue
      put(GROUPS.find(([, names]) => names.test(control.name))[0], control, title(control.name))
    }
    for (const control of controls) put(`Driver: ${control.category}`, control, control.title)
    const order = [...GROUPS.map(([name]) => name), ...[...groups.keys()].filter((name) => name.startsWith("Driver: "))]
    place.replaceChildren(...order.filter((name) => groups.has(name)).map((name) => {
      const details = element("details", { class: "group", "data-group": name }, element("summary", {}, name), ...groups.get(name))
      details.open = isFirst ? name === "Focus" || name === "Exposure" : open.has(name)
      return details
    }))
    refresh()
  }

  const refresh = () => {
    const device = app.state.device(id)
    if (!device) return
    const why = whyNot(app, id)
    // What a control may be depends on the format and on the mode that others are in.
    const now = `${device.activeFormat?.id} ${device.worker?.pid} ${device.connected}`
    if (now !== asked && app.state.isKnown && device.connected) {
      asked = now
      describe()
    }
    for (const { control, widget } of widgets) {
      widget.update(device.controls[control.name] ?? control.value)
      const inactive = (control.flags ?? []).includes("inactive") ? "Off in the present mode." : null
      widget.turnOff(why ?? inactive)
    }
  }
  const end = app.state.listen(`event/device/${id}/`, (topic, { event, described = [] }) => {
    if (event === "controlsChanged" && described.length > 0) describe()
  })
  return { element: place, refresh, end }
}
