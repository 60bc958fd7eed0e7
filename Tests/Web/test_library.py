# SPDX-License-Identifier: Apache-2.0
"""The page of what was recorded."""

from __future__ import annotations

import json

import rig


class Library(rig.WebTestCase):
    def test_the_library_shows_a_long_list(self) -> None:
        entries = self.rig.runtime / "state" / "library" / "entries"
        # A page sees what its own user has recorded.
        self.open_camera("cam0")
        self.page.key("p")
        self.page.wait("document.querySelector('.notice.good a')")
        owner = self.client.call("library.list", {"limit": 1})["entries"][0]["owner"]
        for number in range(10_000):
            entry = {
                "id": f"many-{number}", "kind": "movie", "path": f"2026-11-22/many-{number}.mp4", "state": "finished",
                "reason": "stopped", "devices": [{"device": "cam0", "uniqueID": "virtual-0"}], "started": number + 1,
                "duration": 1500, "size": 7, "fileType": "mp4", "owner": owner,
            }
            file = entries / f"many-{number}.json"
            file.write_text(json.dumps(entry))
            self.addCleanup(file.unlink, missing_ok=True)
        self.page.key("l")
        # As many as a page can show: the newest thousand, without what other tests have recorded.
        shown = 0
        while shown < 1000:
            self.page.wait(f"document.querySelectorAll('.shelf [data-entry]').length > {shown}")
            shown = self.page.evaluate("document.querySelectorAll('.shelf [data-entry]').length")
            if shown < 1000:
                self.page.evaluate(
                    "[...document.querySelectorAll('button')].find((each) => each.textContent === 'More').click()"
                )
        self.page.wait("document.querySelector('.shelf [data-entry=\"many-9999\"]')")

    def test_the_library_lists_and_deletes(self) -> None:
        self.open_camera("cam2")
        self.page.key("p")
        self.page.wait("document.querySelector('.notice.good a')")
        entry = self.page.evaluate("document.querySelector('.notice.good a').getAttribute('href')").split("/")[2]
        self.page.key("l")
        item = f"[data-entry=\\\"{entry}\\\"]"
        self.page.wait(f"document.querySelector(\"{item} img.loaded\")")
        self.page.evaluate(f"document.querySelector(\"{item} .delete\").click()")
        self.page.wait("document.querySelector('dialog.question').open")
        # Escape is the dialog's: it closes that, and leaves the page where it is.
        self.page.key("Escape")
        self.page.wait("!document.querySelector('dialog.question[open]') && location.hash === '#/library'")
        # So does the way back, which leaves what was asked about as it is.
        self.page.evaluate(f"document.querySelector(\"{item} .delete\").click()")
        self.page.wait("document.querySelector('dialog.question').open")
        self.page.evaluate("history.back()")
        self.page.wait("!document.querySelector('dialog') && location.hash !== '#/library'")
        self.page.key("l")
        self.page.wait(f"document.querySelector(\"{item} img.loaded\")")
        self.page.evaluate(f"document.querySelector(\"{item} .delete\").click()")
        self.page.wait("document.querySelector('dialog.question').open")
        self.page.evaluate(
            "[...document.querySelectorAll('dialog.question button')].find((each) => each.textContent === "
            "'Delete').click()"
        )
        self.page.wait(f"!document.querySelector(\"{item}\")")
        self.assertNotIn(entry, [each["id"] for each in self.client.call("library.list")["entries"]])
