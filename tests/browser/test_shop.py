"""Let in: search, seats, holds, booking, the reservation."""

import re

from playwright.sync_api import expect

from browser import DESKTOP, BrowserTest, heading, seat, token_of
from system import until


class Seats(BrowserTest):
    def test_trains_are_found_by_from_to_and_date(self):
        page = self.let_in(self.system.sale())
        expect(page.locator(".offering h2")).to_have_text(["KTX 101"])
        expect(page.locator(".offering .line")).to_have_text(re.compile("서울 08:00 → 부산 10:42"))
        expect(page.locator(".offering .section").nth(1)).to_have_text(re.compile("입석.*50,800원.*10석"))
        page.locator("#date").select_option("2027-02-06")
        expect(page.get_by_text("조건에 맞는 결과가 없습니다.")).to_be_visible()
        page.get_by_role("button", name="출발역과 도착역 바꾸기").click()
        expect(page.locator(".offering h2")).to_have_text(["KTX 102"])

    def test_of_two_people_at_one_seat_one_is_told_at_once(self):
        sale = self.system.sale()
        winner, loser = self.at_seats(sale), self.at_seats(sale)
        for page in (winner, loser):
            expect(seat(page, "1-2B")).to_have_attribute("data-state", "free")
        # The loser's page does not hear of it before its own click.
        loser.route("**/api/seats?*", lambda route: route.fulfill(status=503, body="", headers={"retry-after": "30"}))
        seat(winner, "1-2B").click()
        expect(seat(winner, "1-2B")).to_have_attribute("data-state", "mine")
        seat(loser, "1-2B").click()
        expect(loser.get_by_text("이미 선택된 좌석입니다. (1-2B)")).to_be_visible()
        expect(seat(loser, "1-2B")).to_have_attribute("data-state", "held")
        expect(loser.locator(".basket")).to_be_hidden()
        expect(winner.locator(".basket")).to_contain_text("일반실 1-2B")

    def test_what_others_do_is_seen_live(self):
        sale = self.system.sale()
        page = self.at_seats(sale)
        other = sale.let_in()
        sale.hold(other, seats=["1-3A", "1-3B"])
        expect(seat(page, "1-3A")).to_have_attribute("data-state", "held")
        expect(seat(page, "1-3A")).to_have_attribute("aria-label", "1-3A, 다른 분이 선택 중")
        expect(page.locator(".block").first).to_contain_text("22")
        sale.book(other)
        expect(seat(page, "1-3A")).to_have_attribute("data-state", "sold")
        third = sale.let_in()
        sale.hold(third, seats=["1-4A"])
        expect(seat(page, "1-4A")).to_have_attribute("data-state", "held")
        sale.call("POST", "/api/seat/cancel", {"token": third})
        expect(seat(page, "1-4A")).to_have_attribute("data-state", "free")

    def test_seats_are_picked_and_given_back_one_by_one(self):
        sale = self.system.sale()
        page = self.at_seats(sale)
        for name in ("1-1A", "1-1B"):
            seat(page, name).click()
            expect(seat(page, name)).to_have_attribute("aria-selected", "true")
        expect(page.locator(".basket .total")).to_have_text("119,600원")
        seat(page, "1-1A").click()
        expect(seat(page, "1-1A")).to_have_attribute("data-state", "free")
        expect(page.locator(".basket .total")).to_have_text("59,800원")
        page.reload()
        expect(page.locator(".basket")).to_contain_text("1-1B")
        page.get_by_role("button", name="일반실 1-1B 선택 해제").click()
        expect(page.locator(".basket")).to_be_hidden()
        until(10, "both are free", lambda: sale.progress()["remainingSeats"] == 62)

    def test_best_together_and_places_without_seats(self):
        sale = self.system.sale()
        page = self.at_seats(sale)
        page.get_by_role("button", name="한 매 늘리기").click()
        page.get_by_role("button", name="붙은 좌석 3매 자동 선택").click()
        expect(page.locator('.map .seat[data-state="mine"]')).to_have_count(3)
        page.locator(".grade").nth(1).click()
        expect(page.get_by_text("좌석 번호가 없는 구역입니다.")).to_be_visible()
        page.get_by_role("button", name="한 매 줄이기").click()
        page.get_by_role("button", name="한 매 줄이기").click()
        page.get_by_role("button", name="1매 담기").click()
        expect(page.locator(".basket li")).to_have_count(2)
        expect(page.locator(".basket .total")).to_have_text("230,200원")
        page.get_by_role("button", name="1매 담기").click()
        expect(page.get_by_text("구매 한도를 초과했습니다. 한 분당 4매까지")).to_be_visible()

    def test_a_hall_of_2000_seats_changes_only_what_differs(self):
        offerings = [{"id": "C1", "date": "2027-02-05", "venue": "홀", "starts": "19:00", "sections": [
            {"id": "A", "name": "R석", "price": 99000, "seats": [{"rows": "1-40", "seats": "1-50"}]}]}]
        sale = self.system.sale(offerings=offerings, default={"offeringId": "C1", "sectionId": "A"})
        page = self.at_seats(sale, size={"width": 1700, "height": 900})
        expect(page.locator(".map .seat")).to_have_count(40 * page.evaluate("getComputedStyle(document.querySelector('.grid')).getPropertyValue('--columns') * 1"))
        page.evaluate("""() => {
          window.touched = new Set();
          new MutationObserver((changes) => changes.forEach((change) => window.touched.add(change.target)))
            .observe(document.querySelector(".grid"), { attributes: true, childList: true, subtree: true });
        }""")
        other = sale.let_in()
        sale.hold(other, offeringId="C1", seats=["20-7"])
        expect(seat(page, "20-7")).to_have_attribute("data-state", "held")
        self.assertEqual(page.evaluate("[...window.touched].map((node) => node.dataset.seat)"), ["20-7"])

    def test_a_wide_hall_fits_a_phone_part_by_part(self):
        offerings = [{"id": "C1", "date": "2027-02-05", "venue": "홀", "starts": "19:00", "sections": [
            {"id": "A", "name": "R석", "price": 99000, "seats": [{"rows": "A-E", "seats": "1-40"}]}]}]
        sale = self.system.sale(offerings=offerings, default={"offeringId": "C1", "sectionId": "A"})
        page = self.at_seats(sale)
        expect(seat(page, "A1")).to_be_visible()
        expect(seat(page, "A30")).to_have_count(0)
        seen = page.locator(".row").first.locator(".seat").count()
        page.get_by_role("button", name="오른쪽 좌석 보기").click()
        expect(seat(page, f"A{seen + 1}")).to_be_visible()
        # By keys one walks over the edge.
        seat(page, f"A{seen + 1}").focus()
        page.keyboard.press("ArrowLeft")
        expect(seat(page, f"A{seen}")).to_be_focused()
        self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), 360)


