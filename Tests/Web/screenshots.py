# SPDX-License-Identifier: Apache-2.0
"""The pictures of the page that stand in the documents."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

import rig

WIDTH, HEIGHT = 1280, 800
GRID, GAP = 350, 20


def make(rig: rig.Rig, folder: Path) -> None:
    """web-page.jpg: all cameras in the dark, one in the light with a phone beside it."""
    # Beside one another three pictures that are the same show little.
    for device, pattern in (("cam1", "Gradient"), ("cam2", "Checkerboard")):
        rig.client.call("device.set", {"device": device, "controls": {"test_pattern": pattern}})
    assert rig.browser is not None
    page = rig.browser.page(WIDTH, HEIGHT)
    parts = folder / "part.png"

    def shot(width: int, height: int, **look: bool) -> Image.Image:
        page.look(width, height, **look)
        page.wait("document.querySelector('canvas[data-sequence]')")
        page.evaluate("document.querySelectorAll('canvas').forEach((canvas) => delete canvas.dataset.sequence)")
        page.wait("[...document.querySelectorAll('canvas')].every((canvas) => canvas.dataset.sequence)")
        page.screenshot(parts)
        with Image.open(parts) as image:
            return image.convert("RGB")

    page.open(rig.address)
    page.wait("document.querySelectorAll('canvas[data-sequence]').length === 3")
    grid = shot(WIDTH, GRID)
    page.open(f"{rig.address}#/camera/cam0")
    page.wait("document.querySelector('[data-control=exposureMode]')")
    page.evaluate(
        """(() => {
            const it = document.querySelector(".sound select"); it.value = "mic0";
            it.dispatchEvent(new Event("change"))
        })()"""
    )
    page.key("r")
    page.wait("/0:0[2-9]/.test(document.querySelector('.clock').textContent)")
    camera = shot(WIDTH - 340, HEIGHT - 60, dark=False)
    phone = shot(320, HEIGHT - 60, touch=True)
    page.key("r")
    page.wait("document.querySelector('.shutter.record[aria-pressed=false]')")
    page.close()
    parts.unlink()
    whole = Image.new("RGB", (WIDTH, GRID + GAP + HEIGHT - 60), (127, 133, 140))
    whole.paste(grid, (0, 0))
    whole.paste(camera, (0, GRID + GAP))
    whole.paste(phone, (WIDTH - 320, GRID + GAP))
    whole.save(folder / "web-page.jpg", quality=84, optimize=True, progressive=True)
