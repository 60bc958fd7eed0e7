// SPDX-License-Identifier: Apache-2.0

/**
 * Changes of one device's controls, one request at a time: of a slider that is drawn the newest value counts, and no queue grows
 * behind a camera that takes long.
 */
export class Changes {
  #app
  #device
  #waiting = {}
  #isRunning = false
  #refused

  /** `refused` is called when a change was refused, so that what shows it can go back. */
  constructor(app, device, refused) {
    this.#app = app
    this.#device = device
    this.#refused = refused
  }

  set(name, value) {
    this.#waiting[name] = value
    if (!this.#isRunning) this.#run()
  }

  async #run() {
    this.#isRunning = true
    while (Object.keys(this.#waiting).length > 0) {
      const controls = this.#waiting
      this.#waiting = {}
      try {
        await this.#app.locks.under(this.#device, (lock) =>
          this.#app.connection.request("device.set", { device: this.#device, controls, lock }))
      } catch (error) {
        this.#app.notices.fail(error)
        this.#refused()
      }
    }
    this.#isRunning = false
  }
}
