// SPDX-License-Identifier: Apache-2.0
// Where a point of a view lies in the camera's picture, and the other way round: no page and no bus is asked. The rules are those
// of Protocol/vectors/points.json.

/**
 * How a picture is shown in a view: turned clockwise by `rotation` (0, 90, 180, 270), then mirrored, then fitted in by `gravity`
 * (resizeAspect, resizeAspectFill, resize).
 *
 * `picture` is the size of the camera's own picture, before it is turned. Points of it go from (0, 0), its top left, to (1, 1); those
 * of the view are in its own units. `zoom` is how many times its middle is enlarged in what is shown.
 */
export class PreviewLayout {
  constructor({ view, picture, gravity = "resizeAspect", rotation = 0, mirrored = false, zoom = 1 }) {
    Object.assign(this, { view, picture, gravity, rotation, mirrored, zoom })
  }

  /** Where the turned picture lies in the view: {left, top, width, height}. */
  get frame() {
    const lies = this.rotation % 180 === 0
    const width = lies ? this.picture.width : this.picture.height
    const height = lies ? this.picture.height : this.picture.width
    let across = this.view.width / width
    let down = this.view.height / height
    if (this.gravity !== "resize") across = down = (this.gravity === "resizeAspect" ? Math.min : Math.max)(across, down)
    return {
      left: (this.view.width - width * across) / 2,
      top: (this.view.height - height * down) / 2,
      width: width * across,
      height: height * down,
    }
  }

  /** The point of the picture that the view shows there; null outside of the picture, and of the view. */
  devicePoint({ x, y }) {
    if (!(x >= 0 && x <= this.view.width && y >= 0 && y <= this.view.height)) return null
    const { left, top, width, height } = this.frame
    x = (x - left) / width
    y = (y - top) / height
    if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1)) return null
    if (this.mirrored) x = 1 - x
    ;[x, y] = { 0: [x, y], 90: [y, 1 - x], 180: [1 - x, 1 - y], 270: [1 - y, x] }[this.rotation]
    return { x: 0.5 + (x - 0.5) / this.zoom, y: 0.5 + (y - 0.5) / this.zoom }
  }

  /** Where the view shows a point of the picture, beyond the view's bounds if that is cut off; null outside of the picture. */
  viewPoint({ x, y }) {
    if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1)) return null
    x = 0.5 + (x - 0.5) * this.zoom
    y = 0.5 + (y - 0.5) * this.zoom
    ;[x, y] = { 0: [x, y], 90: [1 - y, x], 180: [1 - x, 1 - y], 270: [y, 1 - x] }[this.rotation]
    if (this.mirrored) x = 1 - x
    const { left, top, width, height } = this.frame
    return { x: left + x * width, y: top + y * height }
  }
}

/** What a movie or photo is told so that it lies as the page shows it. */
export const ORIENTATION = { 0: "landscapeRight", 90: "portrait", 180: "landscapeLeft", 270: "portraitUpsideDown" }