class Booking(BrowserTest):
    PAYMENT = {"mode": "deferred", "dueAfterSeconds": 300, "currency": "KRW"}

    def booked(self, sale, **options):
        page = self.at_seats(sale, **options)
        seat(page, "2-1A" if seat(page, "2-1A").count() else "1-1A").click()
        page.get_by_role("button", name="예매하기").click()
        page.get_by_role("button", name="예매 확정").click()
        expect(heading(page)).to_have_text("예매가 완료되었습니다")
        return page

    def test_a_booking_is_shown_with_its_deadline_and_kept(self):
        sale = self.system.sale(payment=self.PAYMENT)
        page = self.booked(sale)
        expect(page.locator(".badge")).to_have_text("결제 대기")
        expect(page.locator(".due .left-time")).to_have_text(re.compile(r"^0[45]:\d\d$"))
        expect(page.locator(".ticket")).to_contain_text("일반실 1-1A")
        expect(page.locator(".ticket")).to_contain_text("KTX 101")
        expect(page.locator(".ticket")).to_contain_text("59,800원")
        reservation = page.locator(".ticket code").text_content()
        self.assertEqual(sale.poll(token_of(page))["reservationId"], reservation)
        page.reload()
        expect(page.locator(".ticket code")).to_have_text(reservation)
        expect(page.locator(".ticket")).to_contain_text("KTX 101")

    def test_a_payment_is_seen_without_a_reload(self):
        sale = self.system.sale(payment=self.PAYMENT)
        page = self.booked(sale)
        expect(page.locator(".badge")).to_have_text("결제 대기")
        sale.pay(page.locator(".ticket code").text_content(), 59_800)
        expect(page.locator(".badge")).to_have_text("결제 완료")
        expect(page.locator(".due")).to_be_hidden()

    def test_a_booking_that_is_not_paid_in_time_ends_on_screen(self):
        sale = self.system.sale(payment={**self.PAYMENT, "dueAfterSeconds": 8})
        page = self.booked(sale)
        expect(page.locator(".badge")).to_have_text("결제 기한 만료")
        expect(page.get_by_role("button", name="다시 참여하기")).to_be_visible()
        until(10, "the seat is free", lambda: sale.progress()["remainingSeats"] == 62)

    def test_a_booking_is_cancelled_and_one_can_come_again(self):
        sale = self.system.sale()
        page = self.booked(sale)
        expect(page.locator(".badge")).to_have_text("예매 확정")
        token = token_of(page)
        page.get_by_role("button", name="예매 취소").click()
        page.get_by_role("dialog").get_by_role("button", name="예매 취소").click()
        expect(heading(page)).to_have_text("예매가 취소되었습니다")
        until(10, "the seat is free", lambda: sale.progress()["remainingSeats"] == 62)
        page.get_by_role("button", name="다시 참여하기").click()
        expect(heading(page)).to_have_text("입장하셨습니다")
        self.assertNotEqual(token_of(page), token)

    def test_a_hold_ends_on_screen(self):
        sale = self.system.sale(holdSeconds=6)
        page = self.at_seats(sale)
        seat(page, "1-1A").click()
        expect(page.locator(".basket .left-time")).to_have_text(re.compile(r"^00:0[1-6]$"))
        expect(page.locator(".basket")).to_have_class(re.compile("soon"))
        expect(heading(page)).to_have_text("예매 가능 시간이 지났습니다")
        page.reload()
        expect(heading(page)).to_have_text("예매 가능 시간이 지났습니다")
        page.get_by_role("button", name="다시 줄 서기").click()
        expect(heading(page)).to_have_text("입장하셨습니다")
        expect(page.locator(".basket")).to_be_hidden()

    def test_a_session_ends_on_screen(self):
        sale = self.system.sale(admission={"activeSeconds": 15})
        page = self.let_in(sale)
        expect(page.locator(".session .left-time")).to_have_text(re.compile(r"^00:(0\d|1[0-5])$"))
        expect(heading(page)).to_have_text("예매 가능 시간이 지났습니다")

    def test_another_tab_sees_what_is_held_and_booked(self):
        sale = self.system.sale()
        context = self.person(size=DESKTOP)
        first = self.at_seats(sale, context=context)
        second = self.open(sale, context)
        expect(second.locator(".turn-head")).to_be_visible()
        seat(first, "1-1A").click()
        expect(second.locator(".basket")).to_contain_text("1-1A")
        second.get_by_role("button", name="예매하기").click()
        second.get_by_role("button", name="예매 확정").click()
        for page in (first, second):
            expect(heading(page)).to_have_text("예매가 완료되었습니다")

    def test_all_of_it_by_keyboard(self):
        sale = self.system.sale()
        page = self.let_in(sale)
        first = page.locator(".section").first
        expect(first).to_be_visible()
        self.tab_to(page, first)
        page.keyboard.press("Enter")
        expect(seat(page, "1-1A")).to_be_visible()
        self.tab_to(page, seat(page, "1-1A"))
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            page.keyboard.press(key)
        expect(seat(page, "1-2C")).to_be_focused()
        page.keyboard.press("Space")
        expect(seat(page, "1-2C")).to_have_attribute("data-state", "mine")
        self.tab_to(page, page.get_by_role("button", name="예매하기"))
        page.keyboard.press("Enter")
        confirm = page.get_by_role("button", name="예매 확정")
        self.tab_to(page, confirm)
        page.keyboard.press("Enter")
        expect(heading(page)).to_have_text("예매가 완료되었습니다")
        expect(heading(page)).to_be_focused()

    def tab_to(self, page, target):
        for _ in range(60):
            if target.evaluate("(node) => node === document.activeElement"):
                return
            page.keyboard.press("Tab")
        self.fail(f"{target} is not reached by Tab")
