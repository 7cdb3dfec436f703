"""Two releases work on one sale at once: whatever one of them gave out, the other takes.

Usage: upgrade.py OLD NEW SALE, two builds of jari and a definition that OLD knows. OLD serves the sale, NEW joins it on
the same Redis and PostgreSQL, as a rollout does; then people walk through, each step answered by either. The last line
is the totals.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from answers import call

ROOT = Path(__file__).resolve().parents[2]
EVENT = "ktx-2026-chuseok"
SECRETS = ["master-key", "payment-key", "access-token-key.pem"]
START_TIMEOUT_S = 60
ADMITTED_TIMEOUT_S = 60
# Steps of a person that either release may answer.
STEPS = 5


class Release:
    """A served release."""

    def __init__(self, binary, data, *arguments):
        self.binary, self.data = binary, data
        Path(data).mkdir(exist_ok=True)
        self.log = Path(f"{data}.txt")
        with self.log.open("w", encoding="utf-8") as log:
            command = [binary, "serve", "--port", "0", "--data", data, *arguments]
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        self.running = self.wait()

    def wait(self):
        """What it says of itself once it answers."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            for path in Path(self.data).glob("*.json"):
                try:
                    running = json.loads(path.read_text(encoding="utf-8"))
                    if running.get("pid") == self.process.pid and call(running["url"], "GET", "/health").status == 200:
                        return running
                except (OSError, ValueError):
                    pass
            time.sleep(0.2)
        raise AssertionError(self.log.read_text(encoding="utf-8"))

    def ask(self, method, path, body=None, headers=None):
        return call(self.running["url"], method, path, body, headers)

    def audit(self):
        arguments = [self.binary, "audit", EVENT, "--data", self.data, "--patience", "60"]
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=180)
        if done.returncode:
            raise AssertionError(f"{self.binary} finds: {done.stdout}{done.stderr}")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def admitted(turns, place):
    """Polls, each answered by the next release, with the key that the one before gave out. The access token, which comes
    with the answer that begins the session."""
    token, deadline = place["token"], time.monotonic() + ADMITTED_TIMEOUT_S
    while time.monotonic() < deadline:
        if place["status"] == "ACTIVE":
            return place["accessToken"]
        time.sleep(place["nextPollMs"] / 1000)
        answer = next(turns).ask("GET", f"/api/status/poll?eventId={EVENT}&token={token}&key={place['key']}")
        if answer.status != 429:
            place = answer.data
    raise AssertionError("nobody is let in")


def walk(joins, looks, holds, books, reads):
    """One person's way; who answers which step."""
    joined = joins.ask("POST", "/api/queue/join", {"eventId": EVENT}).data
    token = joined["token"]
    back = looks.ask("POST", "/api/queue/rejoin", {"eventId": EVENT, "token": token, "key": joined["key"]}).data
    assert back["rejoined"], back
    bearer = {"Authorization": f"Bearer {admitted(itertools.cycle([looks, joins]), back)}"}
    train = {"eventId": EVENT, "offeringId": "KTX-101-0924", "sectionId": "standard"}
    held = holds.ask("POST", "/api/seat/select", {**train, "best": 2}, bearer).data
    books.ask("POST", "/api/seat/cancel", {"eventId": EVENT, "seats": held["seats"][:1]}, bearer).data
    once = {**bearer, "Idempotency-Key": token}
    booked = books.ask("POST", "/api/booking", {"eventId": EVENT}, once).data
    again = holds.ask("POST", "/api/booking", {"eventId": EVENT}, once).data
    assert again["reservationId"] == booked["reservationId"], again
    assert booked["seats"] == held["seats"][1:], booked
    path = f"/api/booking/{booked['reservationId']}"
    read = reads.ask("GET", path, headers=bearer).data
    assert (read["status"], read["amount"]) == (booked["status"], booked["amount"]), read
    cancelled = joins.ask("DELETE", path, headers=bearer).data
    assert cancelled["status"] == "CANCELLED", cancelled


def main(old_binary, new_binary, sale):
    passed, failed, started = 0, 0, []
    with tempfile.TemporaryDirectory(prefix="jari-upgrade-") as folder:
        os.chmod(folder, 0o755)
        try:
            old = Release(old_binary, f"{folder}/old", "--sale", f"{sale}@now")
            started.append(old)
            Path(f"{folder}/new").mkdir()
            for name in SECRETS:
                shutil.copy(f"{folder}/old/{name}", f"{folder}/new/{name}")
            where = ["--redis", old.running["redis"], "--database", old.running["database"]]
            new = Release(new_binary, f"{folder}/new", *where)
            started.append(new)
            for answering in itertools.product([old, new], repeat=STEPS):
                try:
                    walk(*answering)
                    passed += 1
                except AssertionError as error:
                    failed += 1
                    print("FAILED", ["old" if one is old else "new" for one in answering], error)
            # What both wrote is sound to either: the new one's word counts, it is what stays.
            new.audit()
        finally:
            for release in reversed(started):
                release.stop()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
