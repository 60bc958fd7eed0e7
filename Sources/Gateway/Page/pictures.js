// SPDX-License-Identifier: Apache-2.0

/** Widths that are asked for, so that many pages share what is made; the browser does the rest. */
const WIDTHS = [160, 320, 480, 640, 960, 1280, 1920, 2560, 3840]
const AHEAD = 2
/** Milliseconds until what was refused is asked for again. */
const REFUSED_AGAIN = 1000
/** Milliseconds for which the device's whole picture stands in for a size that the device has no place for. */
const STAND_IN = 30000

/**
 * Live pictures on canvases. Each is asked for by the message, as fast as it is drawn: a slow link, or a slow phone, sees the
 * present, less often. What isn't seen isn't asked for.
 */
export class Pictures {
  #connection
  #state
  #feeds = new Map()
  #views = new Set()
  #seen
  #sizes

  constructor(connection, state) {
    this.#connection = connection
    this.#state = state
    this.#seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) this.#each(target, (view) => (view.isSeen = isIntersecting))
    })
    this.#sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => this.#each(target, () => {})))
    document.addEventListener("visibilitychange", () => this.#views.forEach((view) => this.#choose(view)))
    connection.addEventListener("media", ({ detail }) => this.#take(detail))
    connection.addEventListener("change", () => this.#begin())
    state.watch("state/device/", () => this.#views.forEach((view) => this.#choose(view)))
  }

  /**
   * Shows a device on a canvas: {canvas, device, rate?, lies() → {rotation, mirrored, gravity}, shown(header, bitmap), failed(error)}.
   * The answer has `update()`, for when it is to lie otherwise, and `end()`.
   */
  show(wish) {
    const view = { ...wish, isSeen: false, topic: null, last: null, standsInUntil: 0 }
    this.#views.add(view)
    this.#seen.observe(view.canvas)
    this.#sizes.observe(view.canvas)
    return {
      update: () => {
        if (view.last) draw(view, view.last.bitmap, view.last.header)
        this.#choose(view)
      },
      end: () => {
        this.#views.delete(view)
        this.#seen.unobserve(view.canvas)
        this.#sizes.unobserve(view.canvas)
        this.#join(view, null)
        view.last?.bitmap.close()
        view.last = null
      },
    }
  }

  #each(canvas, change) {
    for (const view of this.#views) {
      if (view.canvas !== canvas) continue
      change(view)
      this.#choose(view)
    }
  }

  #choose(view) {
    const wanted = view.isSeen && !document.hidden
    this.#join(view, wanted ? topic(view, this.#state.device(view.device)) : null)
  }

  #join(view, topic) {
    if (view.topic === topic) return
    const before = this.#feeds.get(view.topic)
    before?.views.delete(view)
    if (before?.views.size === 0) {
      this.#feeds.delete(view.topic)
      this.#connection.end(view.topic)
    }
    view.topic = topic
    if (topic === null) return
    const feed = this.#feeds.get(topic)
    if (feed) return void feed.views.add(view)
    this.#feeds.set(topic, { views: new Set([view]), isDecoding: false, next: null, again: null })
    for (let count = 0; count < AHEAD; count++) this.#connection.ask(topic)
  }

  // What was asked before a bus or a connection went may be forgotten; what is asked twice costs a picture more.
  #begin() {
    if (!this.#connection.busIsHere) return
    for (const topic of this.#feeds.keys()) {
      this.#connection.end(topic)
      for (let count = 0; count < AHEAD; count++) this.#connection.ask(topic)
    }
  }

  #take({ topic, header, payload }) {
    const feed = this.#feeds.get(topic)
    if (!feed) return
    if (header.error) {
      if (isCrowded(header.error)) {
        feed.views.forEach((view) => {
          view.standsInUntil = performance.now() + STAND_IN
          this.#choose(view)
        })
        if (this.#feeds.get(topic) !== feed) return
      }
      feed.views.forEach((view) => view.failed(header.error))
      return this.#askLater(topic, feed)
    }
    if (feed.isDecoding) {
      // The newer one is the one to see; the other is made good for by the next.
      if (feed.next) this.#connection.ask(topic)
      feed.next = { header, payload }
    } else this.#decode(topic, feed, header, payload)
  }

  // A refusal may be there at once each time: it is looked at again as often as a bus tells it. All that was asked for counts as
  // refused by the first one.
  #askLater(topic, feed) {
    feed.again ??= setTimeout(() => {
      feed.again = null
      if (this.#feeds.get(topic) === feed) this.#connection.ask(topic)
    }, REFUSED_AGAIN)
  }

  async #decode(topic, feed, header, payload) {
    feed.isDecoding = true
    try {
      const bitmap = await createImageBitmap(new Blob([payload], { type: "image/jpeg" }))
      let isShown = false
      for (const view of feed.views) {
        const mine = isShown ? await createImageBitmap(bitmap) : bitmap
        isShown = true
        view.last?.bitmap.close()
        view.last = { bitmap: mine, header }
        draw(view, mine, header)
        view.shown(header)
      }
      if (!isShown) bitmap.close()
    } catch {
      // A damaged picture: the next one is as good.
    }
    feed.isDecoding = false
    if (this.#feeds.get(topic) !== feed) return
    this.#connection.ask(topic)
    const next = feed.next
    feed.next = null
    if (next) this.#decode(topic, feed, next.header, next.payload)
  }
}

