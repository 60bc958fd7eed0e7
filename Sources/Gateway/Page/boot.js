// SPDX-License-Identifier: Apache-2.0
// No module, so that it is there before them: one that did not come, as the network was away for a moment, is not asked for again by
// browsers, and the page would stay empty for good.
addEventListener("error", ({ target }) => {
  if (target instanceof HTMLScriptElement) setTimeout(() => location.reload(), 1000)
}, true)
