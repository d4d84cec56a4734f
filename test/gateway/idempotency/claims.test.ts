import { beforeEach, expect, test } from "bun:test";
import postgres from "postgres";
import { silentLog } from "../../../src/base/log.ts";
import { createBodyMemory } from "../../../src/gateway/body/body-memory.ts";
import { recordStream } from "../../../src/gateway/idempotency/recorded-stream.ts";
import {
	type ClaimStore,
	createPgClaims,
	createRunningClaims,
	forgetOldClaims,
	type IdempotencyClaim,
} from "../../../src/gateway/idempotency/running.ts";
import { createAnswerCipher } from "../../../src/gateway/idempotency/seal.ts";
import { firstAttemptUuid } from "../../../src/gateway/serve/context.ts";
import { withDatabase } from "../../support/database.ts";
import { createManualClock } from "../../support/upstream-clock.ts";
import { waitFor } from "../../support/wait.ts";

const db = await withDatabase();
await db.sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until) values ('one', 1, 1, 'live', 30000, now() + interval '1 hour')`;
const own = { instanceId: "one", present: () => ({ epoch: 1 }) };
const limits = { keepS: 3_600, accountBytesMax: 1_000, totalBytesMax: 1_500 };
let aheadMs = 0;
const clock = { wallMs: () => Date.now() + aheadMs };
const claims = createPgClaims({ statements: db.statements, clock, instanceLease: own }, limits);
beforeEach(async () => {
	await db.sql`delete from idempotency_claim`;
	await db.sql`delete from idempotency_space`;
});

const claimOf = (id: string, accountId = "acc_a"): IdempotencyClaim => ({
	id,
	accountId,
	proof: "p",
	requestUuid: firstAttemptUuid(),
});
async function put(id: string, bytes: number, accountId?: string): Promise<void> {
	const claim = claimOf(id, accountId);
	expect(await claims.claim(claim)).toEqual({ state: "new" });
	await claims.keep(claim, new Uint8Array(bytes));
}
const stateOf = async (id: string, accountId?: string) => (await claims.claim(claimOf(id, accountId))).state;
async function spaces(): Promise<Record<string, number>> {
	const rows = await db.sql`select account_id, bytes::int from idempotency_space order by 1`;
	for (const { account_id, bytes } of rows) {
		const [row] =
			await db.sql`select coalesce(sum(bytes), 0)::int as sum from idempotency_claim where account_id = ${account_id}`;
		expect(row?.sum).toBe(bytes);
	}
	return Object.fromEntries(rows.map(({ account_id, bytes }) => [account_id, bytes]));
}

test("only one of many concurrent claims of an Idempotency-Key succeeds", async () => {
	const all = await Promise.all(Array.from({ length: 20 }, () => claims.claim(claimOf("k"))));
	expect(all.filter(({ state }) => state === "new")).toHaveLength(1);
	expect(all.filter(({ state }) => state === "running")).toHaveLength(19);
});

test("a request that already claimed its Idempotency-Key may repeat the claim", async () => {
	const claim = claimOf("k");
	expect(await claims.claim(claim)).toEqual({ state: "new" });
	expect(await claims.claim(claim)).toEqual({ state: "new" });
	expect(await stateOf("k")).toBe("running");
});

test("a claim whose reply was lost is deleted until its insert can no longer commit", async () => {
	const clock = createManualClock();
	let released = 0;
	const store: ClaimStore = {
		...claims,
		async release(claim) {
			await claims.release(claim);
			released += 1;
		},
	};
	const running = createRunningClaims({ claims: store, clock, log: silentLog });
	const claim = claimOf("k");
	// Simulates a claim whose insert timed out at the gateway but still runs in Postgres.
	const slow = postgres(db.url, { max: 1 });
	await slow.begin(async (sql) => {
		await sql`select * from idempotency_claim(${claim.id}, ${claim.accountId}, ${claim.proof}, ${claim.requestUuid}::uuid, 'one', 1, 60, ${Date.now()})`;
		running.takeBack(claim);
		await waitFor(() => released === 1, "the first release");
	});
	await slow.end();
	expect(await stateOf("k")).toBe("running");
	clock.advance(1_000);
	await waitFor(() => released === 2, "the second release");
	expect(await stateOf("k")).toBe("new");
	for (const [nth, seconds] of [2, 4, 8, 16, 30].entries()) {
		clock.advance(seconds * 1_000);
		await waitFor(() => released === 3 + nth, "a further release");
	}
	clock.advance(60_000);
	running.takeBack(claim);
	await running.stop();
	expect(released).toBe(9);
});

test("new answers replace an account's oldest kept answers when the space is used up", async () => {
	await put("b1", 200, "acc_b");
	await put("a1", 400);
	await put("a2", 400);
	await put("a3", 400);
	expect(await Promise.all(["a1", "a3"].map((id) => stateOf(id)))).toEqual(["unkept", "answered"]);
	expect(await stateOf("b1", "acc_b")).toBe("answered");
	expect((await spaces()).acc_a).toBeLessThanOrEqual(1_000);
});

test("an account's answers above its share of an hour are not kept", async () => {
	const clock = createManualClock();
	let reserves = 2;
	const room = { reserves: () => reserves };
	const running = createRunningClaims({ claims, clock, log: silentLog, room }, 3_200);
	const stored = async (id: string, accountId: string) => {
		const claim = claimOf(id, accountId);
		expect(await claims.claim(claim)).toEqual({ state: "new" });
		running.begin(claim);
		running.keep(claim, new Uint8Array(150));
		await running.find(id)?.ended;
		return stateOf(id, accountId);
	};
	expect([await stored("a1", "acc_a"), await stored("a2", "acc_a")]).toEqual(["answered", "unkept"]);
	expect(await stored("b1", "acc_b")).toBe("answered");
	clock.advance(3_600_000);
	expect(await stored("a3", "acc_a")).toBe("answered");
	reserves = 0.9;
	expect(await stored("c1", "acc_c")).toBe("unkept");
});

test("an answer larger than the space for kept answers is not kept", async () => {
	await put("a1", 1_001);
	expect(await stateOf("a1")).toBe("unkept");
	await put("a2", 900);
	await put("b1", 700, "acc_b");
	expect(await stateOf("b1", "acc_b")).toBe("unkept");
	expect(await stateOf("a2")).toBe("answered");
	expect(await spaces()).toEqual({ acc_a: 900, acc_b: 0 });
});

test("concurrent answers are counted exactly against the space for kept answers", async () => {
	await Promise.all(Array.from({ length: 12 }, (_, place) => put(`a${place}`, 90, place % 2 ? "acc_a" : "acc_b")));
	expect(await spaces()).toEqual({ acc_a: 540, acc_b: 540 });
});

test("a request that ends changes only its own claim of an Idempotency-Key", async () => {
	const first = claimOf("k");
	await claims.claim(first);
	await claims.release(claimOf("k"));
	await claims.keep(claimOf("k"), new Uint8Array(3));
	expect(await stateOf("k")).toBe("running");
	await claims.release(first);
	expect(await stateOf("k")).toBe("new");
});

test("after a day an Idempotency-Key can be used again and its space is freed", async () => {
	await put("a1", 300);
	await put("a2", 300);
	await put("b1", 300, "acc_b");
	await db.sql`update idempotency_claim set expires_at = now() - interval '1 hour' where account_id = 'acc_a'`;
	expect(await stateOf("a1")).toBe("new");
	expect(await spaces()).toEqual({ acc_a: 300, acc_b: 300 });
	await forgetOldClaims(db.statements, Date.now());
	expect(await spaces()).toEqual({ acc_b: 300 });
	const left = await db.sql`select id from idempotency_claim order by id`;
	expect(left.map(({ id }) => id)).toEqual(["a1", "b1"]);
});

test("a clock that leaps forward deletes no kept answer", async () => {
	await put("a1", 300);
	const forget = () => forgetOldClaims(db.statements, clock.wallMs());
	aheadMs = 2 * 3_600_000;
	await forget();
	expect(await stateOf("a1")).toBe("answered");
	// The gateway's clock is two hours behind: the row has expired only by the database's clock, which leapt ahead.
	aheadMs = -2 * 3_600_000;
	await db.sql`update idempotency_claim set expires_at = now() - interval '1 hour'`;
	await forget();
	expect(await stateOf("a1")).toBe("answered");
	aheadMs = 0;
	await forget();
	expect(await stateOf("a1")).toBe("new");
	// A claim made while the database's clock was a day behind is also kept for a day by the gateway's clock.
	await db.sql`delete from idempotency_claim`;
	aheadMs = 24 * 3_600_000;
	await put("a2", 300);
	const [row] = await db.sql`select expires_at > now() + interval '24 hours' as "isLater" from idempotency_claim`;
	expect(row?.isLater).toBe(true);
	aheadMs = 0;
});

test("a claim of an Idempotency-Key ends when its gateway stops, not after some time", async () => {
	await db.sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until) values ('two', 1, 1, 'live', 30000, now())`;
	const other = { instanceId: "two", present: () => ({ epoch: 1 }) };
	const theirs = createPgClaims({ statements: db.statements, clock, instanceLease: other }, limits);
	expect(await theirs.claim(claimOf("k"))).toEqual({ state: "new" });
	await db.sql`update idempotency_claim set expires_at = now() - interval '1 day'`;
	for (const state of ["live", "silent", "live"]) {
		await db.sql`update instance_beat set state = ${state} where id = 'two'`;
		await forgetOldClaims(db.statements, Date.now());
		expect(await stateOf("k")).toBe("running");
	}
	await db.sql`update instance_beat set state = 'left' where id = 'two'`;
	await forgetOldClaims(db.statements, Date.now());
	expect(await db.sql`select 1 from idempotency_claim`).toHaveLength(0);
});

test("a kept answer decrypts only unaltered, with the same API key, header and claim", async () => {
	const seal = await createAnswerCipher("sk_a", "key", "id");
	const answer = { status: 200, headers: [["x-a", "b"]] as const, body: new TextEncoder().encode("an answer") };
	const sealed = await seal.seal(answer);
	expect(await (await createAnswerCipher("sk_a", "key", "id")).open(sealed)).toEqual({
		...answer,
		headers: [["x-a", "b"]],
	});
	for (const [secret, header, id] of [
		["sk_b", "key", "id"],
		["sk_a", "kez", "id"],
		["sk_a", "key", "ie"],
	] as const)
		await expect((await createAnswerCipher(secret, header, id)).open(sealed)).rejects.toThrow();
	const altered = sealed.slice();
	altered[altered.length - 1] = (altered.at(-1) as number) ^ 1;
	await expect(seal.open(altered)).rejects.toThrow();
	expect(Buffer.from(sealed).toString("latin1")).not.toContain("an answer");
	expect((await seal.seal(answer)).slice(0, 12)).not.toEqual(sealed.slice(0, 12));
});

const memoryOf = (bodyMemoryBytesMax: number) =>
	createBodyMemory({ limits: () => ({ bodyMemoryBytesMax, bodyMemoryAccountBytesMax: 0.4 * bodyMemoryBytesMax }) });

