// SPDX-License-Identifier: Apache-2.0
import { button, element, icon, turnOff } from "./elements.js"
import { whyNothing } from "./rights.js"
import { bytes, ignorance, time } from "./words.js"

const PAGE = 60

/** What was recorded: looked at, fetched, deleted. */
export function showLibrary(app) {
  const list = element("div", { class: "shelf", role: "list" })
  const empty = element("p", { class: "empty", role: "status" }, "Loading …")
  const more = button("More", { class: "plain", hidden: true }, () => load(limit + PAGE))
  const kind = element("select", { "aria-label": "Kind", on: { change: () => load(PAGE) } },
    ...[["", "Everything"], ["movie", "Movies"], ["photo", "Photos"], ["take", "Takes"]].map(([value, text]) => element("option", { value }, text)))
  const place = element("section", { class: "library" },
    element("div", { class: "heading" }, element("a", { href: "#/", class: "tool", title: "All cameras", "aria-label": "All cameras" }, icon("back")), element("h1", {}, "Library"), kind),
    empty, list, more)
  const items = new Map()
  let limit = PAGE
  let round = 0

  const load = async (count = limit) => {
    limit = count
    const mine = ++round
    const why = ignorance(app)
    if (why) {
      empty.textContent = why
      empty.hidden = items.size > 0
      return
    }
    try {
      const answer = await app.connection.request("library.list", { limit: Math.min(limit, 1000), ...(kind.value ? { kind: kind.value } : {}) })
      if (mine !== round) return
      show(answer.entries)
      more.hidden = !answer.more || limit >= 1000
      empty.textContent = answer.entries.length === 0 ? "Nothing has been recorded yet." : ""
    } catch (error) {
      if (mine === round) empty.textContent = (error.reason === "unauthorized" && whyNothing(app)) || error.message
    }
    empty.hidden = empty.textContent === ""
  }

  const show = (entries) => {
    // What is there stays as it is: a film that plays goes on playing when another one ends.
    const wanted = entries.map((entry) => `${entry.id} ${entry.state} ${entry.size}`)
    for (const [key, item] of items) if (!wanted.includes(key)) (item.remove(), items.delete(key))
    entries.forEach((entry, index) => {
      const key = wanted[index]
      if (!items.has(key)) items.set(key, makeItem(app, entry, load))
      if (list.children[index] !== items.get(key)) list.insertBefore(items.get(key), list.children[index] ?? null)
    })
    refresh()
  }
  const refresh = () => {
    const why = whyNothing(app)
    for (const item of items.values()) turnOff(item.querySelector(".delete"), why)
  }

  let wasKnown = false
  const ends = [
    app.state.watch("state/bus/", () => {
      if (app.state.isKnown !== wasKnown || !wasKnown) load()
      wasKnown = app.state.isKnown
      refresh()
    }),
    ...["event/movie/", "event/photo/", "event/take/"].map((prefix) => app.state.listen(prefix, (topic, { event }) => {
      if (/^did(Finish|Start)/.test(event)) load()
    })),
  ]
  return {
    element: place, title: "Library",
    key: ({ key }) => key === "Escape" && ((location.hash = "#/"), true),
    end: () => ends.forEach((end) => end()),
  }
}

const STATES = {
  recording: "being recorded", recovered: "recovered: can be played up to its last complete part", damaged: "damaged", missing: "the file is missing",
}

function makeItem(app, entry, load) {
  const file = (path) => path && { name: path.split("/").pop(), url: `/library/${encodeURIComponent(entry.id)}/${encodeURIComponent(path.split("/").pop())}` }
  const main = file(entry.path)
  const devices = (entry.devices ?? []).map(({ name, device }) => name ?? device).join(", ")
  const when = new Date(entry.started / 1e6)
  const size = entry.photo ? `${entry.photo.width} × ${entry.photo.height}` : entry.duration ? time(entry.duration) : null
  const remove = button("Delete", { picture: "delete", class: "tool delete" }, async () => {
    if (remove.ariaDisabled === "true") return
    if (!(await confirmed(`Delete ${main?.name ?? "this"}? This can't be undone.`))) return
    await app.connection.request("library.delete", { id: entry.id }).catch((error) => app.notices.fail(error))
    load()
  })
  const link = (file, label) => file && element("a", { class: "tool", href: file.url, download: file.name, title: label, "aria-label": label }, icon("download"))
  return element("article", { class: "entry", role: "listitem", "data-entry": entry.id },
    preview(entry, main, file(entry.cover)),
    element("div", { class: "about" },
      element("strong", {}, main?.name ?? entry.id),
      element("span", {}, [devices, size, bytes(entry.size)].filter(Boolean).join(" · ")),
      element("time", { dateTime: when.toISOString() }, when.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })),
      entry.state === "finished" ? null : element("span", { class: "state", title: entry.problem ?? "" }, STATES[entry.state] ?? entry.state)),
    element("div", { class: "acts" },
      entry.state === "missing" ? null : link(main, `Download ${main?.name}`), link(file(entry.movie), "Download its movie"), remove))
}

// The file itself is the preview: nothing else is made or kept for it.
function preview(entry, main, cover) {
  const place = element("div", { class: "preview" }, icon(entry.kind === "photo" ? "photo" : "film"))
  if (!main || entry.state === "missing" || entry.state === "recording") return place
  if (entry.kind === "photo" && !["dng", "tiff"].includes(entry.fileType) || cover) {
    const image = element("img", { loading: "lazy", alt: "", src: cover?.url ?? main.url, on: { load: () => image.classList.add("loaded"), error: () => image.remove() } })
    place.append(element("a", { href: (cover ?? main).url, download: main.name, tabIndex: -1 }, image))
  } else if (entry.video && ["h264"].includes(entry.video.codec)) {
    const video = element("video", { preload: "metadata", muted: true, controls: true, playsInline: true, src: main.url, "aria-label": main.name,
      on: { loadeddata: () => video.classList.add("loaded"), error: () => video.remove() } })
    place.append(video)
  }
  return place
}

function confirmed(question) {
  return new Promise((resolve) => {
    const dialog = element("dialog", { class: "question", on: { close: () => (dialog.remove(), resolve(dialog.returnValue === "yes")) } },
      element("p", {}, question),
      element("div", { class: "buttons" }, button("Keep", { class: "plain" }, () => dialog.close("no")), button("Delete", { class: "plain danger" }, () => dialog.close("yes"))))
    document.body.append(dialog)
    dialog.showModal()
  })
}
