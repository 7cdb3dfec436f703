#!/bin/sh
# Makes the database that POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB name, once, and serves it.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    password=$(mktemp)
    printf '%s' "$POSTGRES_PASSWORD" >"$password"
    initdb --username "$POSTGRES_USER" --pwfile "$password" --auth-host scram-sha-256 --auth-local trust \
        --encoding UTF8 --locale C.UTF-8 >/dev/null
    rm -f "$password"
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -j postgres >/dev/null
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp
