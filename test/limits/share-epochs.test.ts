/** Tests that an instance keeps its counts over its epochs: after a fence it joins again under the same name. */
import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import type { Statements } from "../../src/db/statements.ts";
import { createKeyLimits } from "../../src/limits/key-limits.ts";
import type { ShareRequest } from "../../src/limits/share-store.ts";
import { waitFor } from "../support/wait.ts";
import { createShiftedClock, limitsOf, withInstances } from "./limits-world.ts";

const { db, begin, storeOf, join } = await withInstances();

test("a process that joins again keeps its counts; another with its name gets no share", async () => {
	const clock = createShiftedClock(20);
	let epoch = 1;
	await begin("again", 1);
	const store = storeOf("again", () => ({ epoch }));
	const ask = (have: number, need: number, seq: number): readonly ShareRequest[] => [
		{ key: "key", kind: "rate", limit: 10, have, need, seq },
	];
	expect(await store.hold(ask(0, 1, 1))).toMatchObject([{ share: 10, free: 0 }]);
	await db.sql`update instance_beat set state = 'dead', lease_until = now() where id = 'again'`;
	await begin("again", 2);
	epoch = 2;
	expect(await store.hold(ask(4, 5, 2))).toMatchObject([{ share: 10 }]);
	const other = await join("other", clock);
	expect(await other.enter("key", 10)).toBe(false);
	const reborn = storeOf("again", () => ({ epoch: 3 }));
	await begin("again", 3);
	expect(await reborn.hold(ask(0, 1, 1))).toMatchObject([{ share: 0, free: 0 }]);
});

test("other instances know the request counts of a process that joined again", async () => {
	const clock = createShiftedClock(20);
	const here = { epoch: 1, openings: 1 };
	await begin("again", 1);
	const store = storeOf("again", () => here);
	const shared = { store, log: silentLog, openings: () => here.openings };
	const limits = createKeyLimits({ clock, shared });
	for (let sent = 0; sent < 3; sent++)
		while (!limits.enter("key", limitsOf(null, 8), 1)) await limits.draw("key", limitsOf(null, 8), 1);
	const other = await join("other", clock);
	await db.sql`update instance_beat set state = 'dead', lease_until = now() where id = 'again'`;
	here.epoch += 1;
	await begin("again", 2);
	here.openings += 1;
	const told = () => db.sql`select 1 from key_share where instance_id = 'again' and epoch = 2 and amount = 3`;
	await waitFor(async () => (await told()).length === 1, "what runs to be told");
	let passed = 0;
	while (await other.enter("key", null, 8)) passed += 1;
	expect(passed).toBe(5);
	await limits.stop();
});

/** Sends single requests for shares as epochs of one instance. `say` sets an epoch's state. */
async function epochsOf(id: string) {
	const say = (epoch: number, state: string) =>
		db.sql`
			insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until)
			values (${id}, ${epoch}, (select count(*) + 1 from instance_beat where id = ${id} and epoch = ${epoch}), ${state}, 30000, now() + interval '30 seconds')`;
	let seq = 0;
	return {
		say,
		/** Simulates a process that had these epochs; the last one is its current epoch. */
		process() {
			const here = { epoch: 0 };
			const store = storeOf(id, () => here);
			return async (epoch: number, kind: "rate" | "running", have: number, need: number) => {
				here.epoch = epoch;
				seq += 1;
				const [grant] = await store.hold([{ key: "key", kind, limit: 10, have, need, seq }]);
				return grant?.share;
			};
		},
		held: async (kind: string) => {
			const rows =
				await db.sql`select epoch, amount from key_share where kind = ${kind} and instance_id = ${id} order by epoch`;
			return rows.map((row) => [row.epoch, row.amount]);
		},
	};
}

test.each(["rate", "running"] as const)(
	"a delayed request for a %s share of an ended epoch takes nothing",
	async (kind) => {
		const { say, process, held } = await epochsOf("again");
		const [before, ask] = [process(), process()];
		await say(1, "live");
		expect(await before(1, kind, 0, 4)).toBe(10);
		expect(await ask(1, kind, 6, 6)).toBe(6);
		await say(1, "dead");
		await say(2, "live");
		expect(await ask(2, kind, 6, 6)).toBe(6);
		// Requests sent before the fence, with the share requested and the share held at that time.
		expect(await before(1, kind, 6, 7)).toBe(undefined);
		expect(await before(1, kind, 7, 7)).toBe(undefined);
		expect(await held(kind)).toEqual([[2, 6]]);
		await say(2, "dead");
		expect(await ask(2, kind, 2, 2)).toBe(2);
		expect(await held(kind)).toEqual([[2, 2]]);
	},
);

test("another process with the same name has separate request counts", async () => {
	const { say, process, held } = await epochsOf("twice");
	const [one, other] = [process(), process()];
	await say(1, "live");
	expect(await one(1, "rate", 0, 4)).toBe(10);
	expect(await one(1, "rate", 4, 4)).toBe(4);
	await say(2, "live");
	expect(await other(2, "rate", 0, 6)).toBe(6);
	await say(1, "dead");
	await say(3, "live");
	expect(await one(3, "rate", 4, 5)).toBe(4);
	expect(await held("rate")).toEqual([
		[2, 6],
		[3, 4],
	]);
});

test("a process counts the shares of its last 64 epochs only", async () => {
	const named: number[] = [];
	const statements = ((strings, ...values) => {
		named.push(...values.flatMap((value) => /^\{(.*)\}$/.exec(String(value))?.[1]?.split(",").length ?? []));
		return db.statements(strings, ...values);
	}) as Statements;
	const here = { epoch: 0 };
	const store = storeOf("again", () => here, statements);
	let seq = 0;
	const ask = async (key: string, have: number, need: number) => {
		seq += 1;
		return (await store.hold([{ key, kind: "rate", limit: 10, have, need, seq }]))[0]?.share;
	};
	for (let epoch = 1; epoch <= 70; epoch++) {
		if (epoch > 1) await db.sql`update instance_beat set state = 'left', ended_at = now() where id = 'again'`;
		await begin("again", epoch, "30 seconds");
		here.epoch = epoch;
		// Keys with a share of the fourth epoch, which the process forgets, and of the seventh, which it remembers.
		for (const [at, key] of [
			[4, "beyond"],
			[7, "within"],
		] as const)
			if (epoch === at) expect(await ask(key, 0, 10)).toBe(10);
		await ask("used", 0, 1);
	}
	expect(Math.max(...named)).toBe(64);
	expect(await ask("within", 10, 10)).toBe(10);
	expect(await ask("within", 3, 9)).toBe(10);
	// These requests come from another process with the same instance id.
	expect(await ask("beyond", 0, 10)).toBe(0);
});
