#!/usr/bin/env bash
# The containers of infra/compose.yaml, by Docker Compose, the new one or the old.
#   containers.sh start [SERVICE…]   starts them and waits until they are healthy
#   containers.sh stop [SERVICE…]    stops them; what they keep stays
#   containers.sh down               removes them and what they keep
# JARI_PROJECT names another set of them, beside JARI_NETWORK and the ports of infra/compose.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly start_timeout_s=120

compose() {
    local -a program=(docker-compose)
    if docker compose version >/dev/null 2>&1; then program=(docker compose); fi
    "${program[@]}" --project-name "${JARI_PROJECT:-jari}" --file infra/compose.yaml "$@"
}

all_healthy() {
    local container
    for container in "$@"; do
        [[ $(docker inspect --format '{{.State.Health.Status}}' "$container") == healthy ]] || return 1
    done
}

start() {
    local -a containers
    compose up --detach "$@"
    mapfile -t containers < <(compose ps --quiet "$@")
    until all_healthy "${containers[@]}"; do
        if ((SECONDS > start_timeout_s)); then
            compose logs --tail 20 "$@" >&2
            echo "containers: not healthy within $start_timeout_s s" >&2
            exit 1
        fi
        sleep 0.5
    done
}

command=${1:-}
case $command in
    start) start "${@:2}" ;;
    stop) compose stop "${@:2}" ;;
    down) compose down --volumes --timeout 5 ;;
    *) sed -n '2,/^set/{/^# /s/^# //p}' "${BASH_SOURCE[0]}" >&2; exit 1 ;;
esac
