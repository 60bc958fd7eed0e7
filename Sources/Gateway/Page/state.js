// SPDX-License-Identifier: Apache-2.0

const TOPICS = ["state/", "event/", "heartbeat/"]

/**
 * A copy of the bus's state, kept as the protocol's section 7 says: changes by topic, and a snapshot wherever numbers show that
 * something was missed. Nothing is asked for again and again.
 */
export class State {
  /** False until the first snapshot, and while the bus is away. */
  isKnown = false
  #connection
  #values = new Map()
  #last = new Map()
  #seen = new Map()
  #floor = 0
  #epoch = null
  #newestEpoch = null
  #kept = null
  #again = false
  #watchers = new Set()
  #listeners = new Set()
  #changed = new Set()
  #wasHere = false

  constructor(connection) {
    this.#connection = connection
    connection.addEventListener("message", ({ detail }) => this.#take(detail.topic, detail.message))
    connection.addEventListener("change", () => this.#follow())
  }

  get(topic) {
    return this.#values.get(topic)
  }

  device(id) {
    return this.get(`state/device/${id}/`)
  }

  /** All devices of a medium, in the bus's order. */
  devices(medium) {
    const order = this.get("state/bus/")?.devices ?? []
    return order.map((id) => this.device(id)).filter((device) => device?.mediaType === medium)
  }

  under(prefix) {
    return [...this.#values].filter(([topic]) => topic.startsWith(prefix)).map(([, value]) => value)
  }

  /** Calls `tell` once for each bunch of changes below a prefix, and once now; the answer ends that. */
  watch(prefix, tell) {
    const watcher = { prefix, tell }
    this.#watchers.add(watcher)
    tell()
    return () => this.#watchers.delete(watcher)
  }

  /** Calls `tell` with the topic and the event for each event below a prefix; the answer ends that. */
  listen(prefix, tell) {
    const listener = { prefix, tell }
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async #follow() {
    const { isOpen, busIsHere } = this.#connection
    if (!isOpen) this.#wasHere = false
    if (!isOpen || !busIsHere) {
      this.isKnown = false
      return this.#mark("")
    }
    if (!this.isKnown) this.#mark("")
    try {
      if (!this.#wasHere) await this.#connection.request("web.subscribe", { topics: TOPICS })
      this.#wasHere = true
      await this.#snapshot()
    } catch {
      // The connection has ended again: its next beginning comes here.
    }
  }

  async #snapshot() {
    if (this.#kept) return void (this.#again = true)
    this.#kept = []
    try {
      let answer
      do {
        this.#again = false
        answer = await this.#connection.request("bus.snapshot")
      } while (this.#again && this.#connection.busIsHere)
      if (this.#newestEpoch !== null && this.#newestEpoch !== answer.epoch) answer = await this.#connection.request("bus.snapshot")
      this.#floor = answer.epoch === this.#epoch ? Math.max(this.#floor, answer.sequence) : answer.sequence
      if (answer.epoch !== this.#epoch) this.#seen.clear()
      this.#epoch = this.#newestEpoch = answer.epoch
      this.#last.clear()
      this.#values = new Map(Object.entries(answer.state))
      this.isKnown = true
      this.#mark("")
      const kept = this.#kept
      this.#kept = null
      for (const [topic, message] of kept) this.#apply(topic, message)
    } finally {
      this.#kept = null
    }
  }

  #take(topic, message) {
    if (message.epoch !== undefined) this.#newestEpoch = message.epoch
    if (topic.startsWith("event/")) {
      for (const { prefix, tell } of this.#listeners) if (topic.startsWith(prefix)) tell(topic, message)
    } else if (topic === "heartbeat/") {
      // The first thing that comes after a snapshot that failed, too.
      if (!this.#kept && (!this.isKnown || this.#missed(message))) this.#resync()
    } else if (this.#kept) this.#kept.push([topic, message])
    else if (this.#epoch !== null) this.#apply(topic, message)
  }

  #apply(topic, { epoch, sequence, previous, value }) {
    if (epoch !== this.#epoch) return this.#resync([topic, { epoch, sequence, previous, value }])
    const known = Math.max(this.#floor, this.#last.get(topic) ?? 0)
    for (const key of keys(topic)) this.#seen.set(key, Math.max(this.#seen.get(key) ?? 0, sequence))
    if (sequence <= known) return
    if (previous > known) return this.#resync([topic, { epoch, sequence, previous, value }])
    this.#last.set(topic, sequence)
    if (value === null) this.#values.delete(topic)
    else this.#values.set(topic, value)
    this.#mark(topic)
  }

  #missed({ epoch, latest }) {
    if (epoch !== this.#epoch) return true
    // Of events there is nothing to be had again.
    return Object.entries(latest ?? {}).some(
      ([key, number]) => key.startsWith("state/") && number > this.#floor && number > (this.#seen.get(key) ?? 0))
  }

  #resync(kept) {
    this.#snapshot().catch(() => {})
    if (kept) this.#kept?.push(kept)
  }

  // Several changes that come together are one for who draws.
  #mark(topic) {
    if (this.#changed.size === 0) queueMicrotask(() => this.#tell())
    this.#changed.add(topic)
  }

  #tell() {
    const topics = [...this.#changed]
    this.#changed.clear()
    for (const { prefix, tell } of [...this.#watchers]) {
      if (topics.some((topic) => topic === "" || topic.startsWith(prefix))) tell()
    }
  }
}

/** What the bus's heartbeat counts a topic under. */
function keys(topic) {
  const [first, second] = topic.split("/")
  return [`${first}/`, `${first}/${second}/`, topic]
}
