#!/bin/sh
# Prints a fresh .env. KEY_PEPPER is part of the books: without it no stored key works. Back it up apart from them.
set -eu
for name in POSTGRES_PASSWORD KEY_PEPPER CONSOLE_SECRET METRICS_TOKEN GRAFANA_PASSWORD; do
	echo "$name=$(openssl rand -hex 32)"
done
echo "SITE=localhost"
echo "PUBLIC_URL=https://localhost"
