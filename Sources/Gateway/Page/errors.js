// SPDX-License-Identifier: Apache-2.0

/** A refusal: `message` is the bus's own sentence for people, `reason` the word that programs go by, `data` what belongs to it. */
export class BusError extends Error {
  constructor(message, reason, data = {}) {
    super(message)
    this.reason = reason
    this.data = data
  }
}
