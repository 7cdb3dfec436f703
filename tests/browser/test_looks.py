"""How it looks and reads: every view on a phone and a desktop, in both languages, light and dark; pictures of each are
kept. No view scrolls sideways, and axe finds nothing serious."""

import json
import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from browser import DESKTOP, PHONE, BrowserTest, heading, picture, seat
from system import ROOT

SLOW = {"perSecond": 0.001}
# Once each way: a phone in Korean in the light, a desktop in English in the dark, and crosswise.
LOOKS = [
    ("360-ko", {"size": PHONE, "locale": "ko-KR"}),
    ("desktop-en-dark", {"size": DESKTOP, "locale": "en-US", "dark": True}),
    ("360-en-dark", {"size": PHONE, "locale": "en-GB", "dark": True}),
    ("desktop-ko", {"size": DESKTOP, "locale": "ko-KR"}),
]
TITLES = [{"ko": "2026년 추석 승차권 예매", "en": "Train tickets for Chuseok 2026"},
          {"ko": "2026 가을밤 콘서트", "en": "Autumn Night Concert 2026"}]
PAYMENT = {"mode": "deferred", "dueAfterSeconds": 300, "currency": "KRW"}


class Views(BrowserTest):
    """What the classes of views share."""

    def open(self, sale, context=None, **options):
        """Whose page names the sale, as a team would have it."""
        context = context or self.person(**options)
        site = {"name": "Jari", "sales": [{"eventId": sale.event, "title": TITLES[0]}]}
        context.route("**/site.json", lambda route: route.fulfill(json=site))
        return super().open(sale, context)

    def looks(self, name, prepare):
        """Check and keep a view in each look; `prepare(options)` gives the page that shows it."""
        for look, options in LOOKS:
            with self.subTest(look):
                page = prepare(options)
                page.wait_for_function("document.fonts.status === 'loaded'")
                self.fits(page, options["size"]["width"])
                self.reads(page)
                picture(page, f"{name}-{look}")
                if page.locator(".map").count():
                    picture(page.locator(".map"), f"{name}-map-{look}")
                page.context.close()

    def fits(self, page, width):
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width, "it scrolls sideways")

    def reads(self, page):
        # The page's policy lets no script in but its own; this one comes by the debugger, not by the page.
        found = Axe().run(page).response["violations"]
        serious = [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found
                   if rule["impact"] in ("serious", "critical")]
        self.assertEqual(serious, [])


