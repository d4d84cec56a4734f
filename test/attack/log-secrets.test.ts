import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { newPerson, operator, PERSON_ENV, signedUp } from "../console/person.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { ask, postJson } from "../support/chat.ts";
import { waitFor } from "../support/wait.ts";
import { withConsole } from "./product.ts";

/** Whichever SQL statement fails, the log contains no data of customers or operators. */

const CANARY = "c4n4ry";
const logPath = join(temporaryFolder(), "log");
const product = await withConsole({ LOG_LEVEL: "debug", TOPUP_SECOND_LOOK_USD: "1000", ...PERSON_ENV }, { logPath });
const { sql } = product.db;
const customer = await signedUp(product);
const boss = await operator(product);

/** Sends requests with the canary in every field: addresses, passwords, tokens, names, reasons, prompts. */
async function everything(): Promise<void> {
	const stranger = newPerson(product);
	const email = `${CANARY}-${crypto.randomUUID()}@example.com`;
	const password = `${CANARY} password of some length`;
	const account = `/api/console/operator/accounts/${customer.accountId}`;
	const idempotencyKey = crypto.randomUUID();
	const secret = `sk_service_${CANARY.padEnd(46, "A")}`;
	await Promise.all([
		stranger.send("POST", "/api/auth/sign-up/email", { name: `Ann ${CANARY}`, email, password }),
		stranger.send("POST", "/api/auth/sign-in/email", { email: customer.email, password }),
		stranger.send("POST", "/api/auth/request-password-reset", { email }),
		stranger.send("POST", "/api/auth/request-password-reset", { email: customer.email }),
		stranger.send("POST", "/api/auth/reset-password", { newPassword: password, token: `${CANARY}token` }),
		stranger.get(`/api/auth/verify-email?token=${CANARY}token`),
		stranger.fetch("/api/console/me", { headers: { cookie: `tollgate.session_token=${CANARY}.${CANARY}` } }),
		customer.send("PATCH", "/api/console/account", { name: `${CANARY} works` }),
		customer.send("POST", "/api/console/invitations", { email, role: "developer" }),
		customer.send("POST", "/api/console/invitations/accept", { token: `${CANARY}${"x".repeat(30)}` }),
		customer.send("POST", "/api/console/keys", { name: `${CANARY} key` }),
		customer.send("POST", "/api/console/credit/top-ups/transfer", { usd: "100" }),
		customer.get(`/api/console/keys/${CANARY}`),
		customer.get(`/api/console/requests?model=${CANARY}`),
		boss.get(`/api/console/operator/accounts?q=${CANARY}`),
		boss.send("POST", `${account}/adjust`, { usd: "1", reason: `${CANARY} reason`, idempotencyKey }),
		boss.send("POST", `${account}/suspend`, { reason: `${CANARY} reason` }),
		boss.send("POST", `${account}/unsuspend`, { reason: `${CANARY} reason` }),
		fetch(`${product.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } }),
		postJson(`${product.url}/v1/chat/completions`, await key, ask(CANARY, { user: CANARY })),
	]);
}
const key = product.secret("100");

const TABLES = "console_user session verification account invitation audit_event ledger_entry top_up".split(" ");
const eachTable = async (statement: (table: string) => string) => {
	for (const table of TABLES) await sql.unsafe(statement(table));
};
const errorLines = () => readFileSync(logPath, "utf8").split("\n");

test("the log of a failing SQL statement contains no secret", async () => {
	await key;
	await everything();
	await sql`create function repeat_it() returns trigger language plpgsql as $$ begin raise exception 'refused: %', new using detail = new::text; end $$`;
	await eachTable(
		(table) => `create trigger repeat_it before insert or update on ${table} for each row execute function repeat_it()`,
	);
	await everything();
	await eachTable((table) => `drop trigger repeat_it on ${table}`);

	await eachTable((table) => `alter table ${table} rename to away_${table}`);
	await everything();
	await eachTable((table) => `alter table away_${table} rename to ${table}`);

	for (const end of ["pg_cancel_backend", "pg_terminate_backend"]) {
		await sql.begin(async (tx) => {
			for (const table of TABLES) await tx.unsafe(`lock table ${table} in access exclusive mode`);
			let isDone = false;
			const asked = everything().finally(() => {
				isDone = true;
			});
			await waitFor(
				async () => {
					await tx.unsafe(
						`select ${end}(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
					);
					return isDone;
				},
				`all statements to be ended by ${end}`,
				40_000,
			);
			await asked;
		});
	}
	const lines = errorLines();
	for (const state of ["P0001", "42P01", "57014"])
		expect([state, lines.some((line) => line.includes(`database error ${state}`))]).toEqual([state, true]);
	expect(lines.filter((line) => line.includes(CANARY)).slice(0, 3)).toEqual([]);
	// Every line was written by the log, and none was printed directly.
	expect(lines.filter((line) => line !== "" && !line.startsWith("{")).slice(0, 3)).toEqual([]);
}, 120_000);
