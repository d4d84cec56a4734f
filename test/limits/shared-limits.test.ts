import { describe, expect, test } from "bun:test";
import type { Fault } from "../../src/base/fault.ts";
import { deleteOldShares } from "../../src/keys/limit-shares.ts";
import type { ShareRequest } from "../../src/limits/share-store.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom } from "../support/random.ts";
import { waitFor } from "../support/wait.ts";
import { limitsOf, PATIENT_DIVISOR, withInstances } from "./limits-world.ts";

const world = await withInstances();
const { db, cluster } = world;

const storeOf = (instanceId: string, epoch = 1) => world.storeOf(instanceId, () => ({ epoch }));

describe.each(LONG ? [1, 2, 4] : [1, 2])("a request limit shared by %d instances", (count) => {
	test("admits exactly its number of requests from a burst on all instances", async () => {
		const { at } = await cluster(count);
		const sent = Array.from({ length: 80 }, (_, place) => at(place).enter("key", 10));
		expect((await Promise.all(sent)).filter(Boolean)).toHaveLength(10);
	});

	test("admits exactly its number of sequential requests", async () => {
		const { at } = await cluster(count, PATIENT_DIVISOR);
		for (let sent = 0; sent < 10; sent++)
			expect({ sent, in: await at(sent).enter("key", 10) }).toEqual({ sent, in: true });
		for (let place = 0; place < count; place++) expect(await at(place).enter("key", 10)).toBe(false);
	});

	test("is fully available on another instance after two minutes without requests", async () => {
		const { clock, at } = await cluster(count, PATIENT_DIVISOR);
		for (let round = 0; round < 2 * count; round++) {
			let passed = 0;
			while (await at(round).enter("key", 6)) passed += 1;
			expect({ round, passed }).toEqual({ round, passed: 6 });
			clock.passMs += 120_000;
		}
	});

	test("admits exactly its number of concurrent requests on any instance", async () => {
		const { at } = await cluster(count);
		const sent = Array.from({ length: 40 }, (_, place) => at(place).enter("key", null, 3));
		const running = (await Promise.all(sent)).flatMap((isIn, place) => (isIn ? [place] : []));
		expect(running).toHaveLength(3);
		at(running[0] as number).limits.leave("key", 0, 0);
		for (let place = 0; place < count; place++) {
			await waitFor(() => at(place).enter("key", null, 3), "the free place");
			expect(await at(place + 1).enter("key", null, 3)).toBe(false);
			at(place).limits.leave("key", 0, 0);
		}
	});

	test("admits requests of any size up to exactly its number of tokens", async () => {
		const { at } = await cluster(count, PATIENT_DIVISOR);
		const burst = Array.from({ length: 60 }, (_, place) => at(place).use("key", 1_000, 90));
		expect((await Promise.all(burst)).filter(Boolean)).toHaveLength(11);
		expect(await at(0).use("key", 1_000, 11)).toBe(false);
		expect(await at(1).use("key", 1_000, 10)).toBe(true);
		// Tokens that ended requests gave back are available to the other instances at once.
		for (let place = 0; place < 2 * count; place++)
			expect({ place, in: await at(place).use("spare", 1_000, 1_000, 1_000) }).toEqual({ place, in: true });
		expect(
			(await Promise.all([0, 1, 2, 3].map((place) => at(place).use("spare", 1_000, 1_000)))).filter(Boolean),
		).toEqual([true]);
		// Two instances each hold half of the limit unused; neither waits for the other's half.
		for (const place of [0, 1]) expect(await at(place).use("halves", 1_000, 500, 500)).toBe(true);
		const both = await Promise.all([0, 1].map((place) => at(place).use("halves", 1_000, 1_000)));
		expect(both.filter(Boolean)).toEqual([true]);
		const [held] =
			await db.sql`select max(total)::int as most from (select sum(amount) as total from key_share group by key_id) s`;
		expect(held?.most).toBeLessThanOrEqual(1_000);
	});

	test("is almost used up but never exceeded under random load", async () => {
		const { clock, at } = await cluster(count);
		const random = createRandom(count);
		const perMinute = 12;
		const passed: number[] = [];
		let nowMs = 0;
		for (let step = 0; step < 240; step++) {
			// Sends requests to one instance for a while, then to another, then to all.
			const phase = Math.floor(step / 30) % 3;
			const place = phase === 2 ? random.int(0, count - 1) : phase * (count - 1);
			if (await at(place).enter("key", perMinute)) passed.push(nowMs);
			if (step % 10 === 0) {
				const [row] = await db.sql`select coalesce(sum(amount), 0)::int as held from key_share`;
				expect(row?.held).toBeLessThanOrEqual(perMinute);
			}
			nowMs += 2_500;
			clock.passMs += 2_500;
		}
		for (const from of passed) {
			const within = passed.filter((ms) => ms >= from && ms < from + 60_000).length;
			// At most twice the limit, as on one instance, because two fixed windows approximate the sliding minute.
			expect(within).toBeLessThanOrEqual(2 * perMinute);
		}
		expect(passed.length).toBeLessThanOrEqual(perMinute * 11);
		expect(passed.length).toBeGreaterThanOrEqual(perMinute * 7);
	}, 60_000);
});

