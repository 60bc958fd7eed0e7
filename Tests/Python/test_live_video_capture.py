"""cv2.VideoCapture's place on a real bus."""

from __future__ import annotations

import unittest

from camerabus import VideoCapture, video_capture as cv
from live import TIMEOUT, LiveTestCase

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


@unittest.skipIf(numpy is None, "no NumPy")
class LiveVideoCapture(LiveTestCase):
    def test_a_program_for_opencv_reads_and_sets_a_camera(self) -> None:
        before = self.client.device(self.first).activeFormat
        assert before is not None
        capture = VideoCapture(self.first, timeout=TIMEOUT)
        self.addCleanup(capture.release)
        self.assertTrue(capture.isOpened(), capture.error)
        good, image = capture.read()
        self.assertTrue(good, capture.error)
        self.assertEqual(image.shape, (before.height, before.width, 3))
        self.assertTrue(image.flags.writeable)

        self.assertTrue(capture.set(cv.CAP_PROP_FRAME_WIDTH, 640))
        self.assertTrue(capture.set(cv.CAP_PROP_FRAME_HEIGHT, 360), capture.error)
        size = (capture.get(cv.CAP_PROP_FRAME_HEIGHT), capture.get(cv.CAP_PROP_FRAME_WIDTH))
        good, image = capture.read()
        self.assertTrue(good, capture.error)
        self.assertEqual(image.shape, (*size, 3))

        brightness = capture.get(cv.CAP_PROP_BRIGHTNESS)
        self.assertTrue(capture.set(cv.CAP_PROP_BRIGHTNESS, brightness + 1), capture.error)
        self.assertEqual(capture.get(cv.CAP_PROP_BRIGHTNESS), brightness + 1)
        self.assertTrue(capture.set(cv.CAP_PROP_BRIGHTNESS, brightness))
        capture.release()
        with self.client.lock(self.first):
            self.client.configure(self.first, activeFormat=before.id)

    def test_two_programs_have_one_camera(self) -> None:
        one, two = (VideoCapture(self.first, timeout=TIMEOUT) for _ in range(2))
        self.addCleanup(one.release)
        self.addCleanup(two.release)
        for capture in (one, two, one):
            self.assertTrue(capture.read()[0], capture.error)
        with self.client.lock(self.first):
            self.assertFalse(two.set(cv.CAP_PROP_FPS, 15))
        self.assertTrue(two.read()[0], two.error)


if __name__ == "__main__":
    unittest.main()
