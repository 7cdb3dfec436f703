#!/usr/bin/env bash
# `make soak`: a sale under load and one random fault after the other, for JARI_SOAK_MINUTES (5), drawn from JARI_SOAK_SEED
# (any). Ends with figures, and fails if anything happened that must not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

infra/local/setup.sh test
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
cargo build --workspace --example serve
exec cargo test --workspace --test faults soak::for_minutes -- --exact --ignored --nocapture
