import { expect, test } from "bun:test";
import { deleteOldAlertMarks } from "../../src/console/alerts/alerts.ts";
import { deleteRefusals } from "../../src/console/log/refused-log.ts";
import { deleteOldNotices } from "../../src/console/notices/notices.ts";
import type { Statements } from "../../src/db/statements.ts";
import { forgetOldClaims } from "../../src/gateway/idempotency/running.ts";
import { deleteOldShares } from "../../src/keys/limit-shares.ts";
import { deleteOldAudit } from "../../src/ops/audit.ts";
import { withDatabase } from "../support/database.ts";

/** Clean-up jobs must remove rows faster than rows are added, so that no table grows without limit. */

const db = await withDatabase();
const ROWS = 2_500;
const n = `from generate_series(1, ${ROWS}) n`;
const TABLES: Readonly<Record<string, readonly [fill: string, forget: (statements: Statements) => Promise<unknown>]>> =
	{
		idempotency_claim: [
			`(id, account_id, proof, request_id, instance_id, epoch, expires_at) select 'c' || n, 'acc', '', gen_random_uuid(), 'i', 1, now() - interval '1 minute' ${n}`,
			(statements) => forgetOldClaims(statements, Date.now()),
		],
		batch_notice: [
			`(batch_id, account_id, channel, created_at) select 'b' || n, 'acc', 'webhook', now() - interval '31 days' ${n}`,
			deleteOldNotices,
		],
		alert_mark: [
			`(account_id, mark, at) select 'acc', 'mark' || n, now() - interval '401 days' ${n}`,
			deleteOldAlertMarks,
		],
		key_share: [
			`(key_id, kind, instance_id, epoch, amount, seq, at) select 'k' || n, 'rate', 'i', 1, 0, 1, now() - interval '11 minutes' ${n}`,
			deleteOldShares,
		],
		audit_event: [
			`(id, at, actor, action, subject, detail) select 'aud_' || n, now() - interval '31 days', 'a', 'key.create', 's', '{}' ${n}`,
			(statements) => deleteOldAudit(statements, 30),
		],
		refused_request: [
			`(request_id, account_id, key_id, endpoint, code, status, message, refused_at) select gen_random_uuid(), 'acc', 'k', 'chat', 'c', 400, '', now() - interval '31 days' ${n}`,
			(statements) => deleteRefusals(statements, 30),
		],
	};

test.each(Object.entries(TABLES))(
	"one run of the clean-up deletes all old rows of %s, however many",
	async (table, [fill, forget]) => {
		await db.sql.unsafe(`insert into ${table} ${fill}`);
		await forget(db.statements);
		expect(await db.sql.unsafe(`select count(*)::int as rows from ${table}`)).toMatchObject([{ rows: 0 }]);
	},
);
