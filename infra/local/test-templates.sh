#!/usr/bin/env bash
# The templates of the deployment: SAM's and AWS' own linters, checkov, what must hold of all of them (tests/templates),
# and as much of the stack as moto's CloudFormation makes. Asks nothing of AWS. The last line is the totals.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly venv=${JARI_VENV_SAM:-target/venv-sam} checkov=${JARI_VENV_CHECKOV:-target/venv-checkov}
readonly templates=(template.yaml infra/network.yaml infra/cache.yaml infra/database.yaml infra/web.yaml infra/observability.yaml)

infra/local/setup.sh sam
infra/local/setup.sh checkov
export AWS_DEFAULT_REGION=ap-northeast-2 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local SAM_CLI_TELEMETRY=0
"$venv/bin/cfn-lint" "${templates[@]}" infra/protect/api-gateway-*.yaml infra/protect/alb.yaml
"$venv/bin/sam" validate --lint
# Alone among the tools it would ask its maker's server what its findings mean.
"$checkov/bin/checkov" --config-file .checkov.yaml "${templates[@]/#/--file=}"
exec "$venv/bin/python" -W ignore tests/templates/run.py
