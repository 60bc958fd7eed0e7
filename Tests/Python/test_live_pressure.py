"""System pressure, as the Python client meets it on the real bus."""

from __future__ import annotations

import unittest

from camerabus import SystemPressureState
from live import LiveTestCase, TIMEOUT


class Pressure(LiveTestCase):
    def test_frames_go_on_by_themselves_when_the_pressure_has_passed(self) -> None:
        with self.client.session(self.first, preset="640x480") as session:
            topics = [f"state/session/{session.id}/", f"state/device/{self.first}/"]
            with session.frames(timeout=TIMEOUT) as frames, self.client.mirror("state/") as mirror:
                next(frames)
                self.client.call(
                    "fault.inject",
                    {"device": self.first, "fault": "pressure", "level": "shutdown", "milliseconds": 3000},
                )
                mirror.wait(lambda state: state[topics[0]]["state"] == "interrupted", TIMEOUT)
                interruption = mirror[topics[0]]["interruption"]
                if interruption is not None:  # it may have passed by now
                    self.assertEqual(interruption["reason"], "videoDeviceNotAvailableDueToSystemPressure")
                mirror.wait(lambda state: state[topics[0]]["state"] == "running", TIMEOUT)
                stream = mirror[topics[1]]["stream"]
                while next(frames).stream != stream:
                    pass

    def test_a_device_tells_what_it_is_under(self) -> None:
        self.client.call("fault.inject", {"device": self.first, "fault": "pressure", "level": "serious"})
        with self.client.mirror(f"state/device/{self.first}/") as mirror:
            mirror.wait(
                lambda state: state[f"state/device/{self.first}/"]["systemPressureState"]["level"] == "serious", TIMEOUT
            )
        state = self.client.device(self.first).systemPressureState
        assert state is not None
        self.assertEqual(state, SystemPressureState(level="serious", factors=("cameraTemperature",), raw=state.raw))
        self.client.call("fault.inject", {"device": self.first, "fault": "none"})


if __name__ == "__main__":
    unittest.main()
