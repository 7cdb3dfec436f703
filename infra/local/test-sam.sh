#!/usr/bin/env bash
# `make test-sam`: the functions as they are deployed, in containers under `sam local`, with Redis, PostgreSQL and SQS
# beside them: every payload of events/, and a whole small sale, answered as `jari serve` answers. The functions are
# built without optimisation, unless JARI_SAM_BUILD=release asks for what is deployed. The last line is the totals.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

if ! docker info >/dev/null 2>&1; then
    echo "test-sam: it needs a Docker engine" >&2
    exit 1
fi
infra/local/setup.sh test
infra/local/setup.sh sam
infra/local/stand-in-images.sh
JARI_SAM_BUILD=${JARI_SAM_BUILD:-quick} infra/local/sam-build.sh
# With an example of the tests: with their features, so that nothing is built twice.
cargo build --workspace --example with-servers --bin jari

JARI_REDIS_PORT=$(free_port) JARI_POSTGRES_PORT=$(free_port) JARI_SQS_PORT=$(free_port)
JARI_BINARY=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/jari
JARI_SAM_LOGS=$(realpath "${CARGO_TARGET_DIR:-target}")/test-sam
export JARI_REDIS_PORT JARI_POSTGRES_PORT JARI_SQS_PORT JARI_BINARY JARI_SAM_LOGS
export JARI_PROJECT=jari-test-$$ JARI_NETWORK=jari-test-$$
# A busy machine may take longer than 20 s to start a container.
export SAM_CLI_CONTAINER_CONNECTION_TIMEOUT=120
export SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
mkdir -p "$JARI_SAM_LOGS"
trap 'infra/local/containers.sh down >/dev/null 2>&1' EXIT
infra/local/containers.sh start
"${JARI_VENV_SAM:-target/venv-sam}/bin/python" -W ignore tests/sam/run.py