/** The canvas has the turned picture's own pixels; CSS fits it in. */
function draw(view, bitmap) {
  const { rotation, mirrored } = view.lies()
  const lies = rotation % 180 === 0
  const { canvas } = view
  const width = lies ? bitmap.width : bitmap.height
  const height = lies ? bitmap.height : bitmap.width
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height })
  const context = canvas.getContext("2d", { alpha: false })
  context.setTransform(mirrored ? -1 : 1, 0, 0, 1, width / 2, height / 2)
  // On a canvas that is mirrored the turn comes first all the same: what is written last is done first.
  context.transform(...{ 0: [1, 0, 0, 1], 90: [0, 1, -1, 0], 180: [-1, 0, 0, -1], 270: [0, -1, 1, 0] }[rotation], 0, 0)
  context.drawImage(bitmap, -bitmap.width / 2, -bitmap.height / 2)
}

/**
 * Others have all places of the device, or a picture that is turned is not as wide as its format; the whole picture is always
 * available.
 */
const isCrowded = ({ reason, data }) =>
  (reason === "limitExceeded" && data?.limit === "renditions") || (reason === "formatUnsupported" && data?.nearest)

/** The topic whose picture is as wide as it is seen, or the device's own where that is no wider. */
export function topic(view, device) {
  const rate = view.rate ? `@${view.rate}` : ""
  const format = device?.activeFormat
  const { clientWidth, clientHeight } = view.canvas
  if (!device || clientWidth === 0) return null
  if (view.standsInUntil > performance.now()) return `frame/${device.id}/jpeg/`
  let size = ""
  if (format) {
    const lies = view.lies().rotation % 180 === 0
    const across = (lies ? clientWidth : clientHeight) / format.width
    const down = (lies ? clientHeight : clientWidth) / format.height
    const scale = view.lies().gravity === "resizeAspectFill" ? Math.max(across, down) : Math.min(across, down)
    // A step that is nearly wide enough is: nobody sees the difference, and the device encodes half.
    const wanted = 0.85 * scale * format.width * Math.min(devicePixelRatio, 2)
    const width = WIDTHS.find((width) => width >= wanted)
    if (width && width < format.width) size = `:${width}x0`
  }
  // A JPEG camera's own picture is passed on as it is, and the bus's zoom isn't in it.
  const isZoomed = size === "" && (device.controls?.digital_zoom ?? 1000) > 1000
  return `frame/${device.id}/jpeg${size}${rate}${isZoomed ? ";q=80" : ""}/`
}
