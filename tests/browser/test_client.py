"""jari.js alone: what it asks when, in a world where an hour passes at once."""

import pathlib

from browser import BrowserTest

WORLD = pathlib.Path(__file__).with_name("world.js")


class Client(BrowserTest):
    def run_in_world(self, body):
        """What an async function body gives that has Jari, World, line, POLL, PROGRESS, TOKEN."""
        context = self.person()
        page = context.new_page()
        # An empty page of the system's own origin, so that modules load as they do for everybody.
        page.route("**/empty.html", lambda route: route.fulfill(body="<!doctype html><title>empty</title>", content_type="text/html"))
        page.route("**/world.js", lambda route: route.fulfill(body=WORLD.read_text(), content_type="text/javascript"))
        page.goto(f"{self.system.url}/empty.html")
        return page.evaluate("""async () => {
          const { Jari, JariError } = await import("/jari.js");
          const { World, line, POLL, PROGRESS, TOKEN } = await import("/world.js");
          %s
        }""" % body)

    def test_an_hour_at_rank_1_000_000_is_at_most_60_calls_of_the_origin(self):
        found = self.run_in_world("""
          const world = new World(null);
          world.answer = line({ rank: 1_000_000, pace: 70, started: world.time });
          const jari = new Jari(world.options);
          const shown = [];
          jari.enter();
          for (let minute = 0; minute < 60; minute += 1) {
            await world.pass(60_000);
            shown.push([jari.state.rank, jari.progress()]);
          }
          const shared = world.of(PROGRESS).length;
          return { shown, shared, origin: world.calls.length - shared, rank: jari.state.rank, via: jari.state.via };
        """)
        self.assertLessEqual(found["origin"], 60)
        self.assertGreaterEqual(found["origin"], 3, "the place is read again now and then")
        self.assertTrue(250 <= found["shared"] <= 500, found["shared"])
        self.assertEqual(found["via"], "progress")
        # 252 000 were let in; what is shown is at most two intervals old.
        self.assertTrue(748_000 <= found["rank"] <= 748_000 + 70 * 24, found["rank"])
        ranks, progress = zip(*found["shown"])
        self.assertEqual(list(ranks), sorted(ranks, reverse=True))
        self.assertEqual(list(progress), sorted(progress))

    def test_from_far_back_to_the_front_nobody_comes_late(self):
        for rank in (11_000, 15_000, 40_000):
            found = self.run_in_world("""
              const rank = %d;
              const world = new World(null);
              world.answer = line({ rank, pace: 100, started: world.time });
              const jari = new Jari(world.options);
              const vias = new Set();
              let active = Infinity;
              jari.addEventListener("change", () => {
                if (jari.state.phase === "active") active = Math.min(active, world.time);
                vias.add(jari.state.via);
              });
              const called = world.time + rank * 10;
              jari.enter();
              await world.pass(rank * 10 + 5_000);
              return { late: active - called, vias: [...vias], polls: world.of(POLL).length };
            """ % rank)
            self.assertEqual(sorted(found["vias"]), ["poll", "progress"], rank)
            self.assertTrue(0 <= found["late"] <= 2_500, (rank, found))
            self.assertLess(found["polls"], 100)

    def test_progress_moves_between_answers_and_never_back(self):
        found = self.run_in_world("""
          const world = new World(null);
          const moving = line({ rank: 500, pace: 5, started: world.time });
          // Some who missed their call come back to the front: the rank grows for a while.
          world.answer = (call, world) => {
            const answer = moving(call, world);
            const isSetBack = call.path === POLL && world.calls.length % 3 === 0;
            if (isSetBack && answer.data.rank) answer.data.rank += 60, answer.data.ahead += 60;
            return answer;
          };
          const jari = new Jari({ ...world.options, push: false });
          const shown = [];
          jari.enter();
          for (let step = 0; step < 300; step += 1) {
            await world.pass(250);
            shown.push([jari.progress(), jari.state.rank]);
          }
          return shown;
        """)
        progress, ranks = zip(*found)
        self.assertNotEqual(list(ranks), sorted(ranks, reverse=True), "the rank was set back")
        self.assertEqual(list(progress), sorted(progress))
        self.assertGreater(len(set(progress)), 3 * len(set(ranks)))
        self.assertLess(max(progress), 1)

    def test_retry_after_is_obeyed(self):
        for status, code in ((429, "RATE_LIMIT"), (503, "UNAVAILABLE")):
            found = self.run_in_world("""
              const world = new World(null);
              const fine = line({ rank: 50, pace: 0.1, started: world.time });
              let refused;
              world.answer = (call, world) => {
                if (call.path !== POLL || refused) return fine(call, world);
                refused = call.at;
                return { status: %d, headers: { "retry-after": "7" }, error: { code: "%s", message: "", requestId: "" } };
              };
              const jari = new Jari({ ...world.options, push: false });
              jari.enter();
              await world.pass(3_000);
              const during = jari.state.connection;
              await world.pass(12_000);
              return { during, after: jari.state.connection, waits: world.of(POLL).map(({ at }) => at - refused) };
            """ % (status, code))
            self.assertEqual((found["during"], found["after"]), ("busy", "fine"))
            self.assertEqual(found["waits"][0], 0)
            self.assertTrue(7_000 <= found["waits"][1] <= 8_400, found["waits"])

    def test_failures_without_a_word_are_asked_after_ever_more_seldom(self):
        for failure in ("new TypeError('no network')", "({ status: 502, text: '<html>' })", "'never'", "({ status: 200, text: 'OK' })"):
            found = self.run_in_world("""
              const world = new World(() => %s);
              const jari = new Jari({ ...world.options, push: false });
              jari.enter();
              await world.pass(300_000);
              return world.of("/api/queue/join").map(({ at }) => at);
            """ % failure)
            waits = [later - earlier for earlier, later in zip(found, found[1:])]
            self.assertTrue(8 <= len(found) <= 30, (failure, len(found)))
            self.assertTrue(all(wait >= 500 for wait in waits), (failure, waits))
            self.assertTrue(all(wait >= 15_000 for wait in waits[6:]), (failure, waits))
            self.assertEqual(len(set(waits[6:])), len(waits[6:]), "not everybody at once")

    def test_an_action_is_repeated_under_one_key_and_another_has_another(self):
        found = self.run_in_world("""
          const world = new World(null);
          const inside = line({ rank: 0, pace: 1, started: world.time });
          let failures = 2;
          world.answer = (call, world) => {
            if (call.method !== "POST" || call.path.startsWith("/api/queue")) return inside(call, world);
            if (failures-- > 0) return failures ? new TypeError("cut") : { status: 503, headers: { "retry-after": "1" }, text: "" };
            return { data: { seats: ["1A"], seatCount: 1, holdExpiresAt: world.time + 60_000, activeExpiresAt: world.time + 60_000 } };
          };
          const jari = new Jari({ ...world.options, push: false });
          jari.enter();
          await world.pass(1_000);
          const act = async (work) => {
            const done = work();
            await world.pass(10_000);
            return done;
          };
          await act(() => jari.select({ offeringId: "T", sectionId: "A", best: 1 }));
          const held = jari.state.held;
          await act(() => jari.select({ offeringId: "T", sectionId: "A", best: 1 }));
          return { held, calls: world.of("/api/seat/select").map(({ headers, body }) => [headers["idempotency-key"], body]) };
        """)
        keys = [key for key, _ in found["calls"]]
        self.assertEqual(len(keys), 4)
        self.assertEqual(len(set(keys[:3])), 1)
        self.assertNotEqual(keys[0], keys[3])
        self.assertRegex(keys[0], "^[0-9a-f]{8}-[0-9a-f]{4}-4")
        self.assertEqual(found["calls"][0][1]["best"], 1)
        self.assertEqual(found["held"], [{"offeringId": "T", "sectionId": "A", "seats": ["1A"], "count": 1}])

    def test_a_refusal_is_not_repeated(self):
        found = self.run_in_world("""
          const world = new World(null);
          const inside = line({ rank: 0, pace: 1, started: world.time });
          world.answer = (call, world) => call.path === "/api/seat/select"
            ? { status: 409, error: { code: "SEAT_TAKEN", message: "taken", details: { seats: ["1A"] }, requestId: "r" } }
            : inside(call, world);
          const jari = new Jari({ ...world.options, push: false });
          jari.enter();
          await world.pass(1_000);
          const error = await jari.select({ offeringId: "T", sectionId: "A", seats: ["1A"] }).catch((error) => error);
          await world.pass(20_000);
          return { code: error.code, seats: error.details.seats, isError: error instanceof JariError,
            calls: world.of("/api/seat/select").length };
        """)
        self.assertEqual(found, {"code": "SEAT_TAKEN", "seats": ["1A"], "isError": True, "calls": 1})

    def test_an_access_token_proves_and_when_refused_the_token_does(self):
        found = self.run_in_world("""
          const world = new World(null);
          const inside = line({ rank: 0, pace: 1, started: world.time });
          let good = true;
          world.answer = (call, world) => {
            const answer = inside(call, world);
            if (call.path === POLL && good) answer.data.accessToken = "a.b.c";
            if (call.path !== "/api/offerings") return answer;
            return call.headers.authorization && !good
              ? { status: 401, error: { code: "UNAUTHORIZED", message: "", requestId: "" } }
              : { data: { offerings: [] } };
          };
          const jari = new Jari({ ...world.options, push: false });
          jari.enter();
          await world.pass(1_500);
          await jari.search();
          good = false;
          await jari.search();
          await jari.search();
          return world.of("/api/offerings").map(({ headers, query }) => [headers.authorization ?? null, query.token ?? null]);
        """)
        bearer, token = ["Bearer a.b.c", None], [None, "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"]
        self.assertEqual(found, [bearer, bearer, token, token])

    def test_an_account_proves_itself_where_a_place_is_given(self):
        found = self.run_in_world("""
          const world = new World(null);
          const moving = line({ rank: 500, pace: 1, started: world.time });
          let isLost = false;
          world.answer = (call, world) => {
            const lost = { ...moving({ path: POLL }, world).data, status: "NOT_FOUND" };
            if (call.path === POLL && isLost) return { data: lost };
            isLost = false;
            return moving({ ...call, path: call.path.replace("rejoin", "join") }, world);
          };
          const jari = new Jari({ ...world.options, push: false, account: async () => "who.i.am" });
          jari.enter();
          await world.pass(5_000);
          isLost = true;
          await world.pass(5_000);
          return world.calls.filter(({ path }) => path !== PROGRESS).map(({ path, headers }) => [path, headers.authorization ?? null]);
        """)
        self.assertEqual({path for path, proof in found if proof == "Bearer who.i.am"},
                         {"/api/queue/join", "/api/queue/rejoin"})
        self.assertEqual({path for path, proof in found if proof is None}, {"/api/status/poll"})

    def test_countdowns_follow_the_clock_of_the_server(self):
        for offset in (-3_600_000, 0, 86_400_000):
            error = self.run_in_world("""
              const world = new World(null);
              world.answer = line({ rank: 50, pace: 0.1, started: world.time, offsetMs: %d });
              const jari = new Jari({ ...world.options, push: false });
              jari.enter();
              await world.pass(30_000);
              return jari.now() - world.time - %d;
            """ % (offset, offset))
            self.assertLessEqual(abs(error), 1_000)

    def test_a_lost_place_is_claimed_by_its_key(self):
        found = self.run_in_world("""
          const world = new World(null);
          const known = line({ rank: 50, pace: 0.1, started: world.time });
          let isLost = false;
          world.answer = (call, world) => {
            if (call.path === POLL && isLost) return { data: { status: "NOT_FOUND", rank: null, ahead: null, behind: null,
              totalWaiting: 0, remainingSeats: 0, nextPollMs: 0, activeExpiresAt: null, totalTicketCount: 0,
              estimatedWaitSeconds: null, key: null, net: 0 } };
            if (call.path !== "/api/queue/rejoin") return known(call, world);
            isLost = false;
            return { data: { ...known({ path: "/api/queue/join" }, world).data, joinedAt: null, rejoined: true, status: "WAITING" } };
          };
          const jari = new Jari({ ...world.options, push: false });
          jari.enter();
          await world.pass(3_000);
          isLost = true;
          await world.pass(5_000);
          return { rejoins: world.of("/api/queue/rejoin").map(({ body }) => body), phase: jari.state.phase };
        """)
        self.assertEqual(found["phase"], "waiting")
        self.assertEqual(found["rejoins"], [{"token": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "key": "k" * 80}])

    def test_at_the_opening_a_million_do_not_ask_at_once(self):
        found = self.run_in_world("""
          const first = [];
          for (let one = 0; one < 60; one += 1) {
            const world = new World(null);
            const opensAt = world.time + 30_000;
            const opened = line({ rank: 900_000, pace: 100, started: opensAt, opensAt });
            world.answer = (call, world) => {
              const answer = opened(call, world);
              if (world.time >= opensAt) return answer;
              const before = { rank: null, ahead: null, behind: null, estimatedWaitSeconds: null, opensAt, nextPollMs: 2_000 };
              Object.assign(answer.data, call.path === PROGRESS ? { status: "UPCOMING" } : before);
              return answer;
            };
            const jari = new Jari({ ...world.options, push: false });
            jari.enter();
            await world.pass(50_000);
            first.push(world.of(POLL).find(({ at }) => at >= opensAt).at - opensAt);
          }
          return first;
        """)
        self.assertTrue(all(0 <= late <= 12_000 for late in found), found)
        self.assertGreater(max(found) - min(found), 5_000)

    def test_pushes_replace_polls_near_the_front_and_being_called_is_asked_at_once(self):
        found = self.run_in_world("""
          const world = new World(null);
          world.answer = line({ rank: 300, pace: 1, started: world.time });
          const jari = new Jari(world.options);
          jari.enter();
          await world.pass(3_000);
          const [socket] = world.sockets;
          socket.opened();
          socket.says({ status: "waiting", currentRank: 290, estimatedWaitTime: 289 });
          await world.pass(5_000);
          const before = world.of(POLL).length;
          await world.pass(60_000);
          const quiet = world.of(POLL).length - before;
          socket.says({ status: "waiting", currentRank: 12, estimatedWaitTime: 11, totalWaiting: 40, updatedAt: 2_000 });
          // Overtaken by the one before.
          socket.says({ status: "waiting", currentRank: 15, estimatedWaitTime: 14, totalWaiting: 43, updatedAt: 1_000 });
          const { rank, ahead, behind, via } = jari.state;
          world.answer = line({ rank: 0, pace: 1, started: world.time });
          const called = world.time;
          socket.says({ status: "ready", updatedAt: 3_000 });
          await world.pass(500);
          const asked = world.of(POLL).at(-1);
          return { url: socket.url, hello: socket.sent, quiet, rank, ahead, behind, via, phase: jari.state.phase,
            late: asked.at - called, key: asked.query.key ?? null };
        """)
        self.assertTrue(found["url"].startswith("ws://") and found["url"].endswith("/socket"), found["url"])
        self.assertEqual(found["hello"], [{"type": "connect", "token": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "eventId": "e"}])
        self.assertLessEqual(found["quiet"], 3)
        self.assertEqual((found["rank"], found["ahead"], found["behind"], found["via"]), (12, 11, 28, "push"))
        self.assertEqual((found["phase"], found["key"]), ("active", None))
        self.assertLessEqual(found["late"], 150)

    def test_without_pushes_polls_go_on_and_a_broken_connection_is_opened_again(self):
        found = self.run_in_world("""
          const world = new World(null);
          world.answer = line({ rank: 300, pace: 0.01, started: world.time });
          const jari = new Jari(world.options);
          jari.enter();
          await world.pass(1_000);
          world.sockets[0].opened();
          // Not followed: as good as not opened.
          world.sockets[0].says({ status: "error", code: "RATE_LIMIT", message: "", retryAfterSeconds: 1 });
          await world.pass(60_000);
          const polls = world.of(POLL).length;
          const tried = world.sockets.length;
          while (world.sockets.length < 2 && world.time < 1_800_000_600_000) await world.pass(1_000);
          const again = world.sockets[1];
          again.opened();
          again.says({ status: "waiting", currentRank: 300, estimatedWaitTime: 10 });
          again.close();
          await world.pass(2_000);
          return { polls, tried, reopened: world.sockets.length, via: jari.state.via };
        """)
        self.assertGreaterEqual(found["polls"], 20)
        self.assertEqual((found["tried"], found["reopened"], found["via"]), (1, 3, "poll"))

    def test_a_bent_draw_is_found_out(self):
        found = self.run_in_world("""
          const { checkDraw, drawnScore } = await import("/jari/draw.js");
          const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
          const seed = "11".repeat(32);
          const digest = hex(await crypto.subtle.digest("SHA-256", Uint8Array.from({ length: 32 }, () => 0x11)));
          const { score } = await drawnScore(seed, TOKEN);
          const published = { shuffleCommitment: digest, shuffleSeed: seed };
          const verdict = async (place, progress) => (await checkDraw({ token: TOKEN, ...place }, progress))?.result ?? null;
          return [
            await verdict({ score, commitment: digest }, published),
            await verdict({ score: score + 1, commitment: digest }, published),
            await verdict({ score, commitment: digest }, { ...published, shuffleSeed: "22".repeat(32) }),
            await verdict({ score, commitment: "00".repeat(32) }, published),
            await verdict({ score: 2 ** 52 + 7, commitment: digest }, published),
            await verdict({ commitment: digest }, published),
            await verdict({ commitment: digest }, { shuffleCommitment: digest }),
            await verdict({ score: 3 }, {}),
          ];
        """)
        self.assertEqual(found, ["GOOD", "WRONG", "WRONG", "WRONG", "LATE", "UNKNOWN", "SECRET", None])

    def test_timers_of_a_worker_ring_where_those_of_the_page_do_not(self):
        found = self.run_in_world("""
          const { browserTimers } = await import("/jari/timers.js");
          const own = globalThis.setTimeout;
          // As in a page that is hidden for long.
          globalThis.setTimeout = () => 0;
          const timers = browserTimers();
          const rung = [];
          const cleared = timers.set(() => rung.push("cleared"), 20);
          await new Promise((resolve) => {
            timers.clear(cleared);
            timers.set(() => rung.push("early"), 10);
            timers.set(() => resolve(rung.push("late")), 60);
          });
          globalThis.setTimeout = own;
          return rung;
        """)
        self.assertEqual(found, ["early", "late"])

    def test_what_was_given_back_elsewhere_is_held_no_more(self):
        found = self.run_in_world("""
          const world = new World(null);
          const inside = line({ rank: 0, pace: 1, started: world.time });
          let taken = {};
          world.answer = (call, world) => {
            if (call.path === "/api/seats") return { data: { sequence: 1, sections: [{ sectionId: "A", rows: [], taken, remaining: 1 }] } };
            if (call.path !== "/api/seat/select") return inside(call, world);
            return { data: { seats: call.body.seats, seatCount: 2, holdExpiresAt: world.time + 60_000, activeExpiresAt: world.time + 60_000 } };
          };
          const jari = new Jari({ ...world.options, push: false });
          const held = () => jari.state.held.map(({ seats }) => seats.join());
          jari.enter();
          await world.pass(1_000);
          // Asked before the hold: such a map says nothing of it.
          const early = jari.seats({ offeringId: "T", sectionId: "A" });
          await jari.select({ offeringId: "T", sectionId: "A", seats: ["1A", "1B"] });
          await early;
          const after = [held()];
          await world.pass(1_000);
          for (taken of [{ "1A": "HELD", "1B": "HELD" }, { "1B": "HELD" }, {}]) {
            await jari.seats({ offeringId: "T", sectionId: "A" });
            after.push(held());
          }
          return after;
        """)
        self.assertEqual(found, [["1A,1B"], ["1A,1B"], ["1B"], []])

    def test_a_map_that_has_not_changed_is_the_same_object(self):
        found = self.run_in_world("""
          const world = new World(null);
          const inside = line({ rank: 0, pace: 1, started: world.time });
          world.answer = (call, world) => {
            if (call.path !== "/api/seats") return inside(call, world);
            if (call.headers["if-none-match"]) return { status: 304, headers: { etag: '"one"' } };
            return { headers: { etag: '"one"' }, data: { sequence: 1, sections: [] } };
          };
          const jari = new Jari({ ...world.options, push: false });
          jari.enter();
          await world.pass(1_000);
          const first = await jari.seats({ offeringId: "T" });
          const again = await jari.seats({ offeringId: "T" });
          const other = await jari.seats({ offeringId: "U" });
          return [first === again, first === other, world.of("/api/seats").map(({ headers }) => headers["if-none-match"] ?? null)];
        """)
        self.assertEqual(found, [True, False, [None, '"one"', None]])
