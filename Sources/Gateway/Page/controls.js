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
/** What a driver counts in parts of the unit that people know. */
const PARTS = { audio: { gain: { unit: "dB", parts: 100 } } }
/** What has a place of its own beside the picture. */
const ELSEWHERE = new Set(["zoomValue", "rampingVideoZoom"])

/** All controls of a device, generated from their descriptions: a control that no bus has yet is there all the same. */
export function makeControls(app, id) {
  const place = element("div", { class: "controls" })
  const changes = new Changes(app, id, () => refresh())
  let widgets = []
  let asked = null
  let isAsking = false
  let isStale = false

  // Descriptions change with the format, and when the camera says so; values come as state.
  const describe = async () => {
    // The answer that is on its way may be from before what was told now.
    isStale = true
    if (isAsking) return
    isAsking = true
    while (isStale) {
      isStale = false
      try {
        build(await app.connection.request("device.controls", { device: id }))
      } catch (error) {
        asked = null
        if (widgets.length === 0) place.replaceChildren(element("p", { class: "quiet" }, error.message))
      }
    }
    isAsking = false
  }

  const build = ({ controls, cameraControls }) => {
    const open = new Set([...place.querySelectorAll("details[open]")].map((part) => part.dataset.group))
    const isFirst = widgets.length === 0
    widgets = []
    const groups = new Map()
    const medium = app.state.device(id)?.mediaType
    const put = (group, control, name) => {
      const { unit, parts = 1 } = PARTS[medium]?.[control.name] ?? {}
      const shown = parts === 1 ? control
        : { ...control, type: "number", unit, minimum: control.minimum / parts, maximum: control.maximum / parts, step: undefined }
      const widget = makeWidget(shown, name, (value) => changes.set(control.name, parts === 1 ? value : Math.round(value * parts)))
      widget.element.dataset.control = control.name
      widgets.push({ control, widget, parts })
      if (!groups.has(group)) groups.set(group, [])
      groups.get(group).push(widget.element)
    }
    for (const control of cameraControls) {
      if (ELSEWHERE.has(control.name)) continue
      put(GROUPS.find(([, names]) => names.test(control.name))[0], control, title(control.name))
    }
    const driver = medium === "audio" ? "" : "Driver: "
    for (const control of controls) put(driver + control.category, control, control.title)
    const order = [...GROUPS.map(([name]) => name), ...[...groups.keys()].filter((name) => !GROUPS.some(([known]) => known === name))]
    place.replaceChildren(...order.filter((name) => groups.has(name)).map((name) => {
      const details = element("details", { class: "group", "data-group": name }, element("summary", {}, name), ...groups.get(name))
      details.open = isFirst ? medium === "audio" || name === "Focus" || name === "Exposure" : open.has(name)
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
    // It may be another one when it is back, or at another port.
    if (!device.connected) asked = null
    else if (now !== asked && app.state.isKnown) {
      asked = now
      describe()
    }
    for (const { control, widget, parts } of widgets) {
      const value = device.controls[control.name] ?? control.value
      widget.update(parts === 1 ? value : value / parts)
      const inactive = (control.flags ?? []).includes("inactive") ? "Not available in the current mode." : null
      widget.turnOff(why ?? inactive)
    }
  }
  const end = app.state.listen(`event/device/${id}/`, (topic, { event, described = [] }) => {
    if (event === "controlsChanged" && described.length > 0) describe()
  })
  return { element: place, refresh, end }
}
