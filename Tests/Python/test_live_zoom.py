"""Cameras that can't zoom, zoomed by a real bus in the pictures that it makes."""

from __future__ import annotations

import camerabus
from live import LiveTestCase

#: Columns of eight pixels, each brighter than the one before.
PICTURE = bytes(x // 8 * 30 for x in range(64)) * 48


class DigitalZoom(LiveTestCase):
    def test_frames_say_how_far_they_are_zoomed(self) -> None:
        with (
            self.client.create_source("plain", 64, 48, "gray", fps=25) as source,
            self.client.frames(source.device, rendition="gray") as made,
            self.client.frames(source.device) as native,
        ):
            controls = self.client.camera_controls(source.device)
            self.assertEqual(
                (controls["videoZoomFactor"].sources, controls["videoZoomFactor"].maximum), (("digital_zoom",), 3)
            )
            self.streaming(source.device)
            for factor, left, right in ((1, 0, 210), (2, 60, 150), (1, 0, 210)):
                self.client.set(source.device, videoZoomFactor=factor)
                self.assertTrue(source.send(PICTURE))
                frame = next(made)
                self.assertEqual(
                    (frame.zoom, frame.payload[24 * 64], frame.payload[24 * 64 + 63]), (factor, left, right)
                )
                own = next(native)
                self.assertEqual((own.zoom, bytes(own.payload)), (1, PICTURE))
            with self.assertRaises(camerabus.ControlOutOfRange):
                self.client.set(source.device, videoZoomFactor=4)
