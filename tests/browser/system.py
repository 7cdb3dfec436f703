"""A running system: `jari serve` with a data folder of its own, sales made for one test each, and people by HTTP."""

import hmac
import http.client
import itertools
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
JARI = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "jari"
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60
_numbers = itertools.count()


def until(timeout_s, what, holds):
    """Waits until `holds()` is true, and gives what it was."""
    deadline = time.monotonic() + timeout_s
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.05)
    return found


def servers_elsewhere():
    """Redis and PostgreSQL in containers, where the machine has none of its own."""
    redis, database = os.environ.get("JARI_REDIS_URL"), os.environ.get("JARI_DATABASE_URL")
    return ["--redis", redis, "--database", database] if redis and database else []


def other_page():
    """The folder of a page that was made one's own."""
    return ["--web", os.environ["JARI_WEB"]] if os.environ.get("JARI_WEB") else []


class System:
    """`jari serve`, where this process started it; else only its address."""

    def __init__(self, data):
        self.data = pathlib.Path(data)
        self.process = None

    @classmethod
    def start(cls):
        system = cls(pathlib.Path(tempfile.mkdtemp(prefix="jari-browser-")) / "data")
        with open(system.data.parent / "serve.log", "wb") as log:
            command = [JARI, "--data", system.data, *servers_elsewhere(), "serve", "--port", "0", *other_page()]
            system.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        until(START_TIMEOUT_S, "the system serves", system._serves)
        return system

    def _serves(self):
        if self.process.poll() is not None:
            raise AssertionError((self.data.parent / "serve.log").read_text())
        return (self.data / "serve.json").exists()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(STOP_TIMEOUT_S)
        shutil.rmtree(self.data.parent)

    @property
    def running(self):
        """How the system describes itself."""
        return json.loads((self.data / "serve.json").read_text())

    @property
    def url(self):
        return self.running["url"]

    def event(self, *arguments):
        """`jari event …`; fails the test where it is refused."""
        command = [JARI, "--data", self.data, "event", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def sale(self, opens="now", **changes):
        """A sale of its own, open or opening at `opens`: `now`, `+5s`."""
        definition = definition_of(**changes)
        event = definition["eventId"]
        file = self.data.parent / f"{event}.json"
        file.write_text(json.dumps(definition))
        self.event("apply", file, "--opens-at", opens)
        return Sale(self, event)


def definition_of(**changes):
    """A sale with one train in two sections, and a train back."""
    definition = {
        "eventId": f"browser-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(2)}",
        "title": "브라우저 시험",
        "opensAt": 1_800_000_000_000,
        "closesAt": 1_800_086_400_000,
        "preQueue": "fifo",
        "admission": {"perSecond": 20, "maxActive": 100, "activeSeconds": 120, "claimSeconds": 15},
        "holdSeconds": 120,
        "limitPerAccount": 4,
        "anonymous": "accepted",
        "joinsPerAddressPerSecond": 100_000,
        "default": {"offeringId": "T1", "sectionId": "G"},
        "offerings": [
            {"id": "T1", "date": "2027-02-05", "train": "KTX 101", "from": "서울", "to": "부산", "via": "대전",
             "departs": "08:00", "arrives": "10:42", "sections": [
                 {"id": "A", "name": "일반실", "price": 59800, "seats": [
                     {"prefix": "1-", "rows": "1-6", "seats": "A-D"}, {"prefix": "2-", "rows": "1-6", "seats": "A-D"}]},
                 {"id": "G", "name": "입석", "price": 50800, "capacity": 10}]},
            {"id": "T2", "date": "2027-02-06", "train": "KTX 102", "from": "부산", "to": "서울", "departs": "11:30",
             "arrives": "14:11", "sections": [{"id": "A", "name": "일반실", "price": 59800,
                                              "seats": [{"rows": "1-2", "seats": "A-B"}]}]},
        ],
    }
    definition["admission"].update(changes.pop("admission", {}))
    return {**definition, **changes}


class Sale:
    """One sale of the system, and what other people do in it."""

    def __init__(self, system, event):
        self.system = system
        self.event = event
        self._connection = None

    @property
    def page(self):
        return f"{self.system.url}/?event={self.event}"

    def operate(self, verb, *arguments):
        return self.system.event(verb, self.event, *arguments)

    def call(self, method, path, body=None):
        """`data` of a success, else the whole answer."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.system.url.removeprefix("http://"), timeout=30)
        text = None if body is None else json.dumps({"eventId": self.event, **body})
        self._connection.request(method, path, text, {"content-type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        return answer["data"] if answer.get("success") else answer

    def join(self):
        return self.call("POST", "/api/queue/join", {})["token"]

    def crowd(self, count):
        return [self.join() for _ in range(count)]

    def poll(self, token):
        return self.call("GET", f"/api/status/poll?eventId={self.event}&token={token}")

    def progress(self):
        return self.call("GET", f"/api/status/progress?eventId={self.event}")

    def let_in(self):
        """Somebody else, in a live session: their token."""
        token = self.join()
        until(20, "somebody else is let in", lambda: self.poll(token)["status"] == "ACTIVE")
        return token

    def hold(self, token, **wanted):
        wanted = {"offeringId": "T1", "sectionId": "A", **wanted}
        return self.call("POST", "/api/seat/select", {"token": token, **wanted})

    def pay(self, reservation, amount):
        """What the payment provider tells."""
        body = json.dumps({"paymentId": secrets.token_hex(8), "reservationId": reservation, "status": "PAID",
                           "amount": amount, "currency": "KRW"})
        now = int(time.time())
        key = self.system.running["paymentKey"].encode()
        mac = hmac.new(key, f"{now}.{body}".encode(), "sha256").hexdigest()
        connection = http.client.HTTPConnection(self.system.url.removeprefix("http://"), timeout=30)
        headers = {"content-type": "application/json", "jari-signature": f"t={now},v1={mac}"}
        connection.request("POST", "/api/payment/webhook", body, headers)
        answer = json.loads(connection.getresponse().read())
        assert answer["success"], answer

    def book(self, token, **plain):
        return self.call("POST", "/api/booking", {"token": token, **plain})
