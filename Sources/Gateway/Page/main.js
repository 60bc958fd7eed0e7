// SPDX-License-Identifier: Apache-2.0
import { showCamera } from "./camera.js"
import { Connection } from "./connection.js"
import { button, element, icon } from "./elements.js"
import { showGrid } from "./grid.js"
import { showHelp } from "./help.js"
import { showLibrary } from "./library.js"
import { Locks } from "./locks.js"
import { showMicrophone } from "./microphone.js"
import { Notices } from "./notices.js"
import { Pictures } from "./pictures.js"
import { role, whyNothing } from "./rights.js"
import { State } from "./state.js"

const url = new URL("/bus", location.href)
url.protocol = url.protocol.replace("http", "ws")
const connection = new Connection(url)
const state = new State(connection)
const app = {
  connection,
  state,
  locks: new Locks(connection),
  pictures: new Pictures(connection, state),
  notices: new Notices(document.getElementById("notices")),
}

const place = document.getElementById("view")
let view = null
let shown = null

/** What the address's fragment names: so the browser's own back button goes back. */
function route() {
  const [, kind = "", name = ""] = location.hash.split("/")
  const id = plain(name)
  if (kind === "camera" && id) return { show: showCamera, id }
  if (kind === "microphone" && id) return { show: showMicrophone, id }
  if (kind === "library") return { show: showLibrary, id: "" }
  return { show: showGrid, id: "" }
}

/** A part of an address as it is meant; empty for one that somebody has cut in two. */
function plain(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return ""
  }
}

function go() {
  const { show, id } = route()
  const key = show.name + id
  if (key === shown) return
  shown = key
  view?.end()
  view = show(app, id)
  place.replaceChildren(view.element)
  document.title = view.title ? `${view.title} · CameraBus` : "CameraBus"
  document.body.dataset.view = new Map([[showGrid, "grid"], [showCamera, "camera"], [showMicrophone, "microphone"], [showLibrary, "library"]]).get(show)
  scrollTo(0, 0)
}

function tellHow() {
  const status = document.getElementById("status")
  const [word, how] = !connection.isOpen ? ["Connecting …", "away"]
    : !connection.busIsHere ? ["No bus", "away"]
    : !state.isKnown ? ["Loading …", "away"]
    : role(app) === "none" ? ["No access", "view"]
    : role(app) === "view" ? ["View only", "view"] : ["Live", "live"]
  if (status.textContent !== word) status.textContent = word
  status.dataset.how = how
  leave.hidden = !connection.hello?.session
  document.body.classList.toggle("away", how === "away")
  const banner = document.getElementById("banner")
  const why = connection.isOpen && !connection.busIsHere ? "The bus does not run, so no camera is available. The page continues when the bus is back."
    : how === "view" ? whyNothing(app)
    : state.get("state/bus/")?.problems?.map(({ message }) => message).join(" ") || ""
  banner.hidden = why === ""
  banner.textContent = why
}

document.getElementById("places").append(
  element("a", { href: "#/library", class: "place" }, icon("library"), element("span", {}, "Library")),
  button("Keys and gestures", { picture: "help", class: "place" }, showHelp))

// The gateway ends what this browser has open, and the page comes back at its door.
const leave = button("Log out", { picture: "leave", class: "place", hidden: true },
  () => fetch("/logout", { method: "POST", redirect: "manual" }).then(() => location.assign("/login"), () => app.notices.say("The gateway does not answer. Try again.")))
document.getElementById("places").append(leave)

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
  // A dialog has its own keys, and Escape closes it.
  if (document.querySelector("dialog[open]")) return
  // Who types, or moves a slider with the arrows, means just that.
  if (event.target.closest("input, select, textarea") && event.key !== "Escape") return
  if (event.key === "?") showHelp()
  else if (event.key === "l") location.hash = "#/library"
  else if (!view?.key?.(event)) return
  event.preventDefault()
})

connection.addEventListener("change", tellHow)
state.watch("state/bus/", tellHow)
app.locks.addEventListener("lost", ({ detail }) => app.notices.say(`The lock of ${detail.device} is lost: its lease has expired, or another client took it over.`))
// A token that is good no more: the gateway sends the page to its door, which asks for another one.
connection.addEventListener("refused", () => fetch("/", { redirect: "manual" }).then(({ type }) => type === "opaqueredirect" && location.reload(), () => {}))
addEventListener("hashchange", () => {
  // What was asked was asked of the place that is left.
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close()
  go()
})
sessionStorage.removeItem("camerabus.begun")
connection.open()
go()
