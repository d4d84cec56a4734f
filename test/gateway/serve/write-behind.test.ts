import { describe, expect, test } from "bun:test";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withUpstream("vllm");
upstream.always(() => reply().text("a b c"));
const service = await withService({ models: chatModel({ url: upstream.url, dialect: "vllm" }) });

const COST = priceOf(6, 3);

async function send(secret: string, count: number): Promise<void> {
	const answers = await Promise.all(
		Array.from({ length: count }, async (_, at) => {
			const response = await service.chat(secret, ask("one two three", { stream: at % 2 === 0 }));
			await response.text();
			return response.status;
		}),
	);
	expect(answers.every((status) => status === 200)).toBe(true);
}

async function expectAll(accountId: string, count: number): Promise<void> {
	await service.settled();
	const rows = await service.usage(accountId);
	expect(rows).toHaveLength(count);
	expect(rows.every((row) => Number(row.charged_nano_usd) === COST)).toBe(true);
	const balance = await service.balance(accountId);
	expect([Number(balance.spent), Number(balance.held)]).toEqual([count * COST, 0]);
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
}

test("a settlement of a request reaches Postgres within a second", async () => {
	let quickestMs = Number.POSITIVE_INFINITY;
	// Takes the fastest of ten tries, because load on the machine only makes tries slower.
	for (let attempt = 0; attempt < 10 && quickestMs >= 1_000; attempt++) {
		const { accountId, secret } = await service.customer();
		await send(secret, 1);
		const answeredAtMs = performance.now();
		await waitFor(async () => (await service.usage(accountId)).length === 1, "the row");
		quickestMs = Math.min(quickestMs, performance.now() - answeredAtMs);
		await onlyUsage(service, accountId);
	}
	expect(quickestMs).toBeLessThan(1_000);
});

describe("a request's usage row is stored exactly once", () => {
	test("although Postgres refuses every settlement for a while", async () => {
		const { accountId, secret } = await service.customer();
		await send(secret, 1);
		await service.settled();
		await service.db.sql.unsafe(`
			create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
			create trigger refuse before insert on usage_event for each row execute function refuse()`);
		await send(secret, 20);
		expect(await service.usage(accountId)).toHaveLength(1);
		expect(service.app.instanceLease.present()?.view().queued).toBe(20);
		await service.db.sql.unsafe("drop trigger refuse on usage_event; drop function refuse()");
		await expectAll(accountId, 21);
	});

	test("although connections break and writes are repeated with the same ids", async () => {
		const { accountId, secret } = await service.customer();
		await send(secret, 1);
		await service.settled();
		const failedFlushes = () => service.logged.filter(({ message }) => message === "a flush failed; retrying").length;
		const failedBefore = failedFlushes();
		let sent = 1;
		// Delays each flush, so that a flush is running most of the time.
		await service.db.sql.unsafe(`
			create function linger() returns trigger language plpgsql as $$ begin perform pg_sleep(0.05); return null; end $$;
			create trigger linger after insert on usage_event for each statement execute function linger()`);
		// Sends requests until three flushes were interrupted.
		while (failedFlushes() < failedBefore + 3 && sent < 2_000) {
			const sending = send(secret, 10);
			sent += 10;
			await service.db
				.sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'tollgate%'`;
			await sending;
		}
		expect(failedFlushes()).toBeGreaterThanOrEqual(failedBefore + 3);
		await service.db.sql.unsafe("drop trigger linger on usage_event; drop function linger()");
		await expectAll(accountId, sent);
	}, 20_000);
});
