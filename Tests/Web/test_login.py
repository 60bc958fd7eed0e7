# SPDX-License-Identifier: Apache-2.0
"""Who comes from elsewhere, with a token, as a browser brings it."""

from __future__ import annotations

import os
import stat

import rig

TOLD = "document.querySelector('.login [role=status]').textContent"


class LogIn(rig.WebTestCase):
    def test_a_browser_is_asked_once_and_notified_when_its_token_is_removed(self) -> None:
        tokens = self.rig.folder / "tokens"
        tokens.write_text("control 0123456789abcdef Ada\n")
        os.chmod(tokens, stat.S_IRUSR | stat.S_IWUSR)
        # Cookies are a host's, whatever the port: the other gateways would be shown this one's.
        self.addCleanup(self.page.call, "Network.clearBrowserCookies")
        address = self.rig.start_gateway("none", f'tokens = "{tokens}"\n')
        self.page.open(address)
        self.page.wait(f"{TOLD} === ''")
        self.log_in("0123456789abcdee")
        self.page.wait(f"{TOLD}.startsWith('This token is not valid')")
        # The browser says itself that it was refused.
        self.assertEqual([text for text in self.page.complaints() if "401" not in text], [])
        self.page.forget()
        self.log_in("0123456789abcdef")
        self.page.wait("document.querySelector('canvas[data-sequence]')")
        self.page.open(address)
        self.page.wait("document.querySelector('.status').textContent === 'Live'")
        # The browser has no token that anybody could take from it, and forgets its session when it logs out.
        cookies = self.page.call("Network.getCookies", urls=[address])["cookies"]
        self.assertEqual([cookie["httpOnly"] for cookie in cookies], [True])
        self.assertNotIn("0123456789abcdef", cookies[0]["value"])
        self.page.click("button[title='Log out']")
        self.page.wait(f"{TOLD} === ''")
        self.page.open(address)
        self.page.wait(f"{TOLD} === ''")
        self.log_in("0123456789abcdef")
        self.page.wait("document.querySelector('.status')?.textContent === 'Live'")
        # Its connection is cut off with it, which is told of as of any other.
        tokens.write_text("control fedcba9876543210 Bo\n")
        self.page.wait("document.querySelector('.status').textContent !== 'Live'")
        self.page.open(address)
        self.page.wait(f"{TOLD}.startsWith('This browser is not logged in any more')")
        self.page.forget()

    def log_in(self, token: str) -> None:
        self.page.evaluate(f"document.querySelector('[name=token]').value = '{token}'")
        self.page.click(".login button")
