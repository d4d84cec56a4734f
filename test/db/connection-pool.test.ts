import { expect, test } from "bun:test";
import type postgres from "postgres";
import { silentLog } from "../../src/base/log.ts";
import { type ConnectionOptions, createConnectionPool } from "../../src/db/connection.ts";
import { DatabaseBusy, isDatabaseDown } from "../../src/db/outage.ts";
import { createServerHistory } from "../../src/db/server-history.ts";
import { atEnd } from "../support/at-end.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const CONNECTIONS = 4;
const DEADLINE_MS = 2_000;
const STATEMENT_MS = 50;
/** Maximum number of statements that the simulated database can execute in a second. */
const PER_S_MAX = (CONNECTIONS * 1_000) / STATEMENT_MS;
const STEP_MS = 5;

function world(options: ConnectionOptions = {}) {
	const clock = createManualClock();
	let made = 0;
	const pool = createConnectionPool(
		{ clock, log: silentLog },
		CONNECTIONS,
		() => {
			made += 1;
			return { ready: Promise.resolve({} as postgres.Sql), end: async () => {}, cancel: async () => {} };
		},
		options,
	);
	atEnd(() => pool.end());
	const statement = () => new Promise<void>((resolve) => clock.after(STATEMENT_MS, resolve));
	return {
		clock,
		pool,
		made: () => made,
		ask: () => pool.run(statement, clock.monotonicMs() + DEADLINE_MS),
		/** Advances the clock step by step and runs due timers; calls `each` at every step. */
		async pass(ms: number, each: () => void = () => {}) {
			for (let passed = 0; passed < ms; passed += STEP_MS) {
				each();
				clock.advance(STEP_MS);
				await new Promise((resolve) => setImmediate(resolve));
			}
		},
	};
}

test("an overloaded connection pool serves nearly as many statements as it can", async () => {
	for (const timesAsMuch of [5, 2, 1.3]) {
		const { ask, pass, made } = world();
		let done = 0;
		const refused: unknown[] = [];
		let due = 0;
		const come = () => {
			for (due += (PER_S_MAX * timesAsMuch * STEP_MS) / 1_000; due >= 1; due -= 1)
				ask().then(
					() => {
						done += 1;
					},
					(error: unknown) => refused.push(error),
				);
		};
		await pass(3 * DEADLINE_MS, come);
		expect(done).toBeGreaterThan(0.8 * PER_S_MAX * 3 * (DEADLINE_MS / 1_000));
		expect(refused.length).toBeGreaterThan(0);
		expect(refused.every((error) => error instanceof DatabaseBusy && isDatabaseDown(error))).toBe(true);
		expect(made()).toBe(CONNECTIONS);
	}
});

test("the connection pool serves callers in order while each is served in time", async () => {
	const { ask, pass } = world();
	const order: number[] = [];
	for (let number = 0; number < 3 * CONNECTIONS; number++) void ask().then(() => order.push(number));
	await pass(4 * STATEMENT_MS);
	expect(order).toEqual(Array.from({ length: 3 * CONNECTIONS }, (_, number) => number));
});

test.each([
	[undefined, 6_000],
	[1, 12],
	[400, 4_800],
	[60_000, 12_000],
])("the connection pool extends a deadline by twelve round trips (%p ms)", async (roundTripMs, extraMs) => {
	const history = { ...createServerHistory({ log: silentLog }), check: async () => {}, roundTripMs: () => roundTripMs };
	const { pool, clock, pass } = world({ history });
	let isLate = false;
	pool
		.run(() => new Promise<void>(() => {}), clock.monotonicMs() + DEADLINE_MS)
		.catch(() => {
			isLate = true;
		});
	await pass(DEADLINE_MS + extraMs - 10);
	expect(isLate).toBe(false);
	await pass(20);
	expect(isLate).toBe(true);
});
