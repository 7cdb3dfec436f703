#!/usr/bin/env bash
# `make test`: every test of the workspace against a single Redis, then what sees how Redis is laid out against a cluster
# too, and the API's against the other ways in which deployments have Redis.
# The last line is the totals of all that ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly reports=${CARGO_TARGET_DIR:-target}/test-reports
failed=no

has_nextest() { cargo nextest --version >/dev/null 2>&1; }

say() { printf '\ntest: %s\n' "$*"; }

# Runs a command, keeps what it printed for the totals and goes on when it fails.
report() {
    local name=$1
    shift
    "$@" 2>&1 | tee "$reports/$name.txt" || failed=yes
}

# Whole runs of the suite share the servers that with-servers starts.
suite() {
    local topology=$1
    shift
    local -a runner=(cargo test)
    if has_nextest; then runner=(cargo nextest run --config-file infra/local/nextest.toml); fi
    say "Redis: $topology"
    JARI_TEST_REDIS=$topology report "$topology" \
        "${CARGO_TARGET_DIR:-target}/debug/examples/with-servers" "${runner[@]}" --workspace --no-fail-fast "$@"
}

# Sums cargo test's "test result: ok. 5 passed; 0 failed; 1 ignored; …" and nextest's "Summary [ 1.5s] 6 tests run: 4
# passed, 1 failed, 1 timed out, 1 skipped". What did not pass failed.
totals() {
    sed $'s/\x1b\\[[0-9;]*m//g' "$reports"/*.txt | awk '
        /^test result: / { gsub(/[;.]/, ""); read_counts(); next }
        /^[0-9]+ passed, [0-9]+ failed/ { gsub(/,/, ""); read_counts(); next }
        /^ *Summary \[/ { sub(/^[^]]*\]/, ""); gsub(/[(,)]/, " "); read_counts() }
        function read_counts(    i) {
            for (i = 1; i < NF; i++) {
                if ($i !~ /^[0-9]+$/) continue
                if ($(i + 1) == "passed") passed += $i
                if ($(i + 1) == "failed" || $(i + 1) == "timed" || $(i + 1) == "exec") failed += $i
                if ($(i + 1) == "skipped" || $(i + 1) == "ignored") skipped += $i
            }
        }
        END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }'
}

infra/local/setup.sh test
if [[ -f .local/services.env ]]; then
    # shellcheck source=/dev/null
    . .local/services.env
fi
rm -rf "$reports"
mkdir -p "$reports"
# A crowd's connections are open files; many systems start with 1024.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

# The whole workspace each time: a part of it would have its dependencies built once more, with fewer features.
# With the binaries of the functions that tests/faults kills.
cargo build --workspace --example with-servers --example serve --bin book --bin relay --bin persist --bin admit --bin pay --bin poll
suite single
if has_nextest; then
    say "documentation"
    report documentation cargo test --workspace --doc --no-fail-fast
fi
if [[ -n ${JARI_TEST_REDIS_URL:-} ]]; then
    say "cluster, TLS and replicas are left out: they need redis-server on PATH"
else
    # What chooses its Redis itself, or takes long and asks for one thing, has been tried above.
    readonly -a others=(--skip topologies:: --skip fairness:: --skip contention:: --skip contract::)
    suite cluster --test smoke --test api --test sim --test system -- "${others[@]}"
    for topology in tls replica cluster3; do suite "$topology" --test api -- "${others[@]}"; done
fi

if command -v valgrind >/dev/null && [[ -z ${JARI_TEST_REDIS_URL:-} ]]; then
    say "instructions of the handlers"
    report instructions cargo test --workspace --test instructions -- --ignored
else
    say "instructions of the handlers are left out: they need valgrind and redis-server on PATH"
fi

say "the templates of a deployment"
report templates infra/local/test-templates.sh

if docker info >/dev/null 2>&1 && { docker compose version || docker-compose version; } >/dev/null 2>&1; then
    say "the functions as they are deployed, under sam local"
    report sam infra/local/test-sam.sh
else
    say "sam local is left out: it needs a Docker engine and Compose"
fi

# A machine without apt-get may have no Chromium; it is said, not passed over in silence.
if command -v chromium >/dev/null || command -v apt-get >/dev/null || [[ -n ${JARI_CHROMIUM:-} ]]; then
    say "the page in a browser"
    report browser infra/local/test-browser.sh
else
    say "the page is left out: it needs Chromium on PATH, or named by JARI_CHROMIUM"
fi

line=$(totals)
printf '\n%s\n' "$line" | tee "$reports/totals"
[[ $failed == no && $line != "0 passed"* && $line == *" 0 failed"* ]]
