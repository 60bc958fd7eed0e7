// SPDX-License-Identifier: Apache-2.0

/** How long after a tap another one makes it two, milliseconds. */
export const DOUBLE_TAP_TIME = 300
const LONGEST_TAP = 350
const FARTHEST_MOVE = 14
const FARTHEST_SECOND = 48

/**
 * Tells taps on an element: `tapped(point)` when no second one has come, `doubleTapped(point)`, and `twoFingersTwice()`. Points are in
 * the element's own pixels. The answer ends it.
 */
export function recognize(target, { tapped, doubleTapped, twoFingersTwice }) {
  const down = new Map()
  let touch = null
  let before = null
  let timer = null

  const forget = () => {
    clearTimeout(timer)
    timer = before = null
  }

  const finish = ({ fingers, point, time }) => {
    const isSecond = before !== null && before.fingers === fingers && time - before.time <= DOUBLE_TAP_TIME + LONGEST_TAP
      && Math.hypot(point.x - before.point.x, point.y - before.point.y) <= FARTHEST_SECOND
    if (isSecond) {
      forget()
      if (fingers === 2) twoFingersTwice()
      else doubleTapped(point)
      return
    }
    forget()
    before = { fingers, point, time }
    wait(DOUBLE_TAP_TIME)
  }

  // Only when it is over is it known that one tap was all.
  const wait = (milliseconds) => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      const { fingers, point } = before
      forget()
      if (fingers === 1) tapped(point)
    }, milliseconds)
  }

  const pressed = (event) => {
    if (event.button > 0) return
    const bounds = target.getBoundingClientRect()
    const point = { x: event.clientX - bounds.left, y: event.clientY - bounds.top }
    down.set(event.pointerId, { x: event.clientX, y: event.clientY })
    // A finger that comes while the time of the second tap runs may be that one: it has the time that a tap may take.
    if (timer !== null) wait(LONGEST_TAP)
    if (down.size === 1) touch = { fingers: 1, point, time: event.timeStamp, isTap: true }
    else if (touch) {
      touch.fingers = Math.max(touch.fingers, down.size)
      touch.isTap &&= down.size === 2
    }
  }

  const moved = (event) => {
    const from = down.get(event.pointerId)
    if (touch && from && Math.hypot(event.clientX - from.x, event.clientY - from.y) > FARTHEST_MOVE) touch.isTap = false
  }

  const lifted = (event) => {
    if (!down.delete(event.pointerId) || down.size > 0 || !touch) return
    const { isTap, time } = touch
    if (isTap && event.timeStamp - time <= LONGEST_TAP) finish(touch)
    touch = null
  }

  const gone = (event) => {
    // A finger that was lifted leaves as well.
    if (down.delete(event.pointerId)) touch = null
  }

  const listeners = { pointerdown: pressed, pointermove: moved, pointerup: lifted, pointercancel: gone, pointerleave: gone }
  for (const [name, listener] of Object.entries(listeners)) target.addEventListener(name, listener)
  return () => {
    forget()
    for (const [name, listener] of Object.entries(listeners)) target.removeEventListener(name, listener)
  }
}
