#!/usr/bin/env bash
# `make test-browser`: the waiting-room page and jari.js in Chromium, against a system of its own; JARI_WEB=DIR tests
# the page of that folder instead of the built-in one. Words given are parts of the names of the tests to run. Pictures
# of every view lie under target/browser/; the last line is the totals.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

infra/local/setup.sh browser
if [[ -f .local/services.env ]]; then
    # shellcheck source=/dev/null
    . .local/services.env
fi
cargo build --workspace --example with-servers --bin jari
exec "${JARI_VENV:-target/venv}/bin/python" tests/browser/run.py "$@"
