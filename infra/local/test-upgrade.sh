#!/usr/bin/env bash
# `make test-upgrade OLD=REVISION`: that release and this one work on one sale at once, as during a rollout. Builds the
# older one into target/upgrade. The last line is the totals.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly old=${OLD:?name the release that is deployed: make test-upgrade OLD=v1.2.0}
readonly tree=target/upgrade/tree

infra/local/setup.sh test
mkdir -p target/upgrade
git worktree remove --force "$tree" 2>/dev/null || true
git worktree add --detach "$tree" "$old" >/dev/null
trap 'git worktree remove --force "$tree"' EXIT
(cd "$tree" && CARGO_TARGET_DIR=$PWD/../build cargo build --workspace --bin jari)
cargo build --workspace --bin jari
python3 tests/sam/upgrade.py "$PWD/target/upgrade/build/debug/jari" "$(realpath "${CARGO_TARGET_DIR:-target}")/debug/jari" \
    "$tree/infra/sales/ktx-2026-chuseok.json"
