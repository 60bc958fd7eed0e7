# SPDX-License-Identifier: Apache-2.0
"""How numbers are told, in the page's module as the browser has it."""

from __future__ import annotations

import rig


class Words(rig.WebTestCase):
    def test_whole_numbers_are_told_whole_and_others_short(self) -> None:
        self.page.open(self.rig.address)
        self.page.wait("document.readyState === 'complete'")
        told = self.page.evaluate(
            """import("/page/words.js").then(({ number }) =>
                [15625, 456000001, -7, 0, 29.97003, 0.0012345, null].map(number))"""
        )
        self.assertEqual(told, ["15625", "456000001", "-7", "0", "29.97", "0.001234", ""])
