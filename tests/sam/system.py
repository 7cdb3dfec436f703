"""The two systems: functions as SAM starts them, with Redis, PostgreSQL and SQS in containers; and `jari serve`."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from answers import call

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / os.environ.get("JARI_VENV_SAM", "target/venv-sam")
JARI = Path(os.environ["JARI_BINARY"])
LOGS = Path(os.environ["JARI_SAM_LOGS"])
SALE = "infra/sales/ktx-2026-chuseok.json"
EVENT = "ktx-2026-chuseok"
# Only a machine that is busy with other things needs so long.
START_TIMEOUT_S = 300
# A request that each function answers, none of which changes anything.
WAKING = [
    ("POST", "/api/queue/join"),
    ("GET", "/health"),
    ("GET", "/api/seats"),
    ("POST", "/api/seat/select"),
    ("POST", "/api/booking"),
    ("POST", "/api/payment/webhook"),
    ("DELETE", "/api/queue/leave"),
    ("GET", "/.well-known/jwks.json"),
]
MAX_STARTS = 5
STOP_TIMEOUT_S = 60


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def local_arguments():
    return [
        "--env-vars", "infra/local/env.json", "--docker-network", os.environ["JARI_NETWORK"],
        "--container-host", "127.0.0.1", "--skip-pull-image",
    ]


def run(*arguments, timeout_s=120, **others):
    done = subprocess.run(
        [str(argument) for argument in arguments], cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, **others
    )
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.stdout}{done.stderr}")
    return done.stdout


class Process:
    """A program in the background, whose output goes to a file."""

    def __init__(self, name, *arguments, **others):
        self.log = LOGS / f"{name}.txt"
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(argument) for argument in arguments], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, **others
            )

    def wait_for(self, base, path):
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            if self.process.poll() is not None:
                raise AssertionError(self.log.read_text(encoding="utf-8"))
            try:
                return call(base, "GET", path)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    def stop(self):
        """By SIGTERM: SAM takes its containers along."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class Local:
    """Functions under `sam local`."""

    def __init__(self):
        queues = f"http://127.0.0.1:{os.environ['JARI_SQS_PORT']}"
        run(VENV / "bin/python", "infra/local/queues.py", queues)
        arguments = [*local_arguments(), "--warm-containers", "LAZY"]
        api, functions = free_port(), free_port()
        self.base, self.functions = f"http://127.0.0.1:{api}", f"http://127.0.0.1:{functions}"
        self.queues, self.processes = queues, []
        try:
            self.start("api", "start-api", api, *arguments)
            self.start("functions", "start-lambda", functions, *arguments)
            self.processes[0].wait_for(self.base, "/health")
            self.processes[1].wait_for(self.functions, "/")
            self.wake()
        except BaseException:
            # Nobody else knows of them yet.
            self.stop()
            raise

    def start(self, name, command, port, *arguments):
        self.processes.append(Process(name, VENV / "bin/sam", "local", command, "--port", port, *arguments))

    def wake(self):
        """A container's start counts against its function's timeout, which a busy machine may miss: the first requests
        start them, before anything is asked for in earnest."""
        for method, path in WAKING:
            for _ in range(MAX_STARTS):
                if call(self.base, method, path).status != 502:
                    break
            else:
                raise AssertionError(f"{method} {path} finds no function that starts")

    def invoke(self, function, payload):
        """What a function answers. One that did not start in time, as on a busy machine, has answered nothing."""
        path = f"/2015-03-31/functions/{function}/invocations"
        for _ in range(MAX_STARTS):
            answer = call(self.functions, "POST", path, payload)
            if answer.body:
                return answer.json
        raise AssertionError(f"{function} does not start")

    def admin(self, **command):
        reply = self.invoke("Admin", command)
        if "reply" not in reply or reply["reply"] == "refused":
            raise AssertionError(f"{command}: {reply}")
        return reply

    def open_in(self, seconds):
        definition = json.loads((ROOT / SALE).read_text(encoding="utf-8"))
        opens_at = int((time.time() + seconds) * 1000)
        self.admin(command="apply", definition=definition, opensAt=opens_at, by="test")

    def open_now(self):
        self.admin(command="open", event=EVENT, by="test")

    def pump(self):
        pump = Process(
            "pump", JARI, "pump", "--lambda-endpoint", self.functions, "--queue-endpoint", self.queues, "--every", 1, "--json"
        )
        self.processes.append(pump)
        return pump

    def rows(self, query):
        container = run("docker", "ps", "--quiet", "--filter", f"name={os.environ['JARI_PROJECT']}.postgres").strip()
        psql = ["docker", "exec", container, "psql", "--host", "/tmp", "--username", "jari", "--tuples-only"]
        return [line.split("|") for line in run(*psql, "--no-align", "--command", query).splitlines()]

    def stop(self):
        for process in reversed(self.processes):
            if process.process.poll() is None:
                process.stop()


# What functions have under `sam local`.
VARIABLES = json.loads((ROOT / "infra/local/env.json").read_text(encoding="utf-8"))["Parameters"]
# Where `jari serve` keeps the same.
SECRETS = {
    "master-key": VARIABLES["MASTER_KEY"],
    "payment-key": VARIABLES["PAYMENT_KEY"],
    "access-token-key.pem": VARIABLES["ACCESS_TOKEN_KEY"].replace("\\n", "\n"),
}


class Served:
    """The same in one process, with the same secrets."""

    def __init__(self, data, opens_in):
        self.data = data
        Path(data).mkdir()
        for name, secret in SECRETS.items():
            file = Path(data) / name
            file.write_text(secret, encoding="utf-8")
            file.chmod(0o600)
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "CORS_ORIGINS": "*"}
        self.process = Process(
            "serve", JARI, "serve", "--port", port, "--data", data, "--sale", f"{SALE}@+{opens_in}s", env=environment
        )
        self.process.wait_for(self.base, "/health")

    def open_now(self):
        run(JARI, "event", "open", EVENT, "--data", self.data)

    def stop(self):
        self.process.stop()
