#!/usr/bin/env bash
# `make deploy`: ENVIRONMENT=dev (the default) or prod of samconfig.toml, in the account and region that AWS' own
# variables and files name. Words given are parameters of template.yaml: infra/local/deploy.sh DefaultEventId=concert-2026
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

infra/local/setup.sh sam
# Makes the keys of a first deployment.
cargo build --profile local -p cli
exec "${JARI_VENV_SAM:-target/venv-sam}/bin/python" infra/deploy/deploy.py "${ENVIRONMENT:-dev}" "$@"
