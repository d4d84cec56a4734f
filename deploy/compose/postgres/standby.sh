#!/bin/bash
# A copy of the primary on the first start, then its standby.
set -euo pipefail

primary="host=${PRIMARY_HOST:-primary} port=${PRIMARY_PORT:-5432} user=replicator"
PGPASSWORD=$(cat "${POSTGRES_PASSWORD_FILE:-/run/secrets/postgres_password}")
export PGPASSWORD

if [ ! -s "$PGDATA/PG_VERSION" ]; then
	# Whole or not at all: an attempt that was broken off is made again.
	rm -rf "$PGDATA.new"
	mkdir -p "$(dirname "$PGDATA")"
	# A slot that an earlier attempt or an earlier standby left is used again; `--create-slot` would refuse it.
	create=$(psql "$primary dbname=postgres" -XAtc "select '--create-slot' where not exists
		(select from pg_replication_slots where slot_name = 'standby')")
	pg_basebackup --dbname "$primary" --pgdata "$PGDATA.new" --wal-method stream --checkpoint fast \
		--write-recovery-conf --slot standby $create
	chmod 700 "$PGDATA.new"
	mv "$PGDATA.new" "$PGDATA"
fi
# The name that the primary waits for; the copy above has another, since a copy under way keeps nothing safe.
exec postgres -D "$PGDATA" -c cluster_name=standby
