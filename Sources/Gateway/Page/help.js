// SPDX-License-Identifier: Apache-2.0
import { button, element } from "./elements.js"

const KEYS = [
  ["Anywhere", [["?", "these lines"], ["l", "library"], ["Esc", "back to all cameras"]]],
  ["All cameras", [["← → ↑ ↓", "from camera to camera"], ["Enter", "open it"]]],
  ["One camera", [
    ["← → ↑ ↓", "move the aim, Shift for small steps"], ["Space", "focus there"], ["x", "expose there, then lock"],
    ["0", "focus and exposure by themselves again"], ["r", "record, or stop"], ["p", "photo"], ["f", "full screen"],
    ["+ −", "zoom"], ["t", "turn the picture"], ["m", "mirror it"], [", .", "the camera before, the next"]]],
  ["On the picture", [
    ["tap", "focus there"], ["tap twice", "expose there, then lock"], ["two fingers twice", "focus and exposure by themselves again"]]],
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
