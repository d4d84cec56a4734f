import { afterEach } from "bun:test";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { Fault } from "../../src/base/fault.ts";
import { silentLog } from "../../src/base/log.ts";
import { createPgShareStore, LIMITS_CHANNEL } from "../../src/keys/limit-shares.ts";
import { createKeyLimits, type KeyLimits, type RequestLimits } from "../../src/limits/key-limits.ts";
import type { ShareStore } from "../../src/limits/share-store.ts";
import { withDatabase } from "../support/database.ts";

export interface Member {
	readonly name: string;
	readonly limits: KeyLimits;
	/**
	 * `cut off`: the instance neither receives recalls nor reaches the store. `unheard`: its calls take effect
	 * unanswered.
	 */
	state: "well" | "cut off" | "unheard";
	enter(key: string, perMinute: number | null, atOnce?: number | null): Promise<boolean>;
	/** Uses tokens under a limit of tokens per minute. The request ends at once and gives `spare` of them back. */
	use(key: string, perMinute: number, tokens: number, spare?: number): Promise<boolean>;
}

export const limitsOf = (requestsPerMinute: number | null, concurrencyMax: number | null = null): RequestLimits => ({
	requestsPerMinute,
	concurrencyMax,
	tokensPerMinute: null,
});

/** Divides pauses only by two, for tests that wait for real answers on a busy machine. */
export const PATIENT_DIVISOR = 2;

/**
 * A clock that tests change. Increase `passMs` to let time pass, and `stepMs` to set only the wall clock. Timers run in
 * real time, with their delays divided by `shorter`.
 */
export function createShiftedClock(shorter: number): Clock & { passMs: number; stepMs: number } {
	const clock = {
		...systemClock,
		passMs: 0,
		stepMs: 0,
		after: (delayMs: number, run: () => void) => systemClock.after(delayMs / shorter, run),
		monotonicMs: () => systemClock.monotonicMs() + clock.passMs,
		wallMs: () => systemClock.wallMs() + clock.passMs + clock.stepMs,
	};
	return clock;
}

/** Creates a database with instances, each with a clock, a memory and an epoch. All are removed after each test. */
export async function withInstances() {
	const db = await withDatabase();
	const members: Member[] = [];
	await db.listen(
		LIMITS_CHANNEL,
		(key) => {
			for (const { state, limits } of members) if (state === "well") limits.recall(key);
		},
		() => {},
	);
	afterEach(async () => {
		await Promise.all(members.map(({ limits }) => limits.stop()));
		members.length = 0;
		await db.sql`delete from key_share`;
		await db.sql`delete from instance_beat`;
	});

	/** Makes an epoch of an instance live. */
	const begin = (name: string, epoch: number, lease = "1 hour") =>
		db.sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until)
			values (${name}, ${epoch}, 1, 'live', 30000, now() + ${lease}::interval) on conflict do nothing`;

	const storeOf = (instanceId: string, present: () => { epoch: number }, statements = db.statements) =>
		createPgShareStore({ statements, instanceLease: { instanceId, present } });

	async function join(name: string, clock: Clock, epoch = 1): Promise<Member> {
		await begin(name, epoch);
		const store = storeOf(name, () => ({ epoch }));
		const reached: ShareStore = {
			async hold(asks) {
				if (member.state === "cut off") throw new Error("away");
				const grants = await store.hold(asks);
				if (member.state === "unheard") throw new Error("the answer was lost");
				return grants;
			},
		};
		const limits = createKeyLimits({ clock, shared: { store: reached, log: silentLog } });
		const member: Member = {
			name,
			limits,
			state: "well",
			enter: (key, perMinute, atOnce = null) => entered(key, limitsOf(perMinute, atOnce), 1),
			async use(key, tokensPerMinute, tokens, spare = 0) {
				const isIn = await entered(key, { ...limitsOf(null), tokensPerMinute }, tokens);
				if (isIn) limits.leave(key, spare, clock.monotonicMs());
				return isIn;
			},
		};
		async function entered(key: string, of: RequestLimits, tokens: number): Promise<boolean> {
			try {
				for (let draws = 0; draws < 64; draws++) {
					if (limits.enter(key, of, tokens)) return true;
					await limits.draw(key, of, tokens);
				}
			} catch (error) {
				if (error instanceof Fault && error.code === "rate_limit_exceeded") return false;
				throw error;
			}
			throw new Error("drawn for ever");
		}
		members.push(member);
		return member;
	}

	async function cluster(count: number, shorter = 20) {
		const clock = createShiftedClock(shorter);
		const all: Member[] = [];
		for (let place = 0; place < count; place++) all.push(await join(`instance-${place}`, clock));
		const at = (place: number) => all[place % count] as Member;
		return { clock, all, at };
	}

	return { db, begin, storeOf, join, cluster };
}
