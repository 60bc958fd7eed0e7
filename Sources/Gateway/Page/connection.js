// SPDX-License-Identifier: Apache-2.0
import { BusError } from "./errors.js"

const FIRST_WAIT = 250
const LONGEST_WAIT = 10_000
/** The bus says each second that it is there; when nothing has come for so long, nothing will. */
const SILENCE = 8000
/** Within that an answer comes, or it was lost on its way. */
const PATIENCE = 60_000
/** What may wait for a disk, for the moment of a photo, or for what is being made. */
const SLOW = /^(library|movie|photo|take)\./
const MEDIA = 1
const END = 0
const NEXT = 1

/**
 * The WebSocket to the gateway: requests and their replies, state and events, and pictures that were asked for.
 *
 * Events: `change` (isOpen, busIsHere or hello is another), `message` {topic, message}, `media` {topic, header, payload}, `refused` (it
 * could not be opened), `leave` (the page is being left: what is asked for now, at once, still gets out).
 * It connects again by itself, later each time, until somebody comes back to the page.
 */
export class Connection extends EventTarget {
  isOpen = false
  busIsHere = false
  /** What the gateway said first: {role, name, session, limits}. */
  hello = null
  #url
  #socket = null
  #next = 1
  #requests = new Map()
  #wait = FIRST_WAIT
  #timer = null
  #watch = null
  #heard = 0

  constructor(url) {
    super()
    this.#url = url
    addEventListener("online", () => this.#hurry())
    document.addEventListener("visibilitychange", () => document.hidden || this.#comeBack())
    addEventListener("pagehide", () => this.#leave())
    addEventListener("pageshow", ({ persisted }) => persisted && this.#comeBack())
  }

  open() {
    this.#timer = null
    const socket = (this.#socket = new WebSocket(this.#url))
    socket.binaryType = "arraybuffer"
    socket.addEventListener("message", ({ data }) => {
      if (socket !== this.#socket) return
      this.#heard = performance.now()
      if (typeof data === "string") this.#text(data)
      else this.#binary(data)
    })
    socket.addEventListener("close", () => {
      if (socket !== this.#socket) return
      if (!this.isOpen) this.dispatchEvent(new Event("refused"))
      this.#closed()
    })
  }

  /**
   * Asks the bus; refusals come as BusError. Binary parts of the reply are in `attached` of the result. What may wait by its nature, or
   * says how long it will, is waited for; other answers are given up after a while.
   */
  request(method, params = {}) {
    if (!this.isOpen) return Promise.reject(new BusError("Not connected to the machine with the cameras. Trying again.", "notConnected"))
    return new Promise((resolve, reject) => {
      const id = this.#next++
      const isSlow = SLOW.test(method) || params.wait !== undefined
      const timer = isSlow ? null : setTimeout(() => this.#giveUp(String(id)), PATIENCE)
      this.#requests.set(String(id), { resolve, reject, parts: [], timer })
      this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
    })
  }

  /** Asks for one message more of a topic. */
  ask(topic) {
    this.#order(NEXT, topic)
  }

  /** Asks for no more of it. */
  end(topic) {
    this.#order(END, topic)
  }

  #order(what, topic) {
    if (!this.isOpen) return
    const name = new TextEncoder().encode(topic)
    const order = new Uint8Array(1 + name.length)
    order[0] = what
    order.set(name, 1)
    this.#socket.send(order)
  }

  #text(data) {
    const message = JSON.parse(data)
    if (message.topic !== undefined) return this.dispatchEvent(new CustomEvent("message", { detail: message }))
    if (message.method === "web.hello") {
      this.hello = message.params
      this.isOpen = this.busIsHere = true
      this.#wait = FIRST_WAIT
      this.#listen()
      return this.#changed()
    }
    if (message.method === "web.bus") {
      this.busIsHere = message.params.here
      this.#listen()
      return this.#changed()
    }
    const request = this.#requests.get(String(message.id))
    if (!request) return
    if (message.error) {
      this.#forget(String(message.id))
      return request.reject(new BusError(message.error.message, message.error.data?.reason ?? "internalError", message.error.data ?? {}))
    }
    request.result = message.result
    this.#finish(String(message.id), request)
  }

  // u8 kind, u8 0, u16 length of the topic, u32 length of the header, topic, header, payload.
  #binary(data) {
    const view = new DataView(data)
    const kind = view.getUint8(0)
    const topicEnd = 8 + view.getUint16(2, true)
    const headerEnd = topicEnd + view.getUint32(4, true)
    const topic = new TextDecoder().decode(new Uint8Array(data, 8, topicEnd - 8))
    const payload = new Uint8Array(data, headerEnd)
    if (kind === MEDIA) {
      const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, topicEnd, headerEnd - topicEnd)))
      return this.dispatchEvent(new CustomEvent("media", { detail: { topic, header, payload } }))
    }
    const request = this.#requests.get(topic)
    if (!request) return
    request.parts.push(payload)
    this.#finish(topic, request)
  }

  #finish(id, request) {
    if (request.result === undefined || request.parts.length < (request.result.attachments?.length ?? 0)) return
    this.#forget(id)
    request.resolve({ ...request.result, attached: request.parts })
  }

  #giveUp(id) {
    const { reject } = this.#requests.get(id)
    this.#forget(id)
    reject(new BusError("There was no answer in time. The request may still be carried out.", "noAnswer"))
  }

  #forget(id) {
    clearTimeout(this.#requests.get(id)?.timer)
    this.#requests.delete(id)
  }

  // A phone that has changed its network is told of no end.
  #listen() {
    clearTimeout(this.#watch)
    // Nobody looks, or nobody says anything anyway.
    if (!this.busIsHere || document.hidden) return
    const left = this.#heard + SILENCE - performance.now()
    if (left > 0) {
      this.#watch = setTimeout(() => this.#listen(), left)
      return
    }
    this.#letGo()
  }

  // A browser may keep a page that was left for when somebody comes back, and its socket with it: to the gateway that is somebody who looks.
  #leave() {
    this.dispatchEvent(new Event("leave"))
    if (this.#timer === null) this.#letGo()
  }

  #letGo() {
    const last = this.#socket
    this.#socket = null
    last.close()
    this.#closed()
  }

  #closed() {
    clearTimeout(this.#watch)
    this.isOpen = this.busIsHere = false
    for (const { reject, timer } of this.#requests.values()) {
      clearTimeout(timer)
      reject(new BusError("The connection ended before the answer arrived. The request may still be carried out.", "notConnected"))
    }
    this.#requests.clear()
    this.#changed()
    // Browsers that lost one gateway at the same time don't all come back at the same time.
    this.#timer = setTimeout(() => this.open(), this.#wait * (0.75 + Math.random() / 2))
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT)
  }

  // What was said meanwhile may still have to be read.
  #comeBack() {
    this.#heard = performance.now()
    this.#listen()
    this.#hurry()
  }

  #hurry() {
    this.#wait = FIRST_WAIT
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.open()
  }

  #changed() {
    this.dispatchEvent(new Event("change"))
  }
}
