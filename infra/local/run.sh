#!/usr/bin/env bash
# `make run`: the whole system on http://127.0.0.1:PORT, stopped by Ctrl-C.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

infra/local/setup.sh run
# Each open socket is an open file; many systems start with 1024.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
cargo build --profile local -p cli

readonly jari=${CARGO_TARGET_DIR:-target}/local/jari
arguments=(
    serve --port "${PORT:-3000}"
    --sale infra/sales/ktx-2026-chuseok.json@now
    --sale infra/sales/concert-2026.json@+2m
)

# Without containers the server starts and stops its own Redis and PostgreSQL, and Ctrl-C is its own.
if [[ ! -f .local/services.env ]]; then exec "$jari" "${arguments[@]}"; fi

# shellcheck source=/dev/null
. .local/services.env
read -r -a containers <<<"$JARI_CONTAINERS"
code=0
# Ctrl-C reaches the server as well; this shell outlives it to stop the containers.
trap : INT TERM
"$jari" "${arguments[@]}" --redis "$JARI_REDIS_URL" --database "$JARI_DATABASE_URL" || code=$?
infra/local/containers.sh stop "${containers[@]}"
exit "$code"
