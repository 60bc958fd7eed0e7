// SPDX-License-Identifier: Apache-2.0
import { element, icon, turnOff } from "./elements.js"
import { makeLevels } from "./levels.js"
import { MICROPHONE } from "./photos.js"
import { ORIENTATION } from "./points.js"
import { whyNothing } from "./rights.js"
import { bytes, time, who } from "./words.js"

/** Movies of one camera: begun, paused, stopped, with their time, and the sound that goes with them. */
export function makeRecord(app, id, turn) {
  const main = element("button", { type: "button", class: "shutter record", title: "Record", "aria-label": "Record", "aria-pressed": "false" }, element("i"))
  const pause = element("button", { type: "button", class: "tool", title: "Pause", "aria-label": "Pause", hidden: true }, icon("pause"))
  const clock = element("output", { class: "clock", "aria-label": "Recorded", hidden: true })
  const microphones = element("select", { "aria-label": "Microphone" })
  const levels = makeLevels(app)
  const settings = element("a", { class: "tool", title: "Microphone settings", "aria-label": "Microphone settings", hidden: true }, icon("sliders"))
  const sound = element("div", { class: "sound" }, element("div", { class: "choice" }, element("label", {}, icon("microphone"), microphones), settings), levels.element)
  let isBusy = false
  let stopped = null

  const movie = () => app.state.under("state/movie/").find((movie) => movie.device === id)

  const start = async () => {
    const microphone = microphones.value || null
    await app.connection.request("movie.start", {
      device: id, microphone,
      // A phone that sleeps, or a page that is closed, is not to end what is being recorded.
      detached: true,
      ...(turn.rotation ? { orientation: ORIENTATION[turn.rotation] } : {}), ...(turn.mirrored ? { mirrored: true } : {}),
    })
  }
  const stop = async (movie) => {
    stopped = movie.id
    tell(await app.connection.request("movie.stop", { movie: movie.id }))
  }
  const tell = ({ movie, path, duration, size, success, error }) => {
    const name = path?.split("/").pop()
    const link = name && element("a", { class: "plain", href: `/library/${encodeURIComponent(movie)}/${encodeURIComponent(name)}`, download: name }, icon("download"), "Download")
    const text = success ? `Recorded ${time(duration)}, ${bytes(size)}.` : `The recording ended: ${error?.message ?? "the file is incomplete"}`
    app.notices.say(text, { kind: success ? "good" : "failure", more: link ? [link] : [] })
  }
  const toggle = async () => {
    if (isBusy || main.ariaDisabled === "true") return
    isBusy = true
    refresh()
    try {
      const now = movie()
      if (now) await stop(now)
      else await start()
    } catch (error) {
      app.notices.fail(error)
    }
    isBusy = false
    refresh()
  }
  main.addEventListener("click", toggle)
  pause.addEventListener("click", async () => {
    const now = movie()
    if (!now || pause.ariaDisabled === "true") return
    await app.connection.request(now.state === "paused" ? "movie.resume" : "movie.pause", { movie: now.id }).catch((error) => app.notices.fail(error))
  })
  microphones.addEventListener("change", () => {
    localStorage.setItem(MICROPHONE, microphones.value)
    listen()
  })
  // One that ends by itself, for want of room or of pictures, is told as well.
  const endEvents = app.state.listen("event/movie/", (topic, event) => {
    if (event.event === "didFinishRecording" && event.movie !== stopped && shown === event.movie) tell(event)
  })
  let shown = null

  const refresh = () => {
    const now = movie()
    shown = now?.id ?? shown
    const why = whyNothing(app) ?? (app.state.device(id)?.connected === false && !now ? "The camera is not connected." : null)
    const word = now ? "Stop recording" : "Record"
    main.setAttribute("aria-label", word)
    main.plainTitle = now ? `${word}, started by ${who(now.owner)}` : word
    if (main.ariaDisabled !== "true") main.title = main.plainTitle
    main.setAttribute("aria-pressed", String(Boolean(now)))
    main.classList.toggle("busy", isBusy || now?.state === "starting" || now?.state === "finishing")
    turnOff(main, why)
    pause.hidden = !now || !["recording", "paused"].includes(now.state)
    pause.replaceChildren(icon(now?.state === "paused" ? "play" : "pause"))
    pause.setAttribute("aria-label", now?.state === "paused" ? "Continue" : "Pause")
    turnOff(pause, why)
    clock.hidden = !now
    if (now) {
      clock.textContent = [time(now.recordedDuration ?? 0), bytes(now.recordedFileSize), now.dropped > 0 && `${now.dropped} dropped`].filter(Boolean).join(" · ")
      clock.classList.toggle("paused", now.state === "paused")
      clock.title = now.waitingFor ? `Waiting for ${now.waitingFor.join(", ")}` : now.sideCarProblem ?? ""
    }
    choose()
    turnOff(microphones, whyNothing(app) ?? (now ? "Choose the microphone before you record." : null))
  }

  const listen = () => {
    levels.listen(microphones.value)
    settings.hidden = microphones.value === ""
    settings.href = `#/microphone/${encodeURIComponent(microphones.value)}`
  }
  const choose = () => {
    const there = app.state.devices("audio")
    const key = there.map(({ id, name }) => `${id} ${name}`).join()
    if (microphones.dataset.key !== key) {
      microphones.dataset.key = key
      microphones.replaceChildren(element("option", { value: "" }, "No sound"), ...there.map(({ id, name }) => element("option", { value: id }, name)))
      const last = localStorage.getItem(MICROPHONE)
      microphones.value = there.some(({ id }) => id === last) ? last : ""
      listen()
    }
    sound.hidden = there.length === 0
  }
  return {
    main, pause, clock, sound, refresh, toggle,
    end: () => {
      endEvents()
      levels.end()
    },
  }
}
