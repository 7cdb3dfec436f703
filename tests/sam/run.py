"""The deployed functions under `sam local`: every payload of events/, a whole small sale, and the same answers as
`jari serve` gives. The last line is the totals, as make test reads them.
"""

import concurrent.futures
import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import system
from answers import Answer, call
from front import FUNCTIONS, STACK, Front
from samcli.yamlhelper import yaml_parse
from system import EVENT, JARI, ROOT, VARIABLES, VENV

# Runs of SAM at once.
INVOCATIONS = 2
INVOKE_TIMEOUT_S = 240
ADMITTED_TIMEOUT_S = 90
# Payloads that are no request, and what the function answers.
OTHERS = {
    "admin": ("Admin", {"reply": "changed"}),
    "admin-audit": ("Admin", {"reply": "audited"}),
    "admin-migrate": ("Admin", {"reply": "migrated"}),
    # What is in place is not laid out anew.
    "admin-rebuild": ("Admin", {"reply": "refused"}),
    "admit": ("Admit", None),
    "authorizer": ("Authorizer", {"isAuthorized": False}),
    "persist": ("Persist", {"batchItemFailures": []}),
    "persist-line": ("Persist", {"batchItemFailures": []}),
    "persist-partial": ("Persist", {"batchItemFailures": [{"itemIdentifier": "059f36b4-87a3-44ab-83d2-66197561a702"}]}),
    "push": ("Push", None),
    "relay": ("Relay", None),
    "socket": ("Socket", {"statusCode": 200}),
    "socket-close": ("Socket", {"statusCode": 200}),
    "socket-gone": ("Socket", {"batchItemFailures": []}),
    "socket-open": ("Socket", {"statusCode": 200}),
}


def payload(name):
    return json.loads((ROOT / f"events/{name}.json").read_text(encoding="utf-8"))


def payloads():
    return sorted(path.stem for path in (ROOT / "events").glob("*.json"))


def functions_by_route():
    """Which function a route of API Gateway leads to."""
    template = yaml_parse((ROOT / "template.yaml").read_text(encoding="utf-8"))
    routes = {}
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            for event in resource["Properties"].get("Events", {}).values():
                about = event["Properties"]
                if event["Type"] == "HttpApi" and "Path" in about:
                    routes[f"{about['Method']} {about['Path']}"] = name
    return routes


def sam_invoke(function, name):
    """What a function answers to a payload, by `sam local invoke`."""
    arguments = [VENV / "bin/sam", "local", "invoke", function, "--event", f"events/{name}.json", *system.local_arguments()]
    for _ in range(system.MAX_STARTS):
        done = subprocess.run(
            [str(argument) for argument in arguments], cwd=ROOT, capture_output=True, text=True, timeout=INVOKE_TIMEOUT_S
        )
        if done.returncode:
            raise AssertionError(f"{name}: {done.stderr}")
        # Nothing at all, not even null: the function did not start in time.
        if said := done.stdout.strip().splitlines():
            return json.loads(said[-1])
    raise AssertionError(f"{name}: {done.stderr}")


def as_answer(answer):
    return Answer(answer["statusCode"], answer["headers"], answer.get("body", ""))


