#!/bin/bash
# Runs once, on the empty cluster, before it can be reached.
set -euo pipefail

psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
	-v password="$(cat "${POSTGRES_PASSWORD_FILE:-/run/secrets/postgres_password}")" <<-'SQL'
	create role replicator replication login password :'password';
SQL
echo "host replication replicator all scram-sha-256" >> "$PGDATA/pg_hba.conf"

# Last, and in force from the next start on: what is committed before must not wait for a standby that is not there yet.
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
	-c "alter system set synchronous_standby_names = 'first 1 (standby)'"
