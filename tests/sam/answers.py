"""Answers of two systems that should be the same but for what is new with each request."""

import json
import urllib.error
import urllib.request

# What differs from one request to the next, or from one clock to the other: only its kind is compared.
VOLATILE = {
    "accessToken", "activeExpiresAt", "admittedPerSecond", "at", "cancelledAt", "createdAt", "estimatedWaitSeconds",
    "expiresIn", "headScore", "holdExpiresAt", "issuer", "joinedAt", "jwks_uri", "key", "net", "nextPollMs", "opensAt",
    "paidAt", "paymentDueAt", "requestId", "reservationId", "score", "sequence", "timestamp", "token", "updatedAt",
}
HEADERS = ["content-type", "cache-control", "retry-after", "access-control-allow-origin", "x-content-type-options"]
TIMEOUT_S = 60


class Answer:
    """An answer over HTTP, or as a function gives it to API Gateway."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body) if self.body else None

    @property
    def data(self):
        """What a success says."""
        answer = self.json
        if not answer.get("success"):
            raise AssertionError(f"{self.status}: {self.body}")
        return answer["data"]

    def comparable(self):
        """What must be the same."""
        headers = {name: self.headers[name] for name in HEADERS if name in self.headers}
        is_json = "json" in headers.get("content-type", "")
        return self.status, headers, steady(self.json) if is_json else self.body


def steady(value):
    if isinstance(value, dict):
        return {
            key: type(inner).__name__ if key in VOLATILE and inner is not None else steady(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [steady(inner) for inner in value]
    return value


def call(base, method, path, body=None, headers=None):
    """One request; every status is an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(base + path, data=data, method=method, headers=headers or {})
    if data is not None and not request.has_header("Content-type"):
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return Answer(answer.status, answer.headers, answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read().decode())
