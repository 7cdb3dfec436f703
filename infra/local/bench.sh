#!/usr/bin/env bash
# `make bench`: the figures that the product has to reach, as a table and in target/bench.json.
#   ONLY=name        one row, or the row of one figure
#   WAITING, ROUNDS  2000000 people and 7 rounds, unless said otherwise
#   PEER=folder      a server.js to measure the whole system beside (infra/local/peer.sh)
#   JARI_BENCH_PROFILE=local   built in a minute and nearly as fast, for a first look
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly profile=${JARI_BENCH_PROFILE:-release} target=${CARGO_TARGET_DIR:-target}
infra/local/setup.sh test
# Each connection is an open file; many systems start with 1024.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

arguments=(--output "$target/bench.json" --waiting "${WAITING:-2000000}" --rounds "${ROUNDS:-7}")
if [[ -n ${ONLY:-} ]]; then arguments+=(--only "$ONLY"); fi
if [[ -n ${PEER:-} ]]; then
    infra/local/peer.sh install
    arguments+=(--peer "$(realpath "$PEER")")
fi
# The whole workspace: the functions and jari are measured too.
cargo build --profile "$profile" --workspace --bins --example empty
mkdir -p "$target"
exec "$target/$profile/bench" "${arguments[@]}"
