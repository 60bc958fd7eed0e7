// SPDX-License-Identifier: Apache-2.0
import { who } from "./words.js"

/** The role of this page after the bus's limit for other machines; of a bus that has not said so yet, without it. */
export function role({ connection, state }) {
  const own = connection.hello?.role
  return state.get("state/bus/")?.remote?.[own]?.role ?? own
}

/** Why this page may change nothing at all, in a sentence; null: it may. */
export function whyNothing({ connection, state }) {
  if (!connection.isOpen) return "Not connected to the machine with the cameras."
  const now = role({ connection, state })
  if (now === "none") return "The bus gives pages no access now (permission.remote_role)."
  if (now === "view") return connection.hello.role === "view"
    ? "Your role is “view”: you can only watch. To change something you need the role “control”."
    : "The bus limits pages to the role “view” now (permission.remote_role): you can only watch."
  if (!connection.busIsHere || !state.isKnown) return "The bus does not run. Waiting for it."
  return null
}

/** Why this page may not change a device now; null: it may. */
export function whyNot(app, id) {
  const nothing = whyNothing(app)
  if (nothing) return nothing
  const device = app.state.device(id)
  if (!device) return "The bus has no device with this name."
  if (!device.connected) return "The device is not connected."
  if (device.lock && !app.locks.isOurs(device.lock)) return `Locked by ${who(device.lock.holder)}.`
  return null
}
