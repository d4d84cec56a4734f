import { AsyncLocalStorage } from "node:async_hooks";
import { availableParallelism } from "node:os";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { CounterMap } from "../base/counter-map.ts";
import type { CsvTurns } from "../base/csv.ts";
import { createFairPool, createFairQueue } from "../base/fair-pool.ts";
import { checkJsonStructure } from "../base/json-structure.ts";
import { type BodyHold, createBodyMemory } from "../gateway/body/body-memory.ts";
import { createBodyReads } from "../gateway/body/body-reads.ts";
import { readBytes } from "../gateway/body/bytes-body.ts";
import type { Connection } from "../gateway/connection.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";
import { ConsoleError } from "./console-error.ts";

const MB = 1024 * 1024;

/** Memory for request bodies: an account may use enough for the largest body; a network without a session, less. */
const ACCOUNTS_MEMORY = { bodyMemoryBytesMax: 96 * MB, bodyMemoryAccountBytesMax: 33 * MB };
const NETWORKS_MEMORY = { bodyMemoryBytesMax: 16 * MB, bodyMemoryAccountBytesMax: 4 * MB };
/** Bodies up to this size have the deadline SMALL_BODY_MS_MAX, larger ones LARGE_BODY_MS_MAX. */
const SMALL_BYTES = MB;
const SMALL_BODY_MS_MAX = 15_000;
const LARGE_BODY_MS_MAX = 5 * 60_000;

/** Limits of concurrent reads of pages. The console has four connections to the database. */
const READS = { places: 8, ownMax: 3, waitingMax: 1_000, waitMsMax: 10_000, full: consoleIsBusy };

/** Limits of concurrent sign-in requests of one kind. A request that waits for another service may last 10 s. */
const SIGN_INS = { ...READS, places: 4 };
const ELSEWHERE_PLACES = 16;

/**
 * Limits of concurrent password hashes. Each occupies a thread of the runtime's pool for 65 ms or longer. The pool has
 * one thread per processor, at least two. One stays free for other work, such as signatures of session cookies.
 */
const HASHES = { ...READS, places: Math.max(1, availableParallelism() - 1), ownMax: 1 };

/** Open CSV files, also those of slow readers. If the places are full, the largest owner's oldest file ends. */
export const CSV_FILES_MAX = 64;
const CSV_FILES_SHARE = 1 / 8;
export const CSV_FILE_MS_MAX = 15 * 60_000;
/** Turns to read and format rows. One at once, because it takes half of the connections to the database. */
export const CSV_TURNS = { ...READS, places: 1, ownMax: 1, waitMsMax: 30_000 };

/** Changes per account, or per person without an account. Playground chats write no rows and are exempt. */
const CHANGES = [
	{ windowMs: 60_000, most: 120 },
	{ windowMs: 24 * 3_600_000, most: 1_000 },
] as const;

interface BodyOrigin {
	/** The account or person whose limit counts; null: the client's network counts. */
	readonly owner: string | null;
	readonly bytesMax: number;
}

export type ConsoleLimiter = ReturnType<typeof createConsoleLimiter>;

/**
 * Divides the console's memory, database connections and CPU time fairly among accounts, or among networks for callers
 * without a session. SECURITY.md lists each limit.
 */
