# SPDX-License-Identifier: Apache-2.0
"""Where a point of a view lies in the camera's picture, and the other way round: no bus is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Gravity = Literal["resizeAspect", "resizeAspectFill", "resize"]

_ORIENTATIONS: Final = {
    "portrait": "portrait",
    "portraitUpsideDown": "portraitUpsideDown",
    # A device that is turned to the left has its camera turned to the right.
    "landscapeLeft": "landscapeRight",
    "landscapeRight": "landscapeLeft",
}


def video_orientation(device_orientation: str) -> str:
    """The videoOrientation of a device that is held so; `landscapeRight` for one that is not known (`faceUp`,
    `unknown`, …).
    """
    return _ORIENTATIONS.get(device_orientation, "landscapeRight")


@dataclass(frozen=True, slots=True)
class PreviewLayout:
    """How a picture is shown in a view: turned clockwise by `rotation` (0, 90, 180, 270), then mirrored, then fitted
    in.

    `picture` is the size of the camera's own picture, before it is turned. Points of it go from (0, 0), its top left,
    to (1, 1); those of the view are in its own units. `zoom` is how many times its middle is enlarged in what is shown
    (`Frame.zoom`).
    """

    view: tuple[float, float]
    picture: tuple[float, float]
    gravity: Gravity = "resizeAspectFill"
    rotation: int = 0
    mirrored: bool = False
    zoom: float = 1

    def __post_init__(self) -> None:
        if self.rotation not in (0, 90, 180, 270):
            raise ValueError(f"The rotation is 0, 90, 180 or 270 degrees, not {self.rotation}.")
        if self.gravity not in ("resizeAspect", "resizeAspectFill", "resize"):
            raise ValueError(f"There is no gravity {self.gravity!r}.")
        if not all(0 < side < float("inf") for side in (*self.view, *self.picture)):
            raise ValueError("The sizes of view and picture must be greater than 0.")
        if not 1 <= self.zoom < float("inf"):
            raise ValueError(f"The zoom is 1 or more, not {self.zoom}.")

    def _frame(self) -> tuple[float, float, float, float]:
        """Where the turned picture lies in the view: left, top, width, height."""
        width, height = self.picture if self.rotation % 180 == 0 else self.picture[::-1]
        across, down = self.view[0] / width, self.view[1] / height
        if self.gravity != "resize":
            across = down = (min if self.gravity == "resizeAspect" else max)(across, down)
        width, height = width * across, height * down
        return (self.view[0] - width) / 2, (self.view[1] - height) / 2, width, height

    def device_point(self, x: float, y: float) -> tuple[float, float] | None:
        """The point of the picture that the view shows there; None outside of the picture, and of the view."""
        if not (0 <= x <= self.view[0] and 0 <= y <= self.view[1]):
            return None
        left, top, width, height = self._frame()
        x, y = (x - left) / width, (y - top) / height
        if not (0 <= x <= 1 and 0 <= y <= 1):
            return None
        if self.mirrored:
            x = 1 - x
        x, y = {0: (x, y), 90: (y, 1 - x), 180: (1 - x, 1 - y), 270: (1 - y, x)}[self.rotation]
        return 0.5 + (x - 0.5) / self.zoom, 0.5 + (y - 0.5) / self.zoom

    def view_point(self, x: float, y: float) -> tuple[float, float] | None:
        """Where the view shows a point of the picture, beyond the view's bounds if that is cut off; None outside of the
        picture.
        """
        if not (0 <= x <= 1 and 0 <= y <= 1):
            return None
        x, y = 0.5 + (x - 0.5) * self.zoom, 0.5 + (y - 0.5) * self.zoom
        x, y = {0: (x, y), 90: (1 - y, x), 180: (1 - x, 1 - y), 270: (y, 1 - x)}[self.rotation]
        if self.mirrored:
            x = 1 - x
        left, top, width, height = self._frame()
        return left + x * width, top + y * height