class LineLooks(Views):
    def test_choice(self):
        def prepare(options):
            page = self.person(**options).new_page()
            page.route("**/site.json", lambda route: route.fulfill(json=site))
            page.goto(self.system.url)
            expect(page.locator(".choice .badge").nth(1)).to_be_visible()
            return page

        sales = [self.system.sale(), self.system.sale(opens="+10m", preQueue="shuffle")]
        site = {"name": {"ko": "자리", "en": "Jari"}, "sales": [
            {"eventId": sale.event, "title": title} for sale, title in zip(sales, TITLES)]}
        self.looks("choice", prepare)

    def test_countdown(self):
        sale = self.system.sale(opens="+10m", preQueue="shuffle")
        sale.crowd(40)
        sale.operate("message", "1인당 4매까지 예매하실 수 있습니다.")

        def prepare(options):
            page = self.open(sale, **options)
            expect(page.locator(".draw")).to_be_visible()
            page.locator(".draw summary").click()
            page.locator(".draw button").click()
            expect(page.locator(".values code")).to_be_visible()
            return page

        self.looks("countdown", prepare)

    def test_waiting(self):
        sale = self.system.sale(admission={"perSecond": 3, "maxActive": 1000})
        sale.crowd(1500)
        sale.operate("message", "8시 30분에 임시 열차 2편이 추가됩니다.")

        def prepare(options):
            page = self.open(sale, **options)
            expect(page.locator(".wait")).to_contain_text(re.compile("[0-9]"))
            return page

        self.looks("waiting", prepare)

    def test_network(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(3)

        def prepare(options):
            page = self.open(sale, **options)
            expect(page.locator(".place")).to_be_visible()
            page.context.set_offline(True)
            expect(page.locator(".network")).to_be_visible()
            return page

        self.looks("offline", prepare)

    def test_ends(self):
        sale = self.system.sale(admission=SLOW)
        sale.operate("close")

        def over(options):
            page = self.open(sale, **options)
            expect(page.locator(".sign")).to_be_visible()
            return page

        def unknown(options):
            page = self.person(**options).new_page()
            page.goto(f"{self.system.url}/?event=no-such-sale")
            expect(page.locator(".sign")).to_be_visible()
            return page

        self.looks("over", over)
        self.looks("refused", unknown)


class ShopLooks(Views):
    def test_search(self):
        sale = self.system.sale(admission={"activeSeconds": 600})
        self.looks("search", lambda options: self.let_in(sale, **options))

    def test_train_seats(self):
        sale = self.system.sale(admission={"activeSeconds": 600})
        other = sale.let_in()
        sale.hold(other, seats=["1-1A", "1-1B", "1-3D"])
        sale.book(other)
        sale.hold(sale.let_in(), seats=["1-2C"])
        picks = iter("56" * 2)

        def prepare(options):
            page = self.at_seats(sale, **options)
            # Somebody else each time: their own two seats.
            row = next(picks)
            side = "AB" if options["locale"] == "ko-KR" else "CD"
            for letter in side:
                pick = seat(page, f"1-{row}{letter}")
                pick.click()
                expect(pick).to_have_attribute("data-state", "mine")
            return page

        self.looks("train-seats", prepare)

    def test_hall_seats(self):
        sections = [{"id": "R", "name": "R석", "price": 165000, "seats": [{"rows": "A-K", "seats": "1-48"}]},
                    {"id": "S", "name": "S석", "price": 132000, "seats": [
                        {"prefix": "E-", "rows": "1-20", "seats": "1-36"}, {"prefix": "W-", "rows": "1-20", "seats": "1-36"}]},
                    {"id": "standing", "name": "스탠딩", "price": 143000, "capacity": 2000}]
        offerings = [{"id": "C1", "date": "2026-10-10", "venue": "올림픽공원 체조경기장", "city": "서울", "starts": "18:00",
                      "ages": "만 7세 이상", "sections": sections}]
        sale = self.system.sale(offerings=offerings, limitPerAccount=40, admission={"activeSeconds": 600},
                                default={"offeringId": "C1", "sectionId": "standing"})
        other = sale.let_in()
        sale.hold(other, offeringId="C1", sectionId="R", best=30)
        sale.book(other)

        def prepare(options):
            page = self.at_seats(sale, **options)
            page.locator(".together .primary").click()
            expect(page.locator(".basket")).to_be_visible()
            return page

        self.looks("hall-seats", prepare)
        page = self.let_in(sale)
        expect(page.locator(".offering")).to_be_visible()
        picture(page, "performances-360-ko")

    def test_reservation(self):
        sale = self.system.sale(payment=PAYMENT)

        def prepare(options):
            page = self.at_seats(sale, section=1, **options)
            page.locator(".together .primary").click()
            page.locator(".basket .book").click()
            picture(page, f"confirm-{options['locale']}")
            self.reads(page)
            page.locator(".dialog .primary").click()
            expect(page.locator(".ticket code")).to_be_visible()
            return page

        self.looks("reservation", prepare)


class Languages(BrowserTest):
    def title_in(self, locale, route=None):
        sale = self.system.sale(admission=SLOW)
        page = self.person(locale=locale).new_page()
        if route:
            page.route(*route)
        page.goto(sale.page)
        expect(page.locator(".place")).to_be_visible()
        return heading(page).text_content(), page.evaluate("document.documentElement.lang")

    def test_the_browser_chooses(self):
        self.assertEqual(self.title_in("ko-KR"), ("순서를 기다리고 있습니다", "ko"))
        self.assertEqual(self.title_in("en-AU"), ("You are in line", "en"))
        self.assertEqual(self.title_in("fi-FI"), ("You are in line", "en"))

    def test_a_third_language_is_one_more_file(self):
        words = (ROOT / "web" / "lang" / "en.js").read_text().replace("You are in line", "順番をお待ちください")
        route = ("**/lang/ja.js", lambda route: route.fulfill(body=words, content_type="text/javascript"))
        self.assertEqual(self.title_in("ja-JP", route), ("順番をお待ちください", "ja"))

    def test_the_choice_of_a_person_is_kept(self):
        sale = self.system.sale(admission=SLOW)
        page = self.open(sale)
        asked = []
        page.on("request", lambda request: asked.append((request.url, request.headers.get("accept-language"))))
        page.get_by_role("button", name="English").click()
        expect(heading(page)).to_have_text("You are in line")
        page.reload()
        expect(heading(page)).to_have_text("You are in line")
        self.assertEqual({language for url, language in asked if "rejoin" in url}, {"en"})

    def test_both_languages_say_the_same_things(self):
        page = self.open(self.system.sale(admission=SLOW))
        korean, english, used = page.evaluate("""async () => {
          const keys = async (tag) => Object.entries((await import(`/lang/${tag}.js`)).default).map(([key]) => key).sort();
          const text = await Promise.all(performance.getEntriesByType("resource")
            .filter(({ name }) => name.includes("/app")).map(async ({ name }) => (await fetch(name)).text()));
          const used = [...text.join("").matchAll(/\\bt\\("(\\w+)"/g)].map(([, key]) => key);
          return [await keys("ko"), await keys("en"), [...new Set(used)]];
        }""")
        # What only one language needs: how it writes an amount.
        self.assertEqual([key for key in korean if not key.startswith("money_")], english)
        self.assertGreater(len(used), 60)
        self.assertEqual([key for key in used if key not in english], [])


class Policy(BrowserTest):
    def test_no_script_or_style_but_the_page_s_own(self):
        page = self.open(self.system.sale(admission=SLOW))
        expect(page.locator(".place")).to_be_visible()
        ran = page.evaluate("""async () => {
          const refused = [];
          document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
          const script = document.createElement("script");
          const attempt = (work) => { try { work(); } catch { refused.push("trusted types"); } };
          attempt(() => { script.textContent = "window.ran = true"; document.head.append(script); });
          attempt(() => { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = true'>"); });
          const style = document.createElement("style");
          style.textContent = "body { display: none }";
          document.head.append(style);
          await fetch("https://example.org/").catch(() => {});
          await new Promise((resolve) => setTimeout(resolve, 200));
          return [Boolean(window.ran), getComputedStyle(document.body).display, refused.sort()];
        }""")
        self.assertFalse(ran[0])
        self.assertEqual(ran[1], "flex")
        self.assertTrue({"connect-src", "style-src-elem", "trusted types"} <= set(ran[2]), ran[2])
        # That is what was provoked.
        self.complaints.clear()

    def test_every_module_is_asked_for_at_once(self):
        web = ROOT / "web"
        asked = set(re.findall(r'modulepreload" href="([^"]+)"', (web / "index.html").read_text()))
        modules = {str(file.relative_to(web)) for file in web.rglob("*.js")} - {"app.js", "jari/timer-worker.js"}
        self.assertEqual(asked, {module for module in modules if not module.startswith("lang/")})

    def test_the_shipped_sales_are_named_as_in_their_files(self):
        site = json.loads((ROOT / "web" / "site.json").read_text())
        named = {sale["eventId"]: (sale["title"]["ko"], sale["currency"]) for sale in site["sales"]}
        files = [json.loads(file.read_text()) for file in (ROOT / "infra" / "sales").glob("*-2026*.json")]
        self.assertEqual(named, {sale["eventId"]: (sale["title"], sale["payment"]["currency"]) for sale in files})