export function createConsoleLimiter({ clock }: { clock: Clock }) {
	const bodyReads = createBodyReads(clock);
	const ofAccounts = createBodyMemory({ limits: () => ACCOUNTS_MEMORY });
	const ofNetworks = createBodyMemory({ limits: () => NETWORKS_MEMORY });
	const reads = createFairQueue({ clock }, READS);
	const signIns = {
		/** Sign-in requests of browsers that signed in before. */
		known: createFairQueue({ clock }, SIGN_INS),
		unknown: createFairQueue({ clock }, SIGN_INS),
		/** Sign-in requests that wait for an identity provider. */
		elsewhere: createFairQueue({ clock }, { ...SIGN_INS, places: ELSEWHERE_PLACES }),
	};
	const hashes = createFairQueue({ clock }, HASHES);
	const csvTurns = createFairQueue({ clock }, CSV_TURNS);
	const csvFiles = createFairPool({ size: () => CSV_FILES_MAX, share: () => CSV_FILES_SHARE, allYield: true });
	/** Owner of the sign-in request that runs. */
	const signingIn = new AsyncLocalStorage<string>();
	const windows = CHANGES.map((window) => ({ ...window, counts: new CounterMap(), endsMs: 0 }));

	/**
	 * Reads a body within its deadline and runs `work` with it. Faults `request_timeout`, `payload_too_large`,
	 * `rate_limit_exceeded`, `overloaded`.
	 */
	async function withBytes<Answer>(
		connection: Connection,
		{ owner, bytesMax }: BodyOrigin,
		work: (bytes: Uint8Array<ArrayBuffer>, hold: BodyHold) => Answer | Promise<Answer>,
	): Promise<Answer> {
		const hold = owner === null ? ofNetworks.hold(addressNetwork(connection.address)) : ofAccounts.hold(owner);
		try {
			const deadlineMs = bytesMax <= SMALL_BYTES ? SMALL_BODY_MS_MAX : LARGE_BODY_MS_MAX;
			return await work(await readBytes(connection, bytesMax, bodyReads, hold, deadlineMs), hold);
		} finally {
			hold.release();
		}
	}

	return {
		/** Runs a read of `owner`, possibly after waiting in the fair queue. Fault `overloaded`. */
		read: <Answer>(owner: string, work: () => Promise<Answer>) => reads.run(owner, work),

		/** Runs a request of the sign-in, possibly after waiting in the fair queue of its kind. Fault `overloaded`. */
		signIn: <Answer>(kind: keyof typeof signIns, owner: string, work: () => Promise<Answer>) =>
			signIns[kind].run(owner, () => signingIn.run(owner, work)),

		/** Hashes a password for the sign-in request that runs, possibly after waiting in the fair queue. */
		hash<Answer>(work: () => Promise<Answer>): Promise<Answer> {
			const owner = signingIn.getStore();
			assert(owner !== undefined, "passwords are hashed for requests of the sign-in only");
			return hashes.run(owner, work);
		},

		/** Turns of an owner's CSV files. Opening one: faults `rate_limit_exceeded`, `overloaded`. */
		csvTurns: (owner: string): CsvTurns => ({
			open(end) {
				const openedMs = clock.monotonicMs();
				const giveUp = (why: Error) => {
					leave();
					end(why);
				};
				const freePlace = csvFiles.enter(owner, { pace: () => openedMs, giveUp });
				const cancel = clock.after(CSV_FILE_MS_MAX, () => giveUp(consoleIsBusy()));
				const leave = () => {
					cancel();
					freePlace();
				};
				return leave;
			},
			run: (work) => csvTurns.run(owner, work),
		}),

		change(owner: string): void {
			const nowMs = clock.monotonicMs();
			for (const window of windows) {
				if (nowMs >= window.endsMs) {
					window.counts = new CounterMap();
					window.endsMs = nowMs + window.windowMs;
				}
				if (window.counts.of(owner) >= window.most)
					throw new ConsoleError("rate_limit_exceeded", "This account made too many changes. Try again later.", {
						retryAfterS: Math.ceil((window.endsMs - nowMs) / 1_000),
					});
				window.counts.add(owner, 1);
			}
		},

		withBytes,

		/** Like `withBytes`, but checks the body's structure and passes `work` a request that contains the body. */
		async withBody<Answer>(
			connection: Connection,
			from: BodyOrigin,
			work: (connection: Connection) => Answer | Promise<Answer>,
		): Promise<Answer> {
			const { request, address } = connection;
			if (request.body === null) return work(connection);
			return withBytes(connection, from, async (body, hold) => {
				hold.take((await checkJsonStructure(new TextDecoder().decode(body))).parsedBytes);
				const { url, method, headers, signal } = request;
				const whole = new Request(url, { method, headers, body, signal });
				return work({ request: whole, address, setIdleTimeout: (seconds) => connection.setIdleTimeout(seconds) });
			});
		},
	};
}

function consoleIsBusy(): ConsoleError {
	return new ConsoleError("overloaded", "The console is busy. Try again in a few seconds.", { retryAfterS: 2 });
}
