import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { createLog, silentLog } from "../../src/base/log.ts";
import type { Statements } from "../../src/db/statements.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import {
	ACCOUNT_ROWS_PER_MINUTE_MAX,
	createRefusals,
	type Refusal,
	ROWS_PER_MINUTE_MAX,
	WAITING_MAX,
} from "../../src/ops/refusals.ts";
import { withDatabase } from "../support/database.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const db = await withDatabase();

/** A simulated Postgres that can refuse statements or never answer. */
function setUp() {
	const clock = createManualClock(Date.UTC(2026, 10, 21));
	const logged: string[] = [];
	const log = createLog({ level: "debug", write: (line) => void logged.push(line) });
	let state: "up" | "refusing" | "hanging" = "up";
	let asked = 0;
	const run = (strings: TemplateStringsArray, ...values: readonly (string | number | boolean | null)[]) => {
		asked += 1;
		if (state === "refusing") return Promise.reject(new Error("connection refused"));
		if (state === "hanging") return new Promise<never>(() => {});
		return db.statements(strings, ...values);
	};
	const statements = Object.assign(run, { end: async () => {} }) as Statements;
	const refusals = createRefusals({ statements, clock, log });
	return {
		clock,
		refusals,
		logged,
		asked: () => asked,
		set(next: typeof state) {
			state = next;
		},
		/** Advances the clock by a second and waits until all refusals are stored. */
		async written() {
			clock.advance(1_000);
			await waitFor(() => refusals.waiting() === 0, "the refusals to be written");
		},
	};
}

function refusal(keyId: string, change: Partial<Refusal> = {}): Refusal {
	return {
		requestId: newUuid(),
		accountId: "acc_1",
		keyId,
		projectId: null,
		model: "test-model",
		endpoint: "chat",
		code: "insufficient_quota",
		status: 402,
		message: "The credit does not cover it.",
		param: null,
		shortage: null,
		atMs: Date.UTC(2026, 10, 21),
		...change,
	};
}

const rowsOf = async (keyId: string) => [
	...(await db.sql`select * from refused_request where key_id = ${keyId} order by refused_at, request_id`),
];

test("a refused request is stored with amounts and cleaned texts within a second", async () => {
	const { refusals, clock, asked, written } = setUp();
	const shortage = {
		availableNanoUsd: nanoUsd(1),
		heldNanoUsd: nanoUsd(2),
		requiredNanoUsd: nanoUsd(Number.MAX_SAFE_INTEGER),
		affordableMaxTokens: 812,
	};
	const atMs = clock.wallMs() - 5;
	const nasty = `a\0b\ud800c\n${"x".repeat(1_000)}`;
	const one = refusal("key_amounts", { shortage, atMs, model: nasty, message: `${nasty}\udc00`, param: nasty });
	refusals.record(one);
	refusals.record(refusal("key_amounts", { atMs: atMs + 1, code: "model_not_found", status: 404, model: null }));
	clock.advance(999);
	expect(asked()).toBe(0);
	await written();
	const [first, second] = await rowsOf("key_amounts");
	expect(first).toMatchObject({
		request_id: one.requestId,
		account_id: "acc_1",
		endpoint: "chat",
		code: "insufficient_quota",
		status: 402,
		available_nano_usd: "1",
		held_nano_usd: "2",
		required_nano_usd: String(Number.MAX_SAFE_INTEGER),
		affordable_tokens: 812,
		refused_at: new Date(atMs),
		repeats: 0,
		repeated_at: null,
	});
	expect(first?.model).toStartWith("a\u{fffd}b\u{fffd}c\u{fffd}xxx");
	expect([first?.model.length, first?.param.length, first?.message.length]).toEqual([128, 128, 500]);
	expect(second).toMatchObject({ model: null, available_nano_usd: null, affordable_tokens: null });
	expect(refusals.dropped()).toBe(0);
	await refusals.stop();
	expect(clock.pending()).toBe(0);
});

test("repeated refusals become a few rows per minute, the last with a count", async () => {
	const { refusals, clock, written } = setUp();
	const send = (count: number) => {
		for (let sent = 0; sent < count; sent++) refusals.record(refusal("key_loop", { atMs: clock.wallMs() + sent }));
	};
	send(1_000);
	refusals.record(refusal("key_loop", { code: "model_not_found", status: 404, atMs: clock.wallMs() - 1 }));
	expect(refusals.waiting()).toBe(ROWS_PER_MINUTE_MAX + 1);
	await written();
	let rows = await rowsOf("key_loop");
	expect(rows.map((row) => row.repeats)).toEqual([...Array(ROWS_PER_MINUTE_MAX).fill(0), 1_000 - ROWS_PER_MINUTE_MAX]);
	expect(rows[0]?.code).toBe("model_not_found");
	expect(rows.at(-1)?.repeated_at).toEqual(new Date(clock.wallMs() - 1_000 + 999));
	// Further refusals in the same minute increase the count of the stored row.
	send(7);
	await written();
	rows = await rowsOf("key_loop");
	expect(rows).toHaveLength(ROWS_PER_MINUTE_MAX + 1);
	expect(rows.at(-1)?.repeats).toBe(1_007 - ROWS_PER_MINUTE_MAX);
	clock.advance(60_000);
	send(1);
	await written();
	expect(await rowsOf("key_loop")).toHaveLength(ROWS_PER_MINUTE_MAX + 2);
	expect(refusals.dropped()).toBe(0);
	await refusals.stop();
});

