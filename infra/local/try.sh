#!/usr/bin/env bash
# Runs the curl lines of README.md as pasted, against http://127.0.0.1:PORT. They stand in the first ```bash block
# between <!-- try --> and <!-- /try -->, and take a person from join to a booking.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() { printf 'try: %s\n' "$*" >&2; exit 1; }

lines=$(awk '
    /^<!-- try -->$/ { between = 1 }
    /^<!-- \/try -->$/ { exit }
    between && /^```$/ { exit }
    inside { print }
    between && /^```bash$/ { inside = 1 }' README.md)
[[ $lines == *curl* ]] || fail "README.md has no curl lines between <!-- try --> and <!-- /try -->"

# The port is the one thing that may differ from what is pasted. A shell at a prompt goes on after a failure; here
# the first one ends it.
said=$(timeout 120 bash -euo pipefail <<<"${lines//:3000/:${PORT:-3000}}" 2>&1) ||
    fail "the lines failed:"$'\n'"$lines"$'\n'"and said:"$'\n'"$said"
printf '%s\n' "$said"
[[ $said != *'"success":false'* ]] || fail "an answer refuses"
[[ $said == *'"reservationId":"'* ]] || fail "no answer is a booking"