/** Records a stream of these parts. Resolves to "kept", null (not kept) or "broken". */
function recorded(
	parts: readonly string[],
	bytesMax: number,
	copy: ReturnType<typeof createBodyMemory>,
	account = "acc",
) {
	const left = [...parts];
	const source = new ReadableStream(
		{
			pull(controller) {
				const part = left.shift();
				if (part === undefined) controller.close();
				else controller.enqueue(part);
			},
		},
		{ highWaterMark: 0 },
	);
	const record: { outcome: string | null; stream: ReadableStream } = { outcome: "nothing", stream: source };
	record.stream = recordStream(source, bytesMax, copy.hold(account), {
		whole(body) {
			if (body !== null) expect(new TextDecoder().decode(body)).toBe(parts.join(""));
			record.outcome = body === null ? null : "kept";
		},
		broken() {
			record.outcome = "broken";
		},
	});
	return record;
}

const END = "data: [DONE]\n\n";

test.each<[string[], string | null]>([
	[["data: {}\n\n", END], "kept"],
	[["data: {}\n\n"], "broken"],
	[['data: {"error":1}\n\n', END], "broken"],
	[[`data: ${"x".repeat(60)}\n\n`, `data: ${"x".repeat(60)}\n\n`, END], null],
	[[`data: ${"x".repeat(120)}\n\n`, 'data: {"error":1}\n\n', END], "broken"],
	[['data: {"error":1}\n\n', `data: ${"x".repeat(120)}\n\n`, END], "broken"],
])("a stream's answer is kept if it is complete and small enough (case %#)", async (parts, outcome) => {
	const record = recorded(parts, 100, memoryOf(1_000_000));
	expect(await new Response(record.stream).text()).toBe(parts.join(""));
	expect(record.outcome).toBe(outcome);
});

test("kept copies of streams stay within the memory of account and gateway", async () => {
	const copies = memoryOf(100_000);
	const events = [`data: ${"x".repeat(9_000)}\n\n`, END];
	const records = [..."aaabbbcccddd"].map((account) => ({
		account,
		record: recorded(events, 10_000, copies, account),
	}));
	const readers = records.map(({ record }) => record.stream.getReader() as ReadableStreamDefaultReader<string>);
	for (const reader of readers) await reader.read();
	expect(copies.bytes()).toBeGreaterThan(0);
	expect(copies.bytes()).toBeLessThanOrEqual(100_000);
	await readers.at(-1)?.cancel();
	for (const reader of readers.slice(0, -1)) {
		expect((await reader.read()).value).toBe(events[1]);
		expect((await reader.read()).done).toBe(true);
	}
	const of = (account: string) => records.filter((one) => one.account === account).map(({ record }) => record.outcome);
	expect([of("a").includes("kept"), of("a").includes(null)]).toEqual([true, true]);
	expect(of("d")).toEqual([null, null, "broken"]);
	expect(copies.bytes()).toBe(0);
});
