// SPDX-License-Identifier: Apache-2.0
import { button, element } from "./elements.js"

const KEYS = [
  ["Anywhere", [["?", "this help"], ["l", "library"], ["Esc", "back to all cameras"]]],
  ["All cameras", [["← → ↑ ↓", "select a camera"], ["Enter", "open it"]]],
  ["One camera", [
    ["← → ↑ ↓", "move the focus point; with Shift in small steps"], ["Space", "focus there"], ["x", "expose there, then lock the exposure"],
    ["0", "automatic focus and exposure"], ["r", "record, or stop"], ["p", "photo"], ["f", "full screen"],
    ["+ −", "zoom"], ["t", "rotate the picture"], ["m", "mirror the picture"], [", .", "previous camera, next camera"]]],
  ["On the picture", [
    ["tap", "focus there"], ["tap twice", "expose there, then lock the exposure"], ["two fingers twice", "automatic focus and exposure"]]],
]

/** The keys and gestures, until it is closed. */
export function showHelp() {
  const parts = KEYS.map(([name, keys]) => element("section", {}, element("h3", {}, name),
    element("dl", {}, ...keys.flatMap(([key, what]) => [element("dt", {}, key), element("dd", {}, what)]))))
  const dialog = element("dialog", { class: "help", "aria-label": "Keys and gestures", on: { close: () => dialog.remove() } },
    element("h2", {}, "Keys and gestures"), element("div", { class: "keys" }, ...parts),
    button("Close", { class: "plain" }, () => dialog.close()))
  document.body.append(dialog)
  dialog.showModal()
}