test("an account with many keys writes a limited number of refusal rows per minute", async () => {
	const { refusals, clock, written } = setUp();
	const send = (code: string) => {
		for (let nth = 0; nth < 500; nth++) refusals.record(refusal(`key_many_${nth}`, { accountId: "acc_many", code }));
	};
	send("insufficient_quota");
	send("model_not_found");
	expect(refusals.waiting()).toBe(ACCOUNT_ROWS_PER_MINUTE_MAX + 1);
	await written();
	const counts = () => db.sql`
		select code, count(*)::int as rows, sum(1 + repeats)::int as refused from refused_request
		where account_id = 'acc_many' group by code order by code`;
	expect([...(await counts())]).toEqual([
		{ code: "insufficient_quota", rows: ACCOUNT_ROWS_PER_MINUTE_MAX, refused: 500 },
		{ code: "model_not_found", rows: 1, refused: 500 },
	]);
	clock.advance(60_000);
	send("model_not_found");
	await written();
	expect((await counts())[1]).toMatchObject({ rows: 1 + ACCOUNT_ROWS_PER_MINUTE_MAX, refused: 1_000 });
	await refusals.stop();
});

test("refusals of one account that wait for Postgres leave room for other accounts", async () => {
	const { refusals, clock, set } = setUp();
	set("hanging");
	for (let minute = 0; minute < 50; minute++) {
		for (let nth = 0; nth < 100; nth++) refusals.record(refusal(`key_${nth}`, { accountId: "acc_waiting" }));
		clock.advance(60_000);
	}
	expect(refusals.waiting()).toBe(WAITING_MAX / 4);
	const before = refusals.dropped();
	refusals.record(refusal("key_other", { accountId: "acc_other" }));
	expect([refusals.waiting(), refusals.dropped()]).toEqual([WAITING_MAX / 4 + 1, before]);
});

test("a refused request that arrives while its row is written is not lost", async () => {
	const { refusals, clock, written } = setUp();
	for (let sent = 0; sent < ROWS_PER_MINUTE_MAX; sent++) refusals.record(refusal("key_meanwhile"));
	clock.advance(1_000);
	refusals.record(refusal("key_meanwhile"));
	await waitFor(() => clock.pending() > 0, "the next attempt");
	expect(refusals.waiting()).toBe(1);
	await written();
	const rows = await rowsOf("key_meanwhile");
	expect(rows).toHaveLength(ROWS_PER_MINUTE_MAX);
	expect(rows.reduce((sum, row) => sum + row.repeats, 0)).toBe(1);
	await refusals.stop();
});

test("refusals wait for Postgres up to a limit; further ones are only counted", async () => {
	const { refusals, clock, logged, set } = setUp();
	set("refusing");
	const send = (count: number, from: number) => {
		for (let sent = 0; sent < count; sent++)
			refusals.record(refusal(`key_away_${from + sent}`, { accountId: `acc_${from + sent}` }));
	};
	send(WAITING_MAX + 300, 0);
	expect([refusals.waiting(), refusals.dropped()]).toEqual([WAITING_MAX, 300]);
	for (let second = 0; second < 3; second++) {
		const pending = () => clock.pending() > 0;
		await waitFor(pending, "the next attempt");
		clock.advance(1_000);
	}
	await waitFor(() => clock.pending() > 0, "the next attempt");
	send(5, WAITING_MAX);
	expect([refusals.waiting(), refusals.dropped()]).toEqual([WAITING_MAX, 305]);
	// The failure is logged once, and not every second.
	expect(logged.filter((line) => line.includes("cannot be written"))).toHaveLength(1);
	set("up");
	clock.advance(1_000);
	await waitFor(() => refusals.waiting() === 0, "what waited to be written");
	const [stored] = await db.sql`select count(*)::int as n from refused_request where key_id like 'key_away_%'`;
	expect(stored?.n).toBe(WAITING_MAX);
	expect(logged.filter((line) => line.includes("are missing")).length).toBeGreaterThan(0);
	await refusals.stop();
});

test("a Postgres that never answers to refusal rows delays no request", () => {
	const { refusals, clock, asked, set } = setUp();
	set("hanging");
	for (let second = 0; second < 100; second++) {
		refusals.record(refusal(`key_hang_${second}`, { accountId: `acc_${second}` }));
		clock.advance(1_000);
	}
	expect(asked()).toBe(1);
	expect(refusals.waiting()).toBe(100);
});

test("refusal rows that Postgres rejects are dropped without delaying others", async () => {
	const { refusals, written } = setUp();
	refusals.record(refusal("key_bad", { status: 2 ** 40 }));
	await written();
	expect(refusals.dropped()).toBe(1);
	refusals.record(refusal("key_bad_after"));
	await written();
	expect(await rowsOf("key_bad_after")).toHaveLength(1);
	await refusals.stop();
});

test("a stop writes waiting refusals and succeeds even if Postgres is unavailable", async () => {
	const { refusals } = setUp();
	refusals.record(refusal("key_stop"));
	await refusals.stop();
	expect(await rowsOf("key_stop")).toHaveLength(1);
	const away = setUp();
	away.set("refusing");
	away.refusals.record(refusal("key_stop_away"));
	await away.refusals.stop();
	expect(away.clock.pending()).toBe(0);
});

test("a refusal row that is written twice is stored once", async () => {
	const clock = createManualClock(Date.UTC(2026, 10, 21));
	const once = refusal("key_twice");
	for (let time = 0; time < 2; time++) {
		const refusals = createRefusals({ statements: db.statements, clock, log: silentLog });
		refusals.record(once);
		await refusals.stop();
	}
	expect(await rowsOf("key_twice")).toHaveLength(1);
});
