# SPDX-License-Identifier: Apache-2.0
"""The numbers for Prometheus, as Prometheus's own reader sees them."""

from __future__ import annotations

import unittest
import urllib.request
from collections import Counter

import rig


class Metrics(unittest.TestCase):
    def setUp(self) -> None:
        self.rig = rig.rig()
        # So that there is something to be counted, a rendition too.
        with urllib.request.urlopen(f"{self.rig.address}camera/cam0.jpg?width=320") as picture:
            self.assertEqual(picture.status, 200)
        with urllib.request.urlopen(f"{self.rig.address}metrics") as answer:
            self.kind = answer.headers["Content-Type"]
            self.text = answer.read().decode()

    def test_each_number_is_of_a_family_that_is_described_once(self) -> None:
        self.assertEqual(self.kind, "text/plain; version=0.0.4; charset=utf-8")
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            raise unittest.SkipTest("no python3-prometheus-client")
        families = list(text_string_to_metric_families(self.text))
        samples = [sample for family in families for sample in family.samples]
        self.assertEqual(
            [name for name, count in Counter(family.name for family in families).items() if count > 1], [],
            "families that are torn apart",
        )
        self.assertEqual(
            [
                each
                for each, count in Counter(
                    (name, tuple(sorted(labels.items()))) for name, labels, *_ in samples
                ).items()
                if count > 1
            ],
            [],
        )
        for family in families:
            self.assertTrue(family.name.startswith("camerabus_"), family.name)
            self.assertIn(family.type, ("counter", "gauge", "histogram", "summary"), family.name)
            self.assertNotEqual(family.documentation, "", family.name)
        values = {(name, labels.get("device")): value for name, labels, value, *_ in samples}
        self.assertEqual((values["camerabus_up", None], values["camerabus_device_connected", "cam0"]), (1, 1))
        self.assertGreater(values["camerabus_gateway_web_requests_total", None], 0)
