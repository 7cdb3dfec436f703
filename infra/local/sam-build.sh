#!/usr/bin/env bash
# Builds every function for Lambda into .aws-sam/build, and lists their sizes. The first one that SAM builds builds them
# all (Cargo.toml, workspace.metadata.lambda); in parallel they would only wait for each other.
# JARI_SAM_BUILD=quick leaves out what makes them small and fast and takes most of the time: for tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=$(realpath "${JARI_VENV_SAM:-target/venv-sam}")
# First on PATH: cargo-lambda, and the zig that it links with.
export PATH=$venv/bin:$PATH SAM_CLI_TELEMETRY=0 CARGO_TERM_COLOR=never
export AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-ap-northeast-2}
checks=()
if [[ ${JARI_SAM_BUILD:-release} == quick ]]; then
    export SAM_BUILD_MODE=debug CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=none
    checks=(--quick)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A release is named when it is deployed.
if ! sam build --beta-features --parameter-overrides Release=local "$@" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
printf 'sam-build: %s s\n' "$SECONDS"
"$venv/bin/python" infra/local/bootstraps.py "${checks[@]}"
