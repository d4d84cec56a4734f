/** Closed-loop load: each connection sends its next request when its previous one is answered. */
import type { RawConnection } from "./raw-connection.ts";
import { openConnection } from "./raw-connection.ts";

export interface LoadOptions {
	readonly port: number;
	readonly connections: number;
	/** Returns the next request of the connection with this number. */
	request(connection: number): Uint8Array;
	/** Time until the last request is sent; requests in flight are then awaited. */
	readonly durationMs: number;
	readonly requestsMax?: number;
	/** Called when all connections are open and warm, before the first counted request. */
	begin?(): void;
	/** Called before a connection sends its next request. */
	sending?(connection: number): void;
	/** Receives a chunk of the body on a connection. */
	body?(connection: number, bytes: Buffer): void;
	/** Describes what is wrong with an answer of status 200; undefined if it is correct. */
	problem?(connection: number): string | undefined;
}

export type LoadResult = Awaited<ReturnType<typeof runLoad>>;

const LATENCIES_MAX = 2_000_000;
/** Timeout of a request, after which the whole load fails. */
const STUCK_MS = 30_000;

export async function runLoad(options: LoadOptions) {
	const latenciesMs = new Float64Array(LATENCIES_MAX);
	const done = Promise.withResolvers<void>();
	const requestsMax = options.requestsMax ?? Number.POSITIVE_INFINITY;
	const connections: RawConnection[] = [];
	const sentAt: number[] = [];
	let requests = 0;
	let sent = 0;
	let failures = 0;
	let firstFailure: string | undefined;
	let running = options.connections;
	let stopAt = 0;
	let lastAt = 0;

	function fail(reason: string): void {
		failures += 1;
		firstFailure ??= reason;
	}

	function next(connection: number, now: number): void {
		if (now >= stopAt || sent >= requestsMax) {
			running -= 1;
			if (running === 0) done.resolve();
			return;
		}
		sent += 1;
		sentAt[connection] = now;
		options.sending?.(connection);
		connections[connection]?.send(options.request(connection));
	}

	for (let index = 0; index < options.connections; index++) {
		connections.push(
			await openConnection(options.port, {
				body: (bytes) => options.body?.(index, bytes),
				answered(status) {
					const now = performance.now();
					lastAt = now;
					if (requests < LATENCIES_MAX) latenciesMs[requests] = now - (sentAt[index] as number);
					requests += 1;
					const problem = status === 200 ? options.problem?.(index) : `status ${status}`;
					if (problem !== undefined) fail(problem);
					next(index, now);
				},
				broke(reason) {
					fail(reason);
					next(index, Number.POSITIVE_INFINITY);
				},
			}),
		);
	}
	options.begin?.();
	const startedAt = performance.now();
	stopAt = startedAt + options.durationMs;
	const watch = setInterval(() => {
		if (performance.now() - Math.max(lastAt, startedAt) > STUCK_MS) done.reject(new Error("the load is stuck"));
	}, 1_000);
	for (let index = 0; index < options.connections; index++) next(index, startedAt);
	await done.promise.finally(() => clearInterval(watch));
	for (const connection of connections) connection.close();
	const counted = Math.min(requests, LATENCIES_MAX);
	return {
		requests,
		/** Number of answers with a problem or a status other than 200, and of broken connections. */
		failures,
		firstFailure,
		/** Time from the first request to the last answer. */
		elapsedMs: lastAt - startedAt,
		/** Milliseconds of each answer, unordered. */
		latenciesMs: latenciesMs.slice(0, counted),
	};
}
