#!/usr/bin/env bash
# Starts `make run` as a newcomer would, does what README.md says, presses Ctrl-C, and looks that nothing is left.
# Linux only: it reads /proc.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The first start builds.
readonly start_timeout_s=1800 stop_timeout_s=30
readonly log=${CARGO_TARGET_DIR:-target}/check-run.txt
group=''
started=''

say() { printf 'check-run: %s\n' "$*"; }
fail() {
    say "$*; the end of what it printed:" >&2
    tail -n 40 "$log" >&2
    exit 1
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# "PID START" of the process: the number alone may be another's by the time it is looked at again.
identity() {
    local stat
    local -a fields
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    # The name, in parentheses, may hold spaces.
    read -r -a fields <<<"${stat##*) }"
    # A zombie has ended; its parent only has not looked yet.
    if [[ ${fields[0]} != Z ]]; then echo "$1 ${fields[19]}"; fi
}

# The process and all that descend from it.
family() {
    local parent=$1 stat pid
    local -a fields
    identity "$parent"
    for stat in /proc/[0-9]*/stat; do
        pid=${stat//[!0-9]/}
        { read -r stat <"$stat"; } 2>/dev/null || continue
        read -r -a fields <<<"${stat##*) }"
        if [[ ${fields[1]} == "$parent" ]]; then family "$pid"; fi
    done
}

still_there() {
    local pid start
    while read -r pid start; do
        if [[ -n $pid && $(identity "$pid") == "$pid $start" ]]; then echo "$pid"; fi
    done <<<"$1"
}

wait_for() {
    local timeout_s=$1 what=$2 deadline
    shift 2
    deadline=$((SECONDS + timeout_s))
    until "$@"; do
        if ((SECONDS >= deadline)); then fail "not within $timeout_s s: $what"; fi
        sleep 0.2
    done
}

healthy() {
    [[ -n $(identity "$group") ]] || fail "make run ended by itself"
    curl --silent --fail --max-time 2 --output /dev/null "http://127.0.0.1:$PORT/health"
}

nothing_left() { [[ -z $(still_there "$started") ]]; }

# What this script started ends with it, also when it fails half way.
stop_on_failure() {
    local pid
    [[ -n $group ]] || return 0
    for pid in $(still_there "$started"$'\n'"$(family "$group")"); do kill -s KILL "$pid" 2>/dev/null || true; done
}

PORT=$(free_port)
export PORT
mkdir -p "$(dirname "$log")"
trap stop_on_failure EXIT
say "make run on port $PORT"
# Job control gives it a process group of its own, as a terminal would, and leaves SIGINT to it.
set -m
make run >"$log" 2>&1 </dev/null &
group=$!
set +m

wait_for "$start_timeout_s" "/health" healthy
say "healthy after $SECONDS s; README.md's lines:"
infra/local/try.sh

started=$(family "$group")
say "Ctrl-C, to $(wc -l <<<"$started") processes"
kill -s INT -- "-$group"
wait_for "$stop_timeout_s" "everything it started is gone" nothing_left
# It was interrupted: make says so by its exit code.
wait "$group" || true
group=
if curl --silent --max-time 2 --output /dev/null "http://127.0.0.1:$PORT/health"; then
    fail "port $PORT still answers"
fi
say "nothing is left"
