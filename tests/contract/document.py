"""What generated requests need to reach beyond the first refusal: live sessions, reservations, places that exist, and
the payment provider's signature. What is generated to be wrong stays as it is.
"""

import atexit
import hashlib
import hmac
import json
import os
import random
import threading
import time
import urllib.error
import urllib.request

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.core.parameters import ParameterLocation

URL = os.environ["JARI_CONTRACT_URL"]
SECRET = os.environ["JARI_CONTRACT_SECRET"]
PAYMENT_KEY = os.environ["JARI_CONTRACT_PAYMENT_KEY"].encode()

# Sessions made at a time; the first of them are kept.
PEOPLE, REGULARS = 60, 10
WAIT_SECONDS = 60
GUARDED = {"search", "searchTrains", "seatMap", "hold", "release", "book"}
OWNED = {"readReservation", "cancelReservation"}
SEATS = [f"{row}{seat}" for row in range(1, 5) for seat in "ABCD"]


def ask(method, target, body=None):
    """Status and body of an answer."""
    request = urllib.request.Request(URL + target, method=method, headers={"x-origin-secret": SECRET})
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("content-type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def expect(status, answer):
    assert answer[0] == status, answer
    return answer[1]["data"]


class People:
    """Tokens that were let in, and what some of them bought."""

    def __init__(self):
        self.lock = threading.Lock()
        self.random = random.Random(20260915)
        # Who comes back, holds and releases; who books or leaves, once; who has booked.
        self.regulars, self.fresh, self.booked = [], [], []

    def fill(self):
        tokens = [expect(200, ask("POST", "/api/queue/join", {}))["token"] for _ in range(PEOPLE)]
        deadline = time.monotonic() + WAIT_SECONDS
        while tokens:
            assert time.monotonic() < deadline, "nobody is let in"
            token = tokens[0]
            polled = expect(200, ask("GET", f"/api/status/poll?token={token}"))
            if polled["status"] == "ACTIVE":
                people = self.regulars if len(self.regulars) < REGULARS else self.fresh
                people.append((token, polled.get("accessToken")))
                tokens.pop(0)
            else:
                time.sleep(0.05)

    def regular(self):
        """A token in a live session, and its access token."""
        with self.lock:
            if not self.regulars:
                self.fill()
            return self.random.choice(self.regulars)

    def newcomer(self):
        """The same, for a request that may end the session."""
        with self.lock:
            if not self.fresh:
                self.fill()
            return self.fresh.pop()

    def reservation(self):
        """A token and its reservation, in whatever state others have brought it."""
        if self.booked and self.chance(0.7):
            return self.choice(self.booked)
        token, _ = self.newcomer()
        booked = expect(201, ask("POST", "/api/booking", {"token": token, "seatCount": 1}))
        with self.lock:
            self.booked.append((token, booked))
        return token, booked

    def chance(self, probability):
        with self.lock:
            return self.random.random() < probability

    def choice(self, values):
        with self.lock:
            return self.random.choice(values)


people = People()


def is_well_formed(case):
    return case.meta is None or case.meta.generation.mode.is_positive


def operation_of(case):
    return case.operation.definition.raw.get("operationId")


@schemathesis.hook
def before_call(ctx, case, kwargs):
    operation = operation_of(case)
    if operation == "pay" and is_to_be_signed(case):
        kwargs["auth"] = signed
    if not is_well_formed(case) or case.method.upper() != case.operation.method.upper():
        return
    if case.method.upper() != "POST":
        case.query = dict(case.query or {})
        lead_in(operation, case, case.query)
    elif isinstance(case.body, dict):
        lead_in(operation, case, case.body)
    elif operation in GUARDED:
        # What needs no body needs an access token then.
        prove(case, {}, people.newcomer(), by=["access token"])


def lead_in(operation, case, fields):
    """Past what refuses most of random requests."""
    if people.chance(0.9):
        fields.pop("eventId", None)
    if operation in OWNED:
        fields["token"], booked = people.reservation()
        case.path_parameters["id"] = booked["reservationId"]
    elif operation == "pay":
        _, booked = people.reservation()
        fields.update(reservationId=booked["reservationId"], currency="KRW")
        if people.chance(0.8):
            fields["amount"] = booked["amount"]
    elif operation in GUARDED:
        prove(case, fields, people.newcomer() if operation == "book" else people.regular())
        exist(fields)
    elif operation in ("poll", "rejoin"):
        fields["token"], _ = people.regular()
    elif operation == "leave" and people.chance(0.5):
        fields["token"], _ = people.newcomer()


def prove(case, fields, person, by=("token", "access token", "both")):
    token, access_token = person
    proof = people.choice(by)
    fields.pop("token", None)
    if proof != "access token":
        fields["token"] = token
    if proof != "token":
        case.headers["Authorization"] = f"Bearer {access_token}"


def exist(fields):
    """Names of places that are there, mostly."""
    if "offeringId" in fields and people.chance(0.8):
        fields["offeringId"] = "T1"
    if "sectionId" in fields and people.chance(0.8):
        fields["sectionId"] = people.choice(["A", "G"])
    if "seatId" in fields and people.chance(0.8):
        fields["seatId"] = people.choice(SEATS)
    if "seats" in fields and people.chance(0.8):
        fields["seats"] = [people.choice(SEATS)]
    for name in ("count", "best", "seatCount"):
        if name in fields and people.chance(0.8):
            fields[name] = people.choice([1, 2, 3])


def is_to_be_signed(case):
    """Bodies that make no sense are signed too, unless it is the signature that is wrong."""
    is_wrong = case.meta is not None and case.meta.is_negative_at(ParameterLocation.HEADER)
    return "Jari-Signature" in case.headers and not is_wrong


def signed(request):
    """As the payment provider signs, over whatever the body has come to."""
    body = request.body or b""
    body = body if isinstance(body, bytes) else body.encode()
    seconds = str(int(time.time()))
    signature = hmac.new(PAYMENT_KEY, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
    request.headers["Jari-Signature"] = f"t={seconds},v1={signature}"
    return request


@schemathesis.hook
def filter_failure(ctx, failure, case, response):
    """What the generator cannot know of the document: that null is as good as absent, and that a JSONP answer is
    always 200 and tells by its body."""
    if not isinstance(failure, AcceptedNegativeData):
        return True
    if response.headers["content-type"][0].startswith("application/javascript"):
        return b'({"success":false,' not in response.content
    return not (isinstance(case.body, dict) and None in case.body.values())


succeeded = set()


@schemathesis.hook
def after_call(ctx, case, response):
    if 200 <= response.status_code < 300 and case.method.upper() == case.operation.method.upper():
        succeeded.add(operation_of(case))


@atexit.register
def tell():
    """A run in which a call never succeeds proves little of it."""
    with open("succeeded.json", "w") as file:
        json.dump(sorted(succeeded), file)
