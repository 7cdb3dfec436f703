#!/usr/bin/env bash
# `make sam-local`: the deployed functions in containers as SAM starts them, behind http://127.0.0.1:PORT, with Redis,
# PostgreSQL and SQS in containers beside them, both shipped sales loaded, and jari pump for schedules and queues. Ctrl-C
# stops it all; what Redis and PostgreSQL keep stays until infra/local/containers.sh down. The functions themselves can
# be called at http://127.0.0.1:PORT+1, as Lambda's API has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly venv=${JARI_VENV_SAM:-target/venv-sam} port=${PORT:-3000}
readonly api=http://127.0.0.1:$port lambda=http://127.0.0.1:$((port + 1))
readonly queues=http://127.0.0.1:${JARI_SQS_PORT:-9324} logs=.local/sam
readonly image=public.ecr.aws/lambda/provided:al2023-rapid-x86_64
readonly start_timeout_s=120
children=()

say() { printf 'sam-local: %s\n' "$*"; }
fail() { printf 'sam-local: %s\n' "$*" >&2; exit 1; }

# By SIGTERM: SAM takes its containers along, and a job in the background does not hear Ctrl-C.
stop() {
    trap '' INT TERM
    if ((${#children[@]} > 0)); then
        kill -s TERM "${children[@]}" 2>/dev/null || true
        wait "${children[@]}" || true
    fi
    infra/local/containers.sh stop
}

start() {
    local name=$1
    shift
    setsid "$@" >"$logs/$name.txt" 2>&1 &
    children+=("$!")
}

answers() { curl --silent --output /dev/null --max-time 30 "$1"; }

wait_for() {
    until answers "$1"; do
        ((SECONDS < start_timeout_s)) || fail "$1 does not answer: $logs"
        sleep 0.5
    done
}

invoke() {
    local answer
    # One that did not start in time, as on a busy machine, has answered nothing.
    for _ in {1..5}; do
        answer=$(curl --silent --show-error --max-time 60 --request POST --data "$2" \
            "$lambda/2015-03-31/functions/$1/invocations")
        if [[ -n $answer ]]; then break; fi
    done
    [[ $answer == *'"reply"'* && $answer != *'"refused"'* ]] || fail "$1: $answer"
}

# The sale's definition; opened as many seconds from now, unless it is there already.
load() {
    local sale=$1 in_s=$2
    invoke Admin "$("$venv/bin/python" -c '
import json, sys, time
definition = json.load(open(sys.argv[1], encoding="utf-8"))
opens_at = int((time.time() + int(sys.argv[2])) * 1000)
print(json.dumps({"command": "apply", "definition": definition, "opensAt": opens_at, "by": "sam-local"}))
' "$sale" "$in_s")"
}

command -v docker >/dev/null || fail "it needs Docker"
infra/local/setup.sh sam
infra/local/stand-in-images.sh
say "building"
infra/local/sam-build.sh
cargo build --profile local -p cli
mkdir -p "$logs"
trap 'exit 130' INT TERM
trap stop EXIT
infra/local/containers.sh start
"$venv/bin/python" infra/local/queues.py "$queues"

# As make run has it, so that README.md's lines pay there and here.
if [[ ! -s .local/payment-key ]]; then (umask 077 && openssl rand -hex 32 >.local/payment-key); fi
"$venv/bin/python" -c '
import json, sys
variables = json.load(open("infra/local/env.json"))
variables["Parameters"]["PAYMENT_KEY"] = open(".local/payment-key").read().strip()
json.dump(variables, open(sys.argv[1], "w"))
' "$logs/env.json"

arguments=(
    --env-vars "$logs/env.json" --docker-network "${JARI_NETWORK:-jari}" --container-host 127.0.0.1
    --warm-containers LAZY
)
if docker image inspect "$image" >/dev/null 2>&1; then arguments+=(--skip-pull-image); fi
# A busy machine may take longer than 20 s to start a container.
export SAM_CLI_CONTAINER_CONNECTION_TIMEOUT=120
export SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
SECONDS=0
start api "$venv/bin/sam" local start-api --port "$port" "${arguments[@]}"
start lambda "$venv/bin/sam" local start-lambda --port "$((port + 1))" "${arguments[@]}"
wait_for "$lambda/"
invoke Admin '{"command":"migrate"}'
load infra/sales/ktx-2026-chuseok.json 0
load infra/sales/concert-2026.json 120
start pump "${CARGO_TARGET_DIR:-target}/local/jari" pump --lambda-endpoint "$lambda" --queue-endpoint "$queues"
wait_for "$api/health"

say "$api answers; functions at $lambda; logs in $logs; Ctrl-C ends it"
say "try: PORT=$port infra/local/try.sh"
wait -n "${children[@]}" || true
say "something ended by itself: $logs" >&2
false