describe("a client that alternates between instances", () => {
	const perMinute = 60;

	/**
	 * Uses each instance once, at different times of a minute, then as often as allowed for `minutes`. Returns how many
	 * requests were admitted.
	 */
	async function takenInTurn(
		{ clock, at }: Awaited<ReturnType<typeof cluster>>,
		{ count, minutes, setBack }: { count: number; minutes: number; setBack: boolean },
	): Promise<number> {
		const turnMs = 60_000 / count;
		for (let place = 0; place < count; place++) {
			expect(await at(place).enter("key", perMinute)).toBe(true);
			clock.passMs += turnMs;
			if (setBack) clock.stepMs -= turnMs;
		}
		// Advances to two seconds before the end of the instance's first minute.
		clock.passMs += 60_000 - 2_000;
		let taken = 0;
		for (let turn = 0; turn < minutes * count; turn++) {
			while (await at(turn).enter("key", perMinute)) taken += 1;
			clock.passMs += turnMs;
		}
		return taken;
	}

	test.each(LONG ? [2, 3, 5] : [3])(
		"stays within the limit on average after %d first uses at different times",
		async (count) => {
			const minutes = 4;
			const taken = await takenInTurn(await cluster(count), { count, minutes, setBack: false });
			expect(taken).toBeLessThanOrEqual((minutes + 1) * perMinute);
			// A client that sends twice a minute, at its start and in its middle, gets two thirds of its limit.
			expect(taken).toBeGreaterThanOrEqual((minutes * perMinute) / 2);
		},
	);

	test("stays within the limit on average if the clock was set back", async () => {
		const members = await cluster(3);
		// Sets the clock back to the start of a minute, at which every instance then starts a window.
		members.clock.stepMs = -(members.clock.wallMs() % 60_000);
		const minutes = 6;
		const taken = await takenInTurn(members, { count: 3, minutes, setBack: true });
		expect(taken).toBeLessThanOrEqual((minutes + 1) * perMinute);
		expect(taken).toBeGreaterThanOrEqual((minutes * perMinute) / 2);
	});
});

test("an instance without Postgres admits the rest of its share, then answers 503", async () => {
	const { at } = await cluster(2);
	let passed = 0;
	for (let sent = 0; sent < 4; sent++) if (await at(0).enter("key", 20)) passed += 1;
	at(0).state = "cut off";
	let inTheDark = 0;
	const failed: string[] = [];
	for (let sent = 0; sent < 20; sent++) {
		const outcome = await at(0)
			.enter("key", 20)
			.catch((error) => (error as Fault).code);
		if (outcome === true) inTheDark += 1;
		else failed.push(String(outcome));
	}
	expect(new Set(failed)).toEqual(new Set(["service_unavailable"]));
	while (await at(1).enter("key", 20)) passed += 1;
	expect(passed + inTheDark).toBeLessThanOrEqual(20);
	at(0).state = "well";
	expect(await at(0).enter("key", 40)).toBe(true);
});

test("a share whose grant was lost becomes usable on another instance later", async () => {
	const { at } = await cluster(2, PATIENT_DIVISOR);
	expect(await at(0).enter("key", 20, 20)).toBe(true);
	while (at(0).limits.enter("key", limitsOf(20, 20), 1));
	const counted = at(0).limits.running("key");
	at(0).state = "unheard";
	await expect(at(0).enter("key", 20, 20)).rejects.toMatchObject({ code: "service_unavailable" });
	at(0).state = "well";
	let passed = counted;
	await waitFor(async () => {
		while (await at(1).enter("key", 20, 20)) passed += 1;
		return passed >= 20;
	}, "all of the number to be admitted");
	expect(passed).toBe(20);
});

