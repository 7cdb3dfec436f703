#!/usr/bin/env bash
# `make mutate`: each deliberate fault of tests/sim/mutations.rs must make the simulated sale and the real one differ.
# `infra/local/mutate.sh lib/seats` tries those alone whose file or reason has these words.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cargo test --workspace --test sim --no-run
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Faulty steps are loud on the error output: it is shown only where the run itself failed.
status=0
JARI_SIM_MUTATIONS=${1:-all} RUST_BACKTRACE=0 cargo test --quiet --workspace --test sim deliberate_faults \
    -- --nocapture 2>"$log" | tee "$log.table" | grep -E '^(caught|SURVIVED)' || status=$?
caught=$(grep -c '^caught' "$log.table" || true)
survived=$(grep -c '^SURVIVED' "$log.table" || true)
rm -f "$log.table"
printf '\nmutate: %d caught, %d survived\n' "$caught" "$survived"
if ((status != 0 || survived > 0 || caught == 0)); then
    tail -n 20 "$log" >&2
    exit 1
fi
