// SPDX-License-Identifier: Apache-2.0
// No module, so that it is there before them: one that did not come, as the network was away for a moment, is not asked for again by
// browsers, and the page would stay empty for good. Twice it begins anew; then somebody has to look.
{
  const TIMES = 2
  const key = "camerabus.begun"
  addEventListener("error", ({ target }) => {
    if (!(target instanceof HTMLScriptElement)) return
    const times = Number(sessionStorage.getItem(key) ?? 0)
    sessionStorage.setItem(key, String(times + 1))
    if (times < TIMES) return void setTimeout(() => location.reload(), 1000)
    document.getElementById("view").textContent = "A part of this page could not be loaded. Reload the page. If that does not help, see the log of the gateway."
  }, true)
}
