// SPDX-License-Identifier: Apache-2.0
import { who } from "./words.js"

/** Why this page may change nothing at all, in a sentence; null: it may. */
export function whyNothing({ connection, state }) {
  if (!connection.isOpen) return "There is no connection to the cameras' machine."
  if (connection.hello?.role === "view") return "Your role is “view”: you may watch. Who may change things has the role “control”."
  if (!connection.busIsHere || !state.isKnown) return "The bus is away; it is waited for."
  return null
}

/** Why this page may not change a device now; null: it may. */
export function whyNot(app, id) {
  const nothing = whyNothing(app)
  if (nothing) return nothing
  const device = app.state.device(id)
  if (!device) return "Nothing of this name is on the bus."
  if (!device.connected) return "It is not plugged in."
  if (device.lock && !app.locks.isOurs(device.lock)) return `Locked by ${who(device.lock.holder)}.`
  return null
}
