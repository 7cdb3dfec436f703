#!/usr/bin/env bash
# Makes images from Debian's packages under the names that infra/compose.yaml and SAM use, for machines with a Docker
# engine that reach no image registry. An image that is there already stays as it is; where a registry answers, nothing
# is made. They are for trying things: what serves people is Amazon's and the projects' own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly venv=${JARI_VENV_SAM:-target/venv-sam}
readonly recipes=infra/local/stand-in
readonly base=jari-stand-in:bookworm
readonly lambda=public.ecr.aws/lambda/provided
readonly redis=redis:7 postgres=postgres:15 sqs=motoserver/moto:5.2.5
readonly images=("$lambda:al2023-x86_64" "$lambda:al2023-rapid-x86_64" "$redis" "$postgres" "$sqs")
work=''

say() { printf 'stand-in-images: %s\n' "$*"; }
fail() { printf 'stand-in-images: %s\n' "$*" >&2; exit 1; }
is_there() { docker image inspect "$1" >/dev/null 2>&1; }

all_there() {
    local image
    for image in "${images[@]}"; do is_there "$image" || return 1; done
}

clean() { if [[ -n $work ]]; then rm -rf "$work"; fi; }

as_root() { if [[ $EUID == 0 ]]; then "$@"; else sudo --non-interactive "$@"; fi; }

make_base() {
    if is_there "$base"; then return; fi
    if ! command -v debootstrap >/dev/null; then
        as_root apt-get -o Acquire::Retries=3 -qq update
        as_root apt-get -o Acquire::Retries=3 -qq install -y --no-install-recommends debootstrap >/dev/null
    fi
    say "$base, by debootstrap"
    as_root debootstrap --variant=minbase --include=ca-certificates bookworm "$work/rootfs" >"$work/log" ||
        fail "debootstrap failed: $(tail -n 3 "$work/log")"
    as_root tar -C "$work/rootfs" -c . | docker import --platform linux/amd64 - "$base" >/dev/null
    as_root rm -rf "$work/rootfs"
}

# Builds an image by a recipe, with a folder as its context.
make_image() {
    local recipe=$1 image=$2 context=$3
    if is_there "$image"; then return; fi
    say "$image"
    mkdir -p "$context"
    # The old builder: the new one is a program of its own, which Debian does not bring.
    DOCKER_BUILDKIT=0 docker build --quiet --network host --file "$recipes/$recipe" --tag "$image" "$context" \
        >"$work/log" 2>&1 || fail "$image was not built: $(tail -n 5 "$work/log")"
}

make_lambda() {
    local emulator
    emulator=$(compgen -G "$venv/lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-x86_64") ||
        fail "no SAM in $venv: run infra/local/setup.sh sam"
    mkdir -p "$work/lambda"
    install -m 755 "$emulator" "$work/lambda/aws-lambda-rie"
    make_image lambda.dockerfile "$lambda:al2023-x86_64" "$work/lambda"
    # The name that SAM gives to the same image once it has put its emulator in.
    docker tag "$lambda:al2023-x86_64" "$lambda:al2023-rapid-x86_64"
}

make_sqs() {
    if is_there "$sqs"; then return; fi
    local requirements=$work/requirements.txt
    grep -E '^(moto|flask|flask-cors)==' infra/local/requirements.txt >"$requirements"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --retries 5 --python-version 3.11 \
        --only-binary :all: --target "$work/sqs/moto" --requirement "$requirements"
    make_image sqs.dockerfile "$sqs" "$work/sqs"
}

if all_there; then exit 0; fi
if [[ $(uname -m) != x86_64 ]]; then fail "stand-ins are made for x86_64 alone"; fi
# Quick where there is no registry, and all that is needed of the largest one where there is.
if timeout 300 docker pull --quiet "$lambda:al2023-x86_64" >/dev/null 2>&1; then
    say "a registry answers: Docker and SAM pull what they need"
    exit 0
fi

work=$(mktemp -d)
trap clean EXIT
make_base
make_lambda
make_image redis.dockerfile "$redis" "$work/redis"
install -D "$recipes/postgres.sh" "$work/postgres/postgres.sh"
make_image postgres.dockerfile "$postgres" "$work/postgres"
make_sqs
