#!/usr/bin/env bash
# Builds every function for Lambda into .aws-sam/build, and lists their sizes. The first one that SAM builds builds them
# all (Cargo.toml, workspace.metadata.lambda); in parallel they would only wait for each other.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=$(realpath "${JARI_VENV_SAM:-target/venv-sam}")
# First on PATH: cargo-lambda, and the zig that it links with.
export PATH=$venv/bin:$PATH SAM_CLI_TELEMETRY=0 CARGO_TERM_COLOR=never
export AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-ap-northeast-2}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A release is named when it is deployed.
if ! sam build --beta-features --parameter-overrides Release=local "$@" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
printf 'sam-build: %s s\n' "$SECONDS"
"$venv/bin/python" infra/local/bootstraps.py
