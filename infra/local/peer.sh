#!/usr/bin/env bash
# A peer to measure beside, which is no part of this product: an Express server before Redis.
#   peer.sh install       what it needs, and wrk, from the system's packages
#   peer.sh run FOLDER    its server.js; PORT, REDIS_PORT and EVENT_ID are passed on
set -euo pipefail

# Where Debian keeps its modules; a Node.js from elsewhere does not look there by itself.
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs}

has() { command -v "$1" >/dev/null; }

case ${1:-} in
    install)
        packages=()
        has wrk || packages+=(wrk)
        if ! has node || ! node -e 'require("express"); require("redis")' 2>/dev/null; then
            packages+=(node-express node-redis)
            has node || packages+=(nodejs)
        fi
        if ((${#packages[@]} == 0)); then exit; fi
        has apt-get || { echo "peer: install ${packages[*]} first" >&2; exit 1; }
        as_root=(sudo --non-interactive)
        if [[ $EUID == 0 ]]; then as_root=(); fi
        "${as_root[@]}" apt-get -qq update
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
            "${packages[@]}" >/dev/null
        ;;
    run)
        cd "${2:?a folder with server.js}"
        exec node server.js
        ;;
    *)
        echo "usage: peer.sh install|run FOLDER" >&2
        exit 2
        ;;
esac
