// SPDX-License-Identifier: Apache-2.0
import { element, turnOff } from "./elements.js"
import { whyNot } from "./rights.js"
import { format, number } from "./words.js"

const USUAL_RATES = [1, 2, 5, 10, 15, 20, 24, 25, 30, 48, 50, 60, 90, 100, 120, 240]

/** Which size, pixels and rate a camera delivers. */
export function makeFormats(app, id) {
  const select = element("select", { "aria-label": "Format" })
  const rates = element("input", { type: "number", min: 0, step: "any", "aria-label": "Frames per second" })
  const usual = element("select", { "aria-label": "Frames per second" })
  const place = element("div", { class: "formats" },
    element("label", { class: "control" }, element("span", { class: "label" }, "Format"), select),
    element("label", { class: "control" }, element("span", { class: "label" }, "Rate", element("small", {}, " fps")), usual, rates))
  let formats = []
  let asked = null

  const configure = async (change) => {
    try {
      const { adjusted } = await app.locks.under(id, (lock) =>
        app.connection.request("device.configure", { lock, mode: "exact", changes: [{ device: id, ...change }] }))
      for (const { path, given, why } of adjusted) app.notices.say(`${path} is ${JSON.stringify(given)} now: ${why}`)
    } catch (error) {
      app.notices.fail(error)
      refresh()
    }
  }
  select.addEventListener("change", () => configure({ activeFormat: select.value }))
  usual.addEventListener("change", () => configure({ frameRate: Number(usual.value) }))
  rates.addEventListener("change", () => rates.value !== "" && configure({ frameRate: Number(rates.value) }))

  const list = async () => {
    try {
      formats = (await app.connection.request("device.formats", { device: id })).formats
      select.replaceChildren(...formats.map((row) => element("option", { value: row.id }, `${format(row)}${most(row)}`)))
    } catch {
      // The next news of the camera asks again.
      asked = null
      return
    }
    refresh()
  }

  const refresh = () => {
    const device = app.state.device(id)
    place.hidden = !device
    if (!device) return
    // A camera that is back may be another one, or at a port of another speed.
    const now = String(device.worker?.pid)
    if (!device.connected) asked = null
    else if (now !== asked && app.state.isKnown) {
      asked = now
      list()
    }
    const row = formats.find((each) => each.id === device.activeFormat?.id)
    if (row) select.value = row.id
    const ranges = row?.frameRates ?? []
    const isIn = (rate) => ranges.some(({ minFrameRate, maxFrameRate }) => rate >= minFrameRate - 1e-6 && rate <= maxFrameRate + 1e-6)
    const ends = ranges.flatMap(({ minFrameRate, maxFrameRate }) => [minFrameRate, maxFrameRate])
    const some = [...new Set([...USUAL_RATES.filter(isIn), ...ends, device.frameRate].filter(Boolean))].sort((a, b) => a - b)
    const key = some.join()
    if (usual.dataset.rates !== key) {
      usual.dataset.rates = key
      usual.replaceChildren(...some.map((rate) => element("option", { value: rate }, number(rate))))
    }
    if (device.frameRate) usual.value = String(device.frameRate)
    if (document.activeElement !== rates) rates.value = device.frameRate ? number(device.frameRate) : ""
    // One rate is no choice, and where there are steps only no number between them is one.
    rates.hidden = !ranges.some(({ minFrameRate, maxFrameRate }) => maxFrameRate > minFrameRate)
    const why = whyNot(app, id)
    for (const part of [select, usual, rates]) turnOff(part, why)
  }
  return { element: place, refresh }
}

function most({ frameRates }) {
  const rates = frameRates.map(({ maxFrameRate }) => maxFrameRate).filter(Boolean)
  return rates.length > 0 ? `, to ${number(Math.max(...rates))} fps` : ""
}
