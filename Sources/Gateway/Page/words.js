// SPDX-License-Identifier: Apache-2.0
// What is shown of times, sizes, names and of what keeps a camera from giving pictures.

/** 1:23, 1:02:03; of milliseconds. */
export function time(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000)
  const two = (number) => String(number).padStart(2, "0")
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}`
}

export function bytes(count) {
  if (!(count >= 1000)) return `${count ?? 0} B`
  const step = Math.min(4, Math.floor(Math.log10(count) / 3))
  const value = count / 1000 ** step
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${["B", "kB", "MB", "GB", "TB"][step]}`
}

/** `exposureTargetBias` → "Exposure target bias"; names that are words already stay. */
export function title(name) {
  const known = { ISO: "ISO", videoHDREnabled: "HDR", automaticallyAdjustsVideoHDREnabled: "Automatic HDR", videoZoomFactor: "Zoom factor", activeMaxExposureDuration: "Longest automatic exposure", sceneMode: "Scene" }
  if (known[name]) return known[name]
  const words = name.replace(/^video(?=[A-Z])/, "").replace(/Enabled$/, "").replace(/([a-z])([A-Z])/g, "$1 $2").replace(/_/g, " ").toLowerCase()
  return words[0].toUpperCase() + words.slice(1)
}

/** 1/64 s, 0.5 s. */
export function exposure(seconds) {
  return seconds > 0 && seconds < 0.3 ? `1/${Math.round(1 / seconds)} s` : `${number(seconds)} s`
}

/** As few digits as tell it apart; whole numbers are told as they are. */
export function number(value) {
  if (typeof value !== "number") return ""
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(4)))
}

export function who(holder) {
  if (!holder) return "somebody"
  return holder.pid ? `${holder.name} (process ${holder.pid})` : holder.name
}

/** Who has subscribed to a device. */
export function watcher(subscriber) {
  return subscriber.name === "camerabus-gateway" ? "The gateway, for web pages and clients on other machines," : who(subscriber)
}

const INTERRUPTIONS = {
  videoDeviceInUseByAnotherClient: "another client of the bus has configured the camera differently",
  deviceDisconnected: "the camera is not connected",
  deviceInUseByForeignProcess: "a program outside the bus uses the camera",
  audioDeviceInUseByAnotherClient: "a program outside the bus uses the microphone",
  videoDeviceNotAvailableDueToSystemPressure: "the machine is under too much pressure",
}

/** Why a session is interrupted; a reason that is not known is told by its own message. */
export function interruption({ reason, message }) {
  return INTERRUPTIONS[reason] ?? message ?? reason
}

/** Why nothing is known of any device yet, in a sentence; null: all that there is is known. */
export function ignorance({ connection, state }) {
  if (!connection.isOpen) return "Not connected to the machine with the cameras. Trying again."
  if (!connection.busIsHere) return "The bus does not run. Waiting for it."
  return state.isKnown ? null : "Loading …"
}

/** What keeps a device from working, in a sentence; null: nothing. */
export function trouble(device) {
  if (!device) return "The bus has no device with this name."
  if (!device.connected) return "Not connected. It continues when it is back."
  const pressure = device.systemPressureState
  if (pressure?.level === "shutdown") return `Stopped to protect the machine (${pressure.factors.map(title).join(", ").toLowerCase() || "pressure"}). It continues by itself.`
  if (device.worker?.state === "restarting") return "Its process is being restarted."
  if (device.worker?.state === "failed") return device.error?.message ?? "Its process does not start."
  return device.error?.message ?? null
}

/** The same of why no picture comes: what is known of the device says more than the refusal of one picture, `message`. */
export function refusal(app, id, message) {
  return ignorance(app) ?? trouble(app.state.device(id)) ?? message
}

/** A warning that doesn't keep the pictures from coming; null: none. */
export function warning(device) {
  const pressure = device?.systemPressureState
  if (pressure && ["serious", "critical"].includes(pressure.level)) {
    return `Under ${pressure.level} pressure (${pressure.factors.map(title).join(", ").toLowerCase()}): frames may be lost.`
  }
  if (device?.notRestored?.length) return `Settings could not be restored: ${device.notRestored.map(({ path, why }) => `${path} (${why})`).join(", ")}.`
  return null
}

export function format({ width, height, pixelFormat }) {
  return `${width} × ${height} ${pixelFormat}`
}

/** Of a microphone: 48 kHz, stereo. */
export function sound({ id, activeFormat }) {
  if (!activeFormat) return id
  const { rate, channels, sampleFormat } = activeFormat
  return `${id} · ${number(rate / 1000)} kHz · ${{ 1: "mono", 2: "stereo" }[channels] ?? `${channels} channels`} · ${sampleFormat}`
}

export function rate(frameRate) {
  return frameRate ? `${number(frameRate)} fps` : ""
}
