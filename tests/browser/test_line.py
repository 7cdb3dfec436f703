"""The line: joining, keeping the place, the opening, being let in, what the operator does."""

import json
import re

from playwright.sync_api import expect

from browser import BrowserTest, heading, token_of
from system import until

# Nobody is let in while a test runs.
SLOW = {"perSecond": 0.001}


class Waiting(BrowserTest):
    def test_the_place_is_shown_and_a_reload_keeps_it(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(11)
        page = self.open(sale)
        expect(heading(page)).to_have_text("순서를 기다리고 있습니다")
        expect(page.locator(".place")).to_have_text(re.compile(r"^1[12]$"))
        rank, token = page.locator(".place").text_content(), token_of(page)
        expect(page.locator(".facts dd").first).to_have_text(f"{int(rank) - 1}명")
        sale.crowd(3)
        expect(page.locator(".facts dd").nth(1)).to_have_text("3명")
        for _ in range(2):
            page.reload()
            expect(page.locator(".place")).to_have_text(rank)
        self.assertEqual(token_of(page), token)
        self.assertEqual(sale.poll(token)["rank"], int(rank))

    def test_a_closed_tab_keeps_the_place(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(2)
        context = self.person()
        page = self.open(sale, context)
        expect(page.locator(".place")).to_be_visible()
        token, waiting = token_of(page), sale.progress()["totalWaiting"]
        page.close()
        page = self.open(sale, context)
        expect(page.locator(".place")).to_be_visible()
        self.assertEqual(token_of(page), token)
        self.assertEqual(sale.progress()["totalWaiting"], waiting)

    def test_leaving_asks_first_and_gives_the_place_up(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(2)
        page = self.open(sale)
        page.get_by_role("button", name="대기 취소").click()
        page.get_by_role("dialog").get_by_role("button", name="돌아가기").click()
        expect(page.locator(".place")).to_be_visible()
        token = token_of(page)
        page.get_by_role("button", name="대기 취소").click()
        page.get_by_role("dialog").get_by_role("button", name="대기 취소").click()
        expect(heading(page)).to_have_text("대기를 취소했습니다")
        self.assertEqual(sale.poll(token)["status"], "NOT_FOUND")
        # Looking at the page again is no wish to be back.
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        page.evaluate("window.dispatchEvent(new Event('online'))")
        page.wait_for_timeout(1_500)
        expect(heading(page)).to_have_text("대기를 취소했습니다")
        self.assertIsNone(token_of(page))
        page.get_by_role("button", name="다시 참여하기").click()
        expect(page.locator(".place")).to_be_visible()
        self.assertNotEqual(token_of(page), token)

    def test_an_answer_that_comes_after_leaving_brings_nobody_back(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(2)
        page = self.open(sale)
        expect(page.locator(".place")).to_be_visible()
        late = []
        page.route("**/api/status/poll*", lambda route: late.append((route, route.fetch())))
        page.evaluate("window.dispatchEvent(new Event('online'))")
        for _ in range(200):
            if late:
                break
            page.wait_for_timeout(100)
        self.assertEqual(late[0][1].json()["data"]["status"], "WAITING")
        page.get_by_role("button", name="대기 취소").click()
        page.get_by_role("dialog").get_by_role("button", name="대기 취소").click()
        expect(heading(page)).to_have_text("대기를 취소했습니다")
        for route, response in late:
            route.fulfill(response=response)
        page.wait_for_timeout(1_500)
        expect(heading(page)).to_have_text("대기를 취소했습니다")
        self.assertIsNone(token_of(page))

    def test_what_the_operator_does_is_shown(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(3)
        page = self.open(sale)
        expect(page.locator(".place")).to_be_visible()
        sale.operate("message", "8시 30분에 좌석이 추가됩니다.")
        expect(page.get_by_text("8시 30분에 좌석이 추가됩니다.")).to_be_visible()
        sale.operate("pause")
        expect(page.get_by_text("입장이 잠시 중지되었습니다.")).to_be_visible()
        sale.operate("close")
        expect(heading(page)).to_have_text("예매가 마감되었습니다")
        page.reload()
        expect(heading(page)).to_have_text("예매가 마감되었습니다")

    def test_sold_out_is_told_and_the_line_moves_on_when_seats_return(self):
        offerings = [{"id": "T1", "date": "2027-02-05", "venue": "홀", "sections": [
            {"id": "G", "name": "스탠딩", "price": 1000, "capacity": 2}]}]
        sale = self.system.sale(offerings=offerings)
        other = sale.let_in()
        booked = sale.book(other, seatCount=2)
        page = self.open(sale)
        expect(page.get_by_text("모든 좌석이 선택되었거나 판매되었습니다")).to_be_visible()
        sale.call("DELETE", f"/api/booking/{booked['reservationId']}?token={other}")
        expect(heading(page)).to_have_text("입장하셨습니다")


class Opening(BrowserTest):
    def test_a_countdown_runs_until_the_sale_opens(self):
        sale = self.system.sale(opens="+10m")
        page = self.open(sale)
        expect(heading(page)).to_have_text("예매 오픈 전입니다")
        expect(page.locator(".clock")).to_have_text(re.compile(r"^09:\d\d$"))
        first = page.locator(".clock").text_content()
        expect(page.locator(".clock")).not_to_have_text(first)
        expect(page.get_by_text("도착한 순서대로")).to_be_visible()
        expect(page.locator(".place")).to_have_count(0)
        sale.operate("open")
        expect(heading(page)).to_have_text("입장하셨습니다")
        self.assertEqual(sale.poll(token_of(page))["status"], "ACTIVE")

    def test_at_the_opening_one_gets_in_without_a_reload(self):
        sale = self.system.sale(opens="+6s")
        page = self.open(sale)
        expect(heading(page)).to_have_text("입장하셨습니다")
        self.assertGreaterEqual(page.evaluate("Date.now()"), sale.progress()["opensAt"])

    def test_a_sale_without_a_line_is_joined_at_its_opening(self):
        sale = self.system.sale(opens="+10m", preQueue="closed")
        page = self.open(sale)
        expect(page.get_by_text("오픈되면 자동으로 대기열에 들어갑니다")).to_be_visible()
        self.assertIsNone(token_of(page))
        self.assertEqual(sale.progress()["totalWaiting"], 0)
        sale.operate("open")
        expect(heading(page)).to_have_text("입장하셨습니다")

    def test_the_draw_is_secret_before_the_opening_and_good_after_it(self):
        sale = self.system.sale(opens="+10m", preQueue="shuffle", admission=SLOW)
        page = self.open(sale)
        sale.crowd(20)
        expect(page.get_by_text("무작위로 추첨합니다")).to_be_visible()
        page.get_by_text("추첨이 공정한지 확인하기").click()
        page.get_by_role("button", name="추첨 확인").click()
        expect(page.locator(".verdict")).to_contain_text("시드는 오픈할 때 공개됩니다.")
        committed = page.locator(".values code").first.text_content()
        self.assertEqual(committed, sale.progress()["shuffleCommitment"])
        sale.operate("open")
        expect(page.locator(".place")).to_be_visible()
        page.get_by_text("추첨이 공정한지 확인하기").click()
        page.get_by_role("button", name="추첨 확인").click()
        expect(page.locator(".verdict")).to_contain_text("서버의 점수와 같습니다")
        shown = page.locator(".values code").all_text_contents()
        seed, score = sale.progress()["shuffleSeed"], str(sale.poll(token_of(page))["score"])
        self.assertEqual(shown[:3] + shown[4:], [committed, seed, committed, score, score])


class Admission(BrowserTest):
    def waiting(self, sale, context):
        """A page in the line, and what it hears and asks from then on: words of pushes, and "poll"."""
        heard = []

        def followed(socket):
            socket.on("framereceived", lambda text: heard.append(json.loads(text)["status"]))

        page = context.new_page()
        page.on("websocket", followed)
        page.on("request", lambda request: "/poll" in request.url and heard.append("poll"))
        page.goto(sale.page)
        expect(page.locator(".place")).to_be_visible()
        return page, heard

    def test_by_push(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(5)
        page, heard = self.waiting(sale, self.person())
        until(20, "the socket is answered", lambda: page.wait_for_timeout(100) or "waiting" in heard)
        # Polls are a safety net now: the next is half a minute away.
        page.wait_for_timeout(3_000)
        heard.clear()
        page.wait_for_timeout(4_000)
        self.assertNotIn("poll", heard)
        sale.operate("pace", "5")
        expect(heading(page)).to_have_text("입장하셨습니다")
        self.assertIn("ready", heard)
        self.assertGreater(heard.index("poll"), heard.index("ready"))

    def test_by_polling_where_sockets_are_refused(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(5)
        context = self.person()
        context.route_web_socket("**/socket", lambda socket: socket.close())
        page, heard = self.waiting(sale, context)
        until(20, "polls go on", lambda: page.wait_for_timeout(100) or heard.count("poll") >= 3)
        sale.operate("pace", "5")
        expect(heading(page)).to_have_text("입장하셨습니다")
        self.assertEqual(set(heard), {"poll"})


class Network(BrowserTest):
    def test_a_network_cut_at_place_1_loses_nothing(self):
        sale = self.system.sale(admission=SLOW)
        page = self.open(sale)
        expect(page.locator(".place")).to_have_text("1")
        token = token_of(page)
        page.context.set_offline(True)
        expect(page.get_by_text("네트워크 연결이 끊겼습니다.")).to_be_visible()
        expect(page.get_by_text("순번은 안전하게 유지됩니다.")).to_be_visible()
        page.context.set_offline(False)
        expect(page.locator(".network")).to_be_hidden()
        expect(page.locator(".place")).to_have_text("1")
        sale.operate("pace", "10")
        expect(heading(page)).to_have_text("입장하셨습니다")
        self.assertEqual(token_of(page), token)

    def test_who_was_called_while_offline_gets_the_old_place_back(self):
        sale = self.system.sale(admission=SLOW)
        page = self.open(sale)
        expect(page.locator(".place")).to_have_text("1")
        token = token_of(page)
        sale.crowd(3)
        page.context.set_offline(True)
        sale.operate("pace", "5")
        # Called, and 15 s later gone again.
        until(40, "everybody is called", lambda: sale.progress()["totalWaiting"] == 0)
        until(40, "the calls lapse", lambda: json.loads(sale.operate("show", "--json"))["active"] == 0)
        page.context.set_offline(False)
        expect(heading(page)).to_have_text("입장하셨습니다")
        self.assertEqual(token_of(page), token)

    def test_tabs_share_one_place_and_one_of_them_asks(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(4)
        context = self.person()
        # Then polls tell who asks.
        context.route_web_socket("**/socket", lambda socket: socket.close())
        first = self.open(sale, context)
        expect(first.locator(".place")).to_be_visible()
        token, waiting = token_of(first), sale.progress()["totalWaiting"]
        second = self.open(sale, context)
        expect(second.locator(".place")).to_have_text(first.locator(".place").text_content())
        self.assertEqual((token_of(second), sale.progress()["totalWaiting"]), (token, waiting))
        asked = []
        context.on("request", lambda request: "/poll" in request.url and asked.append(request.frame.page))
        sale.operate("message", "두 창 모두에 보입니다.")
        for page in (first, second):
            expect(page.get_by_text("두 창 모두에 보입니다.")).to_be_visible()
        until(10, "three polls", lambda: second.wait_for_timeout(100) or len(asked) >= 3)
        self.assertEqual(len(set(asked)), 1, "one tab asks for both")
        # The tab that asked goes; the other one takes over, at the same place.
        rest = first if asked[0] == second else second
        asked[0].close()
        asked.clear()
        until(20, "the other tab asks", lambda: rest.wait_for_timeout(100) or asked)
        self.assertEqual(token_of(rest), token)

    def test_tabs_opened_at_once_are_one_place(self):
        sale = self.system.sale(admission=SLOW)
        sale.crowd(2)
        waiting = sale.progress()["totalWaiting"]
        context = self.person()
        pages = [context.new_page() for _ in range(4)]
        for page in pages:
            page.goto(sale.page, wait_until="commit")
        for page in pages:
            expect(page.locator(".place")).to_be_visible()
        self.assertEqual(len({token_of(page) for page in pages}), 1)
        self.assertEqual(sale.progress()["totalWaiting"], waiting + 1)
