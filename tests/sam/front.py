"""As much of AWS as `jari preflight` asks: Lambda's own API before functions under `sam local`, and Service Quotas."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from answers import call

FUNCTIONS = [
    "Admin", "Admit", "Authorizer", "Book", "HoldSeat", "Join", "Keys", "Leave", "Pay", "Persist", "Poll", "Push",
    "Relay", "Seats", "Socket",
]  # fmt: skip
STACK = "jari-test"
# Requests a second, and connects of sockets a second.
QUOTAS = {"L-8A5B8E43": 10000.0, "L-9ED1E49A": 500.0}
PAGE = 10
MAX_STARTS = 5
INVOKED_PREFIX = "/2015-03-31/functions/"


class Front:
    """A server that says what a deployed stack would; `limits` may be changed between two questions."""

    def __init__(self, functions):
        self.instances = 3000
        # The account's own quotas; everybody else's are those of QUOTAS.
        self.own = {}
        self.without = set()
        self.qualifiers = set()
        front = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.say(*front.get(urlsplit(self.path)))

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if target := self.headers.get("x-amz-target"):
                    self.say(*front.quota(target.endswith("GetServiceQuota"), json.loads(body)["QuotaCode"]))
                else:
                    self.say(*front.invoke(functions, urlsplit(self.path), body))

            def say(self, status, body, headers=None):
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", **(headers or {})}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def names(self):
        ours = [f"{STACK}-{name}-1A2B3C" for name in FUNCTIONS if name not in self.without]
        return sorted([*ours, f"{STACK}-other-Join-1A2B3C"])

    def get(self, asked):
        if asked.path.endswith("/account-settings") or asked.path.endswith("/account-settings/"):
            limits = {"ConcurrentExecutions": 5000, "UnreservedConcurrentExecutions": self.instances}
            return 200, {"AccountLimit": limits}
        if asked.path.rstrip("/").endswith("/functions"):
            start = int(parse_qs(asked.query).get("Marker", ["0"])[0])
            page = {"Functions": [{"FunctionName": name} for name in self.names()[start : start + PAGE]]}
            if start + PAGE < len(self.names()):
                page["NextMarker"] = str(start + PAGE)
            return 200, page
        if asked.path.endswith("/configuration"):
            return 200, {"State": "Active", "Version": "7"}
        return 404, {"Type": "User", "Message": asked.path}

    def quota(self, is_own, code):
        known = self.own if is_own else QUOTAS
        if code in known:
            return 200, {"Quota": {"QuotaCode": code, "Value": known[code]}}
        return 400, {"__type": "NoSuchResourceException", "Message": code}

    def invoke(self, functions, asked, body):
        name = asked.path.removeprefix(INVOKED_PREFIX).removesuffix("/invocations")
        self.qualifiers.update(parse_qs(asked.query).get("Qualifier", [""]))
        # One that did not start in time, as on a busy machine, has answered nothing.
        for _ in range(MAX_STARTS):
            answer = call(functions, "POST", f"{INVOKED_PREFIX}{name.split('-')[-2]}/invocations", body)
            if answer.body:
                break
        return answer.status, answer.body.encode(), {"x-amz-executed-version": "7"}
