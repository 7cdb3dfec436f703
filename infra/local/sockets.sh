#!/usr/bin/env bash
# `make sockets`: ten thousand open sockets on one server while people are admitted and some of the sockets die. Needs
# 12 000 open files for the server and as many for the test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

infra/local/setup.sh test
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
cargo build --workspace --example serve
exec cargo test --workspace --test system ten_thousand -- --ignored --nocapture
