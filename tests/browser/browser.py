"""People at a browser: Debian's chromium, driven by Playwright. What a page complains of fails its test."""

import os
import pathlib
import shutil
import unittest

from playwright.sync_api import expect, sync_playwright

from system import ROOT, System

CHROMIUM = os.environ.get("JARI_CHROMIUM") or shutil.which("chromium")
PICTURES = pathlib.Path(os.environ.get("JARI_PICTURES", ROOT / "target" / "browser"))
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 800}
WAIT_MS = 20_000

# What browsers write into the console when an answer is an expected refusal or the network is cut.
EXPECTED = ("Failed to load resource", "WebSocket connection to")

expect.set_options(timeout=WAIT_MS)


class BrowserTest(unittest.TestCase):
    """Tests of one class share a browser; each has a context, so storage, of its own."""

    @classmethod
    def setUpClass(cls):
        cls.system = System(os.environ["JARI_TEST_DATA"])
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        cls.chromium = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        cls.addClassCleanup(cls.chromium.close)

    def setUp(self):
        self.complaints = []
        self.addCleanup(self._complain)

    def _complain(self):
        self.assertEqual(self.complaints, [], "the page complained")

    def person(self, locale="ko-KR", size=PHONE, dark=False, **options):
        """A browser of somebody's own."""
        scheme = "dark" if dark else "light"
        context = self.chromium.new_context(viewport=size, locale=locale, color_scheme=scheme, **options)
        self.addCleanup(context.close)
        context.set_default_timeout(WAIT_MS)
        context.on("console", self._heard)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        return context

    def _heard(self, message):
        if message.type in ("error", "warning") and not message.text.startswith(EXPECTED):
            self.complaints.append(message.text)

    def open(self, sale, context=None, **options):
        """Somebody's page of the sale."""
        page = (context or self.person(**options)).new_page()
        page.goto(sale.page)
        return page

    def let_in(self, sale, **options):
        """Somebody's page once they are let in."""
        page = self.open(sale, **options)
        expect(page.locator(".turn-head")).to_be_visible()
        return page

    def at_seats(self, sale, section=0, **options):
        """Somebody's page that shows the seats of the first train."""
        page = self.let_in(sale, **options)
        page.locator(".offering").first.locator(".section").nth(section).click()
        expect(page.locator(".stage-head")).to_be_visible()
        return page


def heading(page):
    return page.get_by_role("heading", level=1)


def seat(page, name):
    return page.locator(f'.seat[data-seat="{name}"]')


def token_of(page):
    """What the browser keeps of its place in the only sale it has visited."""
    return page.evaluate("""() => {
      const key = Object.keys(localStorage).find((name) => name.startsWith("jari::"));
      return key ? JSON.parse(localStorage[key]).token : null;
    }""")


def picture(what, name):
    """Keeps how a page, or a part of it, looks."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    what.screenshot(path=PICTURES / f"{name}.png", animations="disabled")
