// SPDX-License-Identifier: Apache-2.0
import { button, element, icon, turnOff } from "./elements.js"
import { ORIENTATION } from "./points.js"
import { whyNothing } from "./rights.js"
import { bytes } from "./words.js"

/** The microphone that was chosen last, for movies and live photos. */
export const MICROPHONE = "camerabus.microphone"

/** What the sessions of live photos are called. */
const LIVE = "live photos"

/** Photos of one camera, and live ones, with a way to have them here. */
export function makePhotos(app, id, turn) {
  const main = button("Photo", { picture: "photo", class: "shutter photo" }, () => capture())
  const live = button("Live photo: with a movie of the seconds around it", { picture: "live", class: "tool", "aria-pressed": "false" }, () => toggle())
  let session = null
  let isMine = false
  let isMaking = false
  let isOver = false
  let isSeen = false
  let dropped = null

  // What a page left behind that could say nothing any more and was opened again, or what another one has on.
  const found = () => app.state.under("state/session/").find(({ id: session, name, owner, inputs }) =>
    session !== dropped && name === LIVE && owner.name === app.connection.hello?.name && inputs.some(({ device }) => device === id))?.id ?? null

  const capture = async () => {
    if (main.ariaDisabled === "true") return
    main.classList.add("busy")
    try {
      if (session) await take({ device: id, session, settings: { livePhoto: true } })
      else {
        const settings = {
          thumbnail: true, ...(turn.rotation ? { orientation: ORIENTATION[turn.rotation] } : {}), ...(turn.mirrored ? { mirrored: true } : {}),
        }
        await take({ device: id, settings })
      }
    } catch (error) {
      app.notices.fail(error)
    }
    main.classList.remove("busy")
  }

  const take = async (request) => {
    try {
      const { photos, livePhotoMovie } = await app.connection.request("photo.capture", { ...request, deliver: ["library"] })
      for (const photo of photos) tellStored(photo, livePhotoMovie)
    } catch (error) {
      // Who may not add to the library may have the picture all the same.
      if (error.reason !== "unauthorized" || error.data.needed !== "libraryAdd") throw error
      const { photos, attached, attachments } = await app.connection.request("photo.capture", { ...request, deliver: ["reply"] })
      photos.forEach((photo) => tellBlob(photo, attachments[photo.attachment], attached[photo.attachment]))
    }
  }

  const tellStored = (photo, movie) => {
    const at = (path) => [`/library/${encodeURIComponent(photo.id)}/${encodeURIComponent(path.split("/").pop())}`, path.split("/").pop()]
    const files = [at(photo.path), ...(movie?.path ? [at(movie.path)] : [])]
    say(photo, files[0][0], files)
  }
  const tellBlob = (photo, { name, contentType }, data) => {
    const url = URL.createObjectURL(new Blob([data], { type: contentType }))
    say(photo, url, [[url, name]], () => URL.revokeObjectURL(url))
  }
  const say = (photo, picture, files, gone) => {
    const thumbnail = ["jpeg", "png"].includes(photo.fileType) ? element("img", { class: "thumbnail", src: picture, alt: "The photo" }) : null
    const links = files.map(([url, name], index) =>
      element("a", { class: "plain", href: url, download: name }, icon("download"), index === 0 ? "Download" : "Movie"))
    const note = app.notices.say(`${photo.width} × ${photo.height}, ${bytes(photo.bytes)}`, { kind: "good", more: links, gone })
    if (thumbnail) note.prepend(thumbnail)
  }

  // Live photos need what was before them: a session holds it as long as the button is on.
  const toggle = async () => {
    if (live.ariaDisabled === "true" || isMaking) return
    isMaking = true
    live.classList.add("busy")
    if (session) await end()
    else await begin()
    isMaking = false
    live.classList.remove("busy")
    refresh()
  }

  const begin = async () => {
    const { connection, state } = app
    const microphone = state.devices("audio").find((each) => each.id === localStorage.getItem(MICROPHONE))?.id
    const lies = turn.rotation || turn.mirrored
      ? [{ connection: { output: "photo", videoOrientation: ORIENTATION[turn.rotation], videoMirrored: turn.mirrored } }] : []
    // A page that is left may get no word out any more: then the camera is let go of when the last page of its user has gone.
    const create = (detached) => connection.request("session.create", {
      name: LIVE, preset: "inputPriority", detached, inputs: [id, ...(microphone ? [microphone] : [])], outputs: [],
    })
    let made = null
    try {
      // Of a gateway whose process it can't see, the bus takes what is nobody's only.
      made = (await create(false).catch((error) => {
        if (error.data?.path === "detached") return create(true)
        throw error
      })).session
      await connection.request("session.configure", { session: made, actions: [{ addOutput: { type: "photo", livePhotoCaptureEnabled: true } }, ...lies] })
      await connection.request("session.start", { session: made })
      if (isOver) await drop(made)
      else [session, isMine, isSeen] = [made, true, false]
    } catch (error) {
      app.notices.fail(error)
      if (made) await drop(made)
    }
  }

  const drop = (session) => {
    dropped = session
    return app.connection.request("session.delete", { session }).catch(() => {})
  }
  const end = async () => {
    const last = session
    session = null
    if (last) await drop(last)
  }
  // Another page has its own use for one that it has begun.
  const giveBack = () => (isMine ? end() : undefined)
  app.connection.addEventListener("leave", giveBack)

  const refresh = () => {
    const device = app.state.device(id)
    const state = session && app.state.get(`state/session/${session}/`)
    // It ends with the bus, or when somebody deletes it; that it is there may be told after it was answered.
    if (state) isSeen = true
    else if (session && isSeen && app.state.isKnown) session = null
    if (!session && !isMaking && !isOver && app.state.isKnown) [session, isMine, isSeen] = [found(), false, true]
    const readiness = device?.photo?.readiness
    const why = whyNothing(app) ?? (device?.connected === false || readiness === "notReady" ? "The camera is not connected." : null)
    turnOff(main, why)
    turnOff(live, why)
    live.setAttribute("aria-pressed", String(session !== null))
    main.classList.toggle("waiting", readiness === "waitingForCapture" || readiness === "waitingForProcessing")
  }
  return {
    main, live, refresh, capture,
    end: () => {
      isOver = true
      app.connection.removeEventListener("leave", giveBack)
      return giveBack()
    },
  }
}
