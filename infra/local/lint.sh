#!/usr/bin/env bash
# `make lint`: the cheap checks first. Any finding is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cargo fmt --all --check
if command -v shellcheck >/dev/null; then
    shellcheck .ci/run infra/local/*.sh
else
    echo "lint: shellcheck is not installed, the shell scripts go unread"
fi
cargo clippy --workspace --all-targets -- -D warnings
cargo test --quiet --workspace --test tidy
