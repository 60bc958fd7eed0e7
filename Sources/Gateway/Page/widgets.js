// SPDX-License-Identifier: Apache-2.0
// One element for each type of control. Each has `element`, `update(value)` and `turnOff(why)`, and calls `set` with a new value.
import { element, turnOff } from "./elements.js"
import { exposure, number, title } from "./words.js"

/** The widget of a control as `device.controls` describes it, a camera control's or a driver's; `name` is what people read. */
export function makeWidget(control, name, set) {
  const make = {
    word: choice, menu: choice, intmenu: choice, flag, bool: flag, number: range, int: range, int64: range, button: press,
    point, gains, str: text,
  }[control.type]
  const isShown = control.readOnly || (control.flags ?? []).some((flag) => flag === "read-only" || flag === "disabled")
  return isShown || !make ? shown(control, name) : make(control, name, set)
}

function row(name, unit, ...parts) {
  const label = element("span", { class: "label" }, name, unit ? element("small", {}, ` ${unit}`) : null)
  return element("label", { class: "control" }, label, ...parts)
}

// A picture of what the camera says; nobody can set it.
function shown(control, name) {
  const value = element("output", { class: "value" })
  return {
    element: element("div", { class: "control" }, element("span", { class: "label" }, name), value),
    update: (now) => (value.textContent = now === null || now === undefined ? "–" : typeof now === "boolean" ? (now ? "yes" : "no") : typeof now === "object" ? JSON.stringify(now) : String(now)),
    turnOff: () => {},
  }
}

function choice(control, name, set) {
  const items = control.choices?.map((word) => [word, title(word)])
    ?? control.menu.map((item) => [item.index, item.name ?? number(item.value)])
  const select = element("select", { on: { change: () => set(items[select.selectedIndex][0]) } },
    ...items.map(([value, text]) => element("option", { value }, text)))
  return {
    element: row(name, null, select),
    update: (value) => (select.value = String(value)),
    turnOff: (why) => turnOff(select, why),
  }
}

function flag(control, name, set) {
  const box = element("input", { type: "checkbox", role: "switch", class: "switch", on: { change: () => set(box.checked) } })
  return {
    element: row(name, null, box),
    update: (value) => (box.checked = value === true || value === 1),
    turnOff: (why) => turnOff(box, why),
  }
}

function press(control, name, set) {
  const made = element("button", { type: "button", class: "plain", on: { click: () => made.ariaDisabled !== "true" && set(true) } }, name)
  return { element: element("div", { class: "control" }, element("span", { class: "label" }, ""), made), update: () => {}, turnOff: (why) => turnOff(made, why) }
}

function text(control, name, set) {
  const field = element("input", { type: "text", maxLength: control.maximum ?? 256, on: { change: () => set(field.value) } })
  return {
    element: row(name, null, field),
    update: (value) => document.activeElement === field || (field.value = value ?? ""),
    turnOff: (why) => turnOff(field, why),
  }
}

/**
 * A slider with a field for the number itself. What spans several powers of ten (exposure times, ISO) is drawn by its logarithm;
 * what has just some values goes from one to the next.
 */
function range(control, name, set) {
  const { minimum = 0, maximum = 1, values, unit } = control
  const isWhole = control.step !== undefined
  const isWide = !isWhole && !values && minimum > 0 && maximum / minimum > 50
  const scale = values ? { from: (index) => values[index], to: (value) => nearest(values, value), step: 1, low: 0, high: values.length - 1 }
    : isWide ? { from: Math.exp, to: Math.log, step: "any", low: Math.log(minimum), high: Math.log(maximum) }
    : { from: Number, to: Number, step: isWhole ? control.step || 1 : "any", low: minimum, high: maximum }
  const slider = element("input", { type: "range", min: scale.low, max: scale.high, step: scale.step, "aria-label": name })
  const field = element("input", { type: "number", min: minimum, max: maximum, step: isWhole ? control.step || 1 : "any", "aria-label": `${name}, as a number` })
  const isTime = unit === "s"
  let isDrawn = false
  const show = (value) => {
    if (document.activeElement !== field) field.value = number(value)
    slider.setAttribute("aria-valuetext", isTime ? exposure(value) : `${number(value)} ${unit ?? ""}`)
    if (isTime) field.title = exposure(value)
  }
  const round = (value) => Math.min(maximum, Math.max(minimum, isWhole ? Math.round(value) : Number(value.toPrecision(6))))
  slider.addEventListener("input", () => {
    isDrawn = true
    const value = round(scale.from(Number(slider.value)))
    show(value)
    set(value)
  })
  slider.addEventListener("change", () => (isDrawn = false))
  field.addEventListener("change", () => field.value !== "" && set(Number(field.value)))
  return {
    element: element("div", { class: "control wide", role: "group", "aria-label": name },
      element("span", { class: "label" }, name, unit ? element("small", {}, ` ${unit}`) : null), slider, field),
    update: (value) => {
      if (isDrawn || typeof value !== "number") return
      slider.value = scale.to(value)
      show(value)
    },
    turnOff: (why) => [slider, field].forEach((part) => turnOff(part, why)),
  }
}

function nearest(values, value) {
  return values.reduce((best, each, index) => (Math.abs(each - value) < Math.abs(values[best] - value) ? index : best), 0)
}

// A point is chosen on the picture; here it is told, and put back to the middle.
function point(control, name, set) {
  const value = element("output", { class: "value" })
  const middle = element("button", { type: "button", class: "plain small", on: { click: () => middle.ariaDisabled !== "true" && set({ x: 0.5, y: 0.5 }) } }, "Centre")
  return {
    element: element("div", { class: "control" }, element("span", { class: "label" }, name), value, middle),
    update: (now) => (value.textContent = now ? `${number(now.x)}, ${number(now.y)}` : "–"),
    turnOff: (why) => turnOff(middle, why),
  }
}

// Green is 1; red and blue are told by it.
function gains(control, name, set) {
  let now = { red: 1, green: 1, blue: 1 }
  const parts = ["red", "blue"].map((colour) => ({
    colour,
    widget: range({ minimum: control.minimum?.[colour] ?? 0, maximum: control.maximum?.[colour] ?? 4 }, `${name}, ${colour}`,
      (value) => set((now = { ...now, [colour]: value }))),
  }))
  return {
    element: element("div", { class: "pair" }, ...parts.map(({ widget }) => widget.element)),
    update: (value) => {
      if (!value) return
      now = value
      parts.forEach(({ colour, widget }) => widget.update(value[colour]))
    },
    turnOff: (why) => parts.forEach(({ widget }) => widget.turnOff(why)),
  }
}