test("a dead instance's counts apply for two minutes, its running requests do not", async () => {
	const { at } = await cluster(2);
	while (await at(0).enter("key", 5, 5));
	expect(await at(1).enter("key", 5, 5)).toBe(false);
	await db.sql`update instance_beat set state = 'dead', lease_until = now() - interval '1 minute' where id = 'instance-0'`;
	at(0).state = "cut off";
	await waitFor(() => at(1).enter("key", null, 5), "the places of the dead");
	expect(await at(1).enter("key", 5, null)).toBe(false);
	await db.sql`update instance_beat set lease_until = now() - interval '121 seconds' where id = 'instance-0'`;
	await waitFor(() => at(1).enter("key", 5, null), "the share of the dead");
});

test("a change of the database's clock frees no share of a live instance", async () => {
	const { at } = await cluster(2);
	while (await at(0).enter("key", 5, 5));
	async function passHours(hours: number): Promise<void> {
		await db.sql`update instance_beat set lease_until = lease_until - make_interval(hours => ${hours}::integer)`;
		await db.sql`update key_share set at = at - make_interval(hours => ${hours}::integer)`;
		// Removes old shares, as a console's job may do before the next heartbeat.
		await deleteOldShares(db.statements);
	}
	await passHours(2);
	expect(await at(1).enter("key", 5, 5)).toBe(false);
	expect(await at(1).enter("key", null, 5)).toBe(false);
	await db.sql`update instance_beat set state = 'dead' where id = 'instance-0'`;
	at(0).state = "cut off";
	await passHours(-24);
	await waitFor(() => at(1).enter("key", 5, 5), "the share of one that is long dead");
});

test("a stopping instance returns its shares except the part already counted", async () => {
	const { at } = await cluster(2);
	for (let sent = 0; sent < 3; sent++) await at(0).enter("key", 16);
	await at(0).limits.stop();
	at(0).state = "cut off";
	let passed = 3;
	while (await at(1).enter("key", 16)) passed += 1;
	expect(passed).toBe(16);
});

test("concurrent requests for shares of a key get no more than the limit", async () => {
	await cluster(4);
	for (let round = 0; round < 20; round++) {
		const key = `key-${round}`;
		const asks = Array.from({ length: 12 }, (_, place) => {
			const store = storeOf(`instance-${place % 4}`, 1 + Math.floor(place / 4));
			return store.hold([{ key, kind: "rate", limit: 5, have: 0, need: 2, seq: 1 }]);
		});
		for (let epoch = 2; round === 0 && epoch <= 3; epoch++) {
			for (let place = 0; place < 4; place++) await world.begin(`instance-${place}`, epoch);
		}
		await Promise.all(asks);
		const [row] = await db.sql`select coalesce(sum(amount), 0)::int as held from key_share where key_id = ${key}`;
		if (round > 0) expect(row?.held).toBeLessThanOrEqual(5);
	}
});

test("a request for more than the free part of a limit gets no share; less is granted", async () => {
	await cluster(2);
	const ask = (need: number, seq: number): readonly ShareRequest[] => [
		{ key: "key", kind: "tokens", limit: 10, have: 0, need, seq },
	];
	expect(await storeOf("instance-0").hold(ask(6, 1))).toMatchObject([{ share: 6, free: 4 }]);
	expect(await storeOf("instance-1").hold(ask(5, 1))).toMatchObject([{ share: 0, free: 4 }]);
	expect(await storeOf("instance-1").hold(ask(4, 2))).toMatchObject([{ share: 4, free: 0 }]);
});

test("a request for a share that arrives after a newer request changes nothing", async () => {
	await cluster(2);
	const store = storeOf("instance-0");
	await store.hold([{ key: "key", kind: "rate", limit: 10, have: 0, need: 8, seq: 2 }]);
	expect(await store.hold([{ key: "key", kind: "rate", limit: 10, have: 0, need: 0, seq: 1 }])).toEqual([]);
	const [row] = await db.sql`select amount from key_share`;
	expect(row?.amount).toBe(8);
});

test("a request for a share whose row is locked is skipped", async () => {
	await cluster(2);
	const store = storeOf("instance-0");
	const ask = (key: string, seq: number): ShareRequest => ({ key, kind: "rate", limit: 10, have: 0, need: 2, seq });
	await store.hold([ask("held", 1), ask("other", 2)]);
	await db.sql.begin(async (holder) => {
		await holder`select 1 from key_share where key_id = 'held' for update`;
		const grants = await store.hold([ask("held", 3), ask("other", 4), ask("new", 5)]);
		expect(grants.map(({ key }) => key).sort()).toEqual(["new", "other"]);
	});
	expect(await store.hold([ask("held", 6)])).toHaveLength(1);
});

