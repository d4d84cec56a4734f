/** A database full of customers, written by set-based statements: millions of them are no work for the service's own commands. */
import { createDigest } from "../../src/keys/digest.ts";
import { newSecret, shownParts } from "../../src/keys/secret.ts";
import type { BenchDatabase } from "./product.ts";
import { KEY_PEPPER, SERVICE_NAME } from "./product.ts";

const BATCH = 20_000;
const CREDIT_NANO_USD = 1_000 * 1e9;

/** So many accounts with USD 1,000 and a key each; gives the secrets. */
export async function fillWithKeys(database: BenchDatabase, keys: number): Promise<string[]> {
	const digest = createDigest(KEY_PEPPER);
	const all: string[] = [];
	for (let from = 0; from < keys; from += BATCH) {
		const secrets = Array.from({ length: Math.min(BATCH, keys - from) }, () => newSecret(SERVICE_NAME));
		const rows = secrets.map((secret, index) => {
			const number = String(from + index).padStart(26, "0");
			const { prefix, lastFour } = shownParts(secret, SERVICE_NAME);
			return { number, digest: digest(secret), prefix, last: lastFour };
		});
		await database.sql`
			with k as materialized (
				select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as x(number text, digest text, prefix text, last text)
			), a as (
				insert into account (id, email, name, signed_in_at, topped_up)
				select 'acc_' || number, number || '@example.com', 'bench', now(), true from k returning id
			), t as (
				insert into top_up (id, account_id, amount_nano_usd, method, reference, state, decided_at, decided_by)
				select 'top_' || number, 'acc_' || number, ${CREDIT_NANO_USD}::bigint, 'transfer', 'bench-' || number, 'confirmed', now(), 'bench' from k
			), e as (
				insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note)
				select 'led_' || number, 'acc_' || number, 'top_up', ${CREDIT_NANO_USD}::bigint, 'topup:top_' || number, 'bench', '' from k
			), b as (
				insert into budget (id, kind, account_id, limit_nano_usd)
				select 'acc_' || number, 'account', 'acc_' || number, ${CREDIT_NANO_USD}::bigint from k
				union all
				select 'key_' || number, 'key', 'acc_' || number, null::bigint from k
			)
			insert into api_key (id, account_id, name, digest, prefix, last_four, models)
			select 'key_' || number, 'acc_' || number, 'bench', digest, prefix, last, '[]'::jsonb from k`;
		for (const secret of secrets) all.push(secret);
	}
	await database.sql`analyze`;
	// Else the disk is busy with these rows while the service is measured.
	await database.sql`checkpoint`;
	return all;
}
