// SPDX-License-Identifier: Apache-2.0
import { BusError } from "./errors.js"

const LEASE = 10_000
/** A camera that is changed no more is given back after so long. */
const IDLE = 30_000

/**
 * The locks of this page: taken with the first change of a device, renewed as long as it is being changed, given back soon after.
 * Each has a lease, so that a page that is closed, or a phone that sleeps, holds nobody up for long.
 */
export class Locks extends EventTarget {
  #connection
  #held = new Map()
  #taking = new Map()

  constructor(connection) {
    super()
    this.#connection = connection
    connection.addEventListener("leave", () => this.giveBackAll())
    connection.addEventListener("change", () => connection.busIsHere && [...this.#held.keys()].forEach((device) => this.#renew(device)))
  }

  /** Whether a lock, as a device's state tells it, is this page's own. */
  isOurs(lock) {
    return [...this.#held.values()].some(({ fence }) => fence === lock.fence)
  }

  token(device) {
    return this.#held.get(device)?.lock
  }

  /** Takes it until it is given back, or the page is left. */
  async keep(device) {
    await this.take(device)
    const held = this.#held.get(device)
    if (!held) return
    held.isKept = true
    clearTimeout(held.idle)
  }

  /** Does something under the device's lock, which is taken if need be. */
  async under(device, change) {
    const token = await this.take(device)
    try {
      return await change(token)
    } catch (error) {
      // The lease ran out while the machine slept, say: one lock more is worth a try.
      if (!(error instanceof BusError) || error.reason !== "lockLost") throw error
      // Another change may have taken a new one meanwhile.
      const held = this.#held.get(device)
      if (held?.lock === token) {
        this.#drop(device)
        if (held.isKept) await this.keep(device)
      }
      return await change(await this.take(device))
    }
  }

  async take(device) {
    const held = this.#held.get(device)
    if (held) {
      this.#rest(device, held)
      return held.lock
    }
    if (!this.#taking.has(device)) {
      this.#taking.set(device, this.#lock(device).finally(() => this.#taking.delete(device)))
    }
    return this.#taking.get(device)
  }

  async #lock(device) {
    const { lock, fence } = await this.#connection.request("device.lock", { devices: [device], lease: LEASE, note: "web page" })
    const held = { lock, fence, renewal: setInterval(() => this.#renew(device), LEASE / 3), idle: null, isKept: false }
    this.#held.set(device, held)
    this.#rest(device, held)
    this.#changed()
    return lock
  }

  async giveBack(device) {
    // One that is just being taken would be kept by nobody for ever. What is there goes at once: the page may be left now.
    const taking = this.#taking.get(device)
    if (taking) await taking.catch(() => {})
    const lock = this.token(device)
    this.#drop(device)
    if (lock) await this.#connection.request("device.unlock", { lock }).catch(() => {})
  }

  giveBackAll() {
    return Promise.all([...new Set([...this.#held.keys(), ...this.#taking.keys()])].map((device) => this.giveBack(device)))
  }

  async #renew(device) {
    const lock = this.token(device)
    if (!lock || !this.#connection.busIsHere) return
    try {
      await this.#connection.request("device.renew", { lock })
    } catch (error) {
      if (error.reason !== "lockLost" || this.token(device) !== lock) return
      this.#drop(device)
      this.dispatchEvent(new CustomEvent("lost", { detail: { device } }))
    }
  }

  #rest(device, held) {
    clearTimeout(held.idle)
    if (!held.isKept) held.idle = setTimeout(() => this.giveBack(device), IDLE)
  }

  #drop(device) {
    const held = this.#held.get(device)
    if (!held) return
    clearInterval(held.renewal)
    clearTimeout(held.idle)
    this.#held.delete(device)
    this.#changed()
  }

  #changed() {
    this.dispatchEvent(new Event("change"))
  }
}