test("a lowered limit and a raised limit apply at once", async () => {
	const { at } = await cluster(2);
	for (let sent = 0; sent < 4; sent++) await at(0).enter("key", 10);
	expect(await at(0).enter("key", 4)).toBe(false);
	expect(await at(1).enter("key", 4)).toBe(false);
	await Bun.sleep(0);
	let passed = 0;
	while (await at(0).enter("key", 12)) passed += 1;
	expect(passed).toBe(8);
});

test.each(["rate", "running"])("requests from before a %s limit exists count once the limit is used", async (kind) => {
	const { all, at } = await cluster(2, PATIENT_DIVISOR);
	const [perMinute, atOnce] = kind === "rate" ? [10, null] : [null, 10];
	for (const member of all) for (let sent = 0; sent < 6; sent++) expect(await member.enter("key", null)).toBe(true);
	// The first instance does not yet know the other instances' requests.
	expect(await at(0).enter("key", perMinute, atOnce)).toBe(true);
	expect(await at(1).enter("key", perMinute, atOnce)).toBe(false);
	for (let sent = 0; sent < 6; sent++) expect(await at(sent).enter("key", perMinute, atOnce)).toBe(false);
});

test("a lowered limit applies to all instances together", async () => {
	const { clock, all } = await cluster(3, PATIENT_DIVISOR);
	const everywhere = async (perMinute: number | null, atOnce: number | null) => {
		const before = all.map(({ limits }) => limits.running("key"));
		await Promise.all(
			all.map(async (member) => {
				for (let tried = 0; tried < 6 && (await member.enter("key", perMinute, atOnce)); tried++);
			}),
		);
		return all.reduce((sum, { limits }, place) => sum + limits.running("key") - (before[place] ?? 0), 0);
	};
	for (let round = 0; round < 3; round++) for (const member of all) await member.enter("key", 60, 60);
	expect(await everywhere(9, null)).toBe(0);
	expect(await everywhere(null, 9)).toBe(0);
	expect(await everywhere(11, null)).toBeLessThanOrEqual(2);
	for (const { limits } of all) while (limits.running("key") > 0) limits.leave("key", 0, 0);
	expect(await everywhere(null, 2)).toBeLessThanOrEqual(2);
	for (const { limits } of all) while (limits.running("key") > 0) limits.leave("key", 0, 0);
	clock.passMs += 180_000;
	// Once the limit is unused, each instance can use it.
	let served = 0;
	for (let sent = 0; sent < 12; sent++) if (await all[sent % 3]?.enter("key", 5, null)) served += 1;
	expect(served).toBe(5);
});

test("a request within its instance's share sends no statement to Postgres", async () => {
	const { at } = await cluster(1);
	await at(0).enter("key", 50, 50);
	at(0).state = "cut off";
	for (let sent = 0; sent < 49; sent++) expect(at(0).limits.enter("key", limitsOf(50, 50), 1)).toBe(true);
	for (let sent = 0; sent < 100; sent++) expect(at(0).limits.enter("free", limitsOf(null, null), 1)).toBe(true);
	expect(at(0).limits.rateLimitState("key", "rate", 50)).toMatchObject({ limit: 50, remaining: 0 });
});

test("the reported rate limit state is the limit minus all known shares", async () => {
	const { at } = await cluster(2);
	for (let sent = 0; sent < 3; sent++) await at(0).enter("key", 10);
	expect(at(0).limits.rateLimitState("key", "rate", 10).remaining).toBe(7);
	for (let sent = 0; sent < 4; sent++) await at(1).enter("key", 10);
	expect(at(1).limits.rateLimitState("key", "rate", 10).remaining).toBeLessThanOrEqual(3);
	while (await at(1).enter("key", 10));
	expect(at(1).limits.rateLimitState("key", "rate", 10).remaining).toBe(0);
});

test("shares that no longer count are deleted", async () => {
	await cluster(2);
	await db.sql`
		insert into key_share (key_id, kind, instance_id, epoch, amount, seq)
		values ('key', 'rate', 'instance-0', 1, 5, 1), ('key', 'rate', 'instance-1', 1, 5, 1)`;
	await db.sql`update instance_beat set state = 'left', lease_until = now() - interval '11 minutes' where id = 'instance-0'`;
	await deleteOldShares(db.statements);
	expect(await db.sql`select 1 from key_share`).toHaveLength(2);
	await db.sql`update key_share set at = now() - interval '11 minutes'`;
	await deleteOldShares(db.statements);
	const left = await db.sql`select instance_id from key_share`;
	expect(left.map((row) => row.instance_id)).toEqual(["instance-1"]);
});