class Local(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="jari-sam-")
        os.chmod(cls.folder.name, 0o755)
        cls.local = system.Local()
        cls.addClassCleanup(cls.local.stop)
        cls.served = system.Served(f"{cls.folder.name}/served", opens_in=3600)
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.served.stop)
        cls.local.admin(command="migrate")
        cls.local.open_in(3600)

    def test_1_every_payload(self):
        """Before the opening, so that a run of admit has nothing to wait for."""
        routes = functions_by_route()
        requests = [name for name in payloads() if "rawPath" in payload(name) and name != "authorizer"]
        others = [name for name in payloads() if name not in requests]
        self.assertEqual(set(others), set(OTHERS))
        met = {routes[payload(name)["routeKey"]] for name in requests} | {OTHERS[name][0] for name in others}
        # What PollOnInstances runs is Poll's, which SAM builds once for both.
        built = {path.parent.name.removesuffix("-Shared") for path in (ROOT / ".aws-sam/build").glob("*/bootstrap")}
        self.assertEqual(met, built)
        # Each asks for what the one before it left: one after the other, as `jari serve` is asked.
        for name in requests:
            with self.subTest(name):
                self.same_as_served(name, sam_invoke(routes[payload(name)["routeKey"]], name))
        with concurrent.futures.ThreadPoolExecutor(INVOCATIONS) as pool:
            # A run of relay goes on for 70 s: the others meanwhile.
            told = {name: pool.submit(sam_invoke, OTHERS[name][0], name) for name in sorted(others, key="relay".__ne__)}
            for name, answer in told.items():
                with self.subTest(name):
                    self.fits(OTHERS[name][1], answer.result())

    def same_as_served(self, name, answer):
        event = payload(name)
        headers = {key: value for key, value in event["headers"].items() if key not in ("host", "content-length")}
        headers["accept-encoding"] = "identity"
        path = event["rawPath"] + (f"?{event['rawQueryString']}" if event["rawQueryString"] else "")
        body = event["body"].encode() if "body" in event else None
        served = call(self.served.base, event["requestContext"]["http"]["method"], path, body, headers)
        self.assertEqual(as_answer(answer).comparable(), served.comparable())

    def fits(self, expected, answer):
        if expected is None:
            self.assertIn(answer, (None, {}, {"batchItemFailures": []}))
        else:
            self.assertEqual({key: answer.get(key) for key in expected}, expected, answer)

    def test_2_a_whole_small_sale(self):
        for one in (self.local, self.served):
            one.open_now()
        pump = self.local.pump()
        # Those who came by payloads are before us, and not for equally long.
        for one in (self.local, self.served):
            self.nobody_waits(one.base)
        told = [self.sale(one.base) for one in (self.local, self.served)]
        for (what, here), (_, there) in zip(*told, strict=True):
            with self.subTest(what):
                self.assertEqual(here.comparable(), there.comparable())
        reservations = [dict(one)["booking"].data["reservationId"] for one in told]
        self.arrives(reservations[0])
        self.assertEqual(pump.stop(), 0)
        done = json.loads(pump.log.read_text(encoding="utf-8")[pump.log.read_text(encoding="utf-8").index("{"):])
        self.assertGreater(done["delivered"], 0)
        self.assertEqual(done["handedBack"], 0)

    def test_3_preflight(self):
        front = Front(self.local.functions)
        self.addCleanup(front.stop)
        checks, code = self.preflight(front)
        self.assertEqual({check["verdict"] for check in checks.values()}, {"ready"}, checks)
        self.assertEqual(code, 0)
        self.assertEqual(set(checks) - set(FUNCTIONS), {what for what in checks if " " in what})
        self.assertEqual(front.qualifiers, {"live"})
        front.without.add("Pay")
        front.instances = 999
        front.own["L-8A5B8E43"] = 7999.0
        checks, code = self.preflight(front)
        missing = {what for what, check in checks.items() if check["verdict"] == "missing"}
        self.assertEqual(missing, {"Pay", "Lambda, instances at once", "API Gateway, requests a second"})
        self.assertEqual(checks["API Gateway, connects of sockets a second"]["verdict"], "ready")
        self.assertEqual(code, 1)

    def preflight(self, front):
        arguments = [JARI, "preflight", "--stack", STACK, "--json"]
        environment = {**os.environ, "AWS_ENDPOINT_URL": front.url, "AWS_REGION": "us-east-1"}
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, env=environment)
        self.assertTrue(done.stdout, done.stderr)
        return {check["what"]: check for check in json.loads(done.stdout)}, done.returncode

    def sale(self, base):
        """A sale as people make it: what each request was answered, by its name."""
        told = []

        def ask(what, method, path, body=None, headers=None):
            answer = call(base, method, path, body, headers)
            told.append((what, answer))
            return answer

        token = ask("join", "POST", "/api/queue/join", {"eventId": EVENT}).data["token"]
        me = {"eventId": EVENT, "token": token}
        self.admitted(base, token)
        query = urllib.parse.urlencode(me)
        train = {"offeringId": "KTX-101-0924", "sectionId": "special"}
        trains = urllib.parse.urlencode({**me, "from": "서울", "to": "부산", "date": "2026-09-24"})
        ask("search", "GET", f"/trains/search?{trains}")
        ask("a seat map", "GET", f"/api/seats?{query}&{urllib.parse.urlencode(train)}")
        ask("no route", "GET", "/api/nowhere")
        ask("another method", "PUT", "/api/booking")
        ask("nothing held", "POST", "/api/booking", me)
        held = ask("hold", "POST", "/api/seat/select", {**me, **train, "best": 2}).data
        ask("release", "POST", "/api/seat/cancel", {**me, "seats": held["seats"][:1]})
        booked = ask("booking", "POST", "/api/booking", me, {"Idempotency-Key": "one"}).data
        ask("booking again", "POST", "/api/booking", me, {"Idempotency-Key": "one"})
        reservation = booked["reservationId"]
        ask("reading", "GET", f"/api/booking/{reservation}?{query}")
        paid = {"paymentId": "p", "reservationId": reservation, "status": "PAID", "amount": booked["amount"], "currency": "KRW"}
        ask("payment", "POST", "/api/payment/webhook", *signed(paid, VARIABLES["PAYMENT_KEY"]))
        ask("a forged payment", "POST", "/api/payment/webhook", *signed(paid, "another key"))
        ask("progress", "GET", f"/api/status/progress?eventId={EVENT}")
        ask("keys", "GET", "/.well-known/openid-configuration")
        return told

    def nobody_waits(self, base):
        deadline = time.monotonic() + ADMITTED_TIMEOUT_S
        while call(base, "GET", f"/api/status/progress?eventId={EVENT}").data["totalWaiting"]:
            self.assertLess(time.monotonic(), deadline, f"{base} lets nobody in")
            time.sleep(0.5)

    def admitted(self, base, token):
        deadline = time.monotonic() + ADMITTED_TIMEOUT_S
        while time.monotonic() < deadline:
            place = call(base, "GET", f"/api/status/poll?eventId={EVENT}&token={token}").data
            if place["status"] == "ACTIVE":
                return
            self.assertEqual(place["status"], "WAITING")
            time.sleep(place["nextPollMs"] / 1000)
        self.fail(f"{base} lets nobody in")

    def arrives(self, reservation):
        """The booking and its payment, and the person's way through the line, are rows."""
        deadline = time.monotonic() + 180
        query = f"select status, seat_count from reservations where reservation_id = '{reservation}'"
        kinds = f"select distinct kind from facts where event_id = '{EVENT}'"
        while time.monotonic() < deadline:
            rows, known = self.local.rows(query), {row[0] for row in self.local.rows(kinds)}
            if rows and rows[0][0] == "PAID" and {"USER_ADMITTED", "SEATS_HELD", "BOOKED", "PAID"} <= known:
                return
            time.sleep(1)
        self.fail(f"PostgreSQL has {rows} and {known}")


def signed(body, key):
    """A webhook's body and headers."""
    text = json.dumps(body)
    seconds = int(time.time())
    proof = hmac.new(key.encode(), f"{seconds}.{text}".encode(), hashlib.sha256).hexdigest()
    return text.encode(), {"Content-Type": "application/json", "Jari-Signature": f"t={seconds},v1={proof}"}


def main():
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Local))
    failed = len({str(test).split(" ")[0] for test, _ in result.failures + result.errors})
    print(f"{max(0, result.testsRun - failed)} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
