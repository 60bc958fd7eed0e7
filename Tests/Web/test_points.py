# SPDX-License-Identifier: Apache-2.0
"""Where points lie, by the protocol's own cases, in the page's module as the browser has it."""

from __future__ import annotations

import json

import rig


class Points(rig.WebTestCase):
    def test_every_case(self) -> None:
        cases = [
            case
            for case in json.loads((rig.ROOT / "Protocol" / "vectors" / "points.json").read_text())["cases"]
            if case["valid"]
        ]
        self.page.open(self.rig.address)
        self.page.wait("document.readyState === 'complete'")
        answers = self.page.evaluate(
            f"""import("/page/points.js").then(({{ PreviewLayout }}) => {json.dumps(cases)}.map((each) => {{
                const layout = new PreviewLayout(each)
                return {{
                    toDevice: (each.toDevice ?? []).map(({{ view }}) => layout.devicePoint(view)),
                    toView: (each.toView ?? []).map(({{ device }}) => layout.viewPoint(device)),
                }}
            }}))"""
        )
        count = 0
        for case, answer in zip(cases, answers, strict=True):
            for way, member in (("toDevice", "device"), ("toView", "view")):
                for wanted, given in zip(case.get(way, []), answer[way], strict=True):
                    count += 1
                    with self.subTest(case["name"], way=way, point=wanted):
                        if wanted[member] is None:
                            self.assertIsNone(given)
                        else:
                            self.assertIsNotNone(given)
                            self.assertAlmostEqual(given["x"], wanted[member]["x"], 6)
                            self.assertAlmostEqual(given["y"], wanted[member]["y"], 6)
        self.assertGreater(count, 20)
