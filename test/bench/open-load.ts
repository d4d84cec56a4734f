/**
 * Open-loop load: requests are sent when they are due, not when others were answered, and each is timed from when it was
 * due. So a server that stops for a moment is charged for everybody who came meanwhile, as its users would.
 */
import { join } from "node:path";
import type { ArrivalOptions } from "./arrivals.ts";
import { arrivalsOf } from "./arrivals.ts";
import { cpuMicros } from "./process-usage.ts";
import type { RawConnection } from "./raw-connection.ts";
import { openConnection } from "./raw-connection.ts";
import { sharedMs } from "./shared-clock.ts";

export interface OpenLoadOptions extends ArrivalOptions {
	readonly port: number;
	/** Opened beforehand. What is due while all are busy waits, in order, and its time runs. */
	readonly connections: number;
	request(nth: number): Uint8Array;
	/** True if the answers are streams: each must have had a token and its end. */
	readonly streamed?: boolean;
	/** Called when all connections stand, before the first request. */
	begin?(): void;
}

export interface OpenLoadResult {
	readonly requests: number;
	readonly failures: number;
	readonly firstFailure: string | undefined;
	/** From when a request was due to the end of its answer, in no order. */
	readonly latenciesMs: Float64Array;
	/** From when it was due to its first token; empty if the answers are no streams. */
	readonly firstMs: Float64Array;
	/** From when it was due to when it was sent: what the generator, or a lack of connections, adds to the times. */
	readonly lateMs: Float64Array;
	/** From the first arrival to the last answer. */
	readonly elapsedMs: number;
	/** Processor time of the generator: this process and the one that keeps its time, microseconds. */
	readonly generatorMicros: number;
}

/** Time for the pacer to start. */
const HEAD_START_MS = 250;
const STUCK_MS = 30_000;
const TOKEN = '"content":"';
const END = "[DONE]";
const PACER = join(import.meta.dir, "pacer-process.ts");

interface Lane {
	connection: RawConnection;
	dueMs: number;
	firstAtMs: number;
	sawEnd: boolean;
}

export async function runOpenLoad(options: OpenLoadOptions): Promise<OpenLoadResult> {
	const { kind, perSecond, durationMs, seed, streamed = false } = options;
	const due = arrivalsOf({ kind, perSecond, durationMs, seed });
	const latenciesMs = new Float64Array(due.length);
	const firstMs: number[] = [];
	const lateMs = new Float64Array(due.length);
	const free: Lane[] = [];
	const lanes: Lane[] = [];
	const done = Promise.withResolvers<void>();
	let startMs = 0;
	/** How many have been sent, and how many are due. Those between wait for a connection. */
	let sent = 0;
	let arrived = 0;
	let finished = 0;
	let failures = 0;
	let firstFailure: string | undefined;
	let lastMs = 0;

	function finish(lane: Lane, failure: string | undefined): void {
		lastMs = sharedMs();
		latenciesMs[finished] = lastMs - lane.dueMs;
		finished += 1;
		if (failure !== undefined) {
			failures += 1;
			firstFailure ??= failure;
		} else if (streamed) firstMs.push(lane.firstAtMs - lane.dueMs);
		if (finished === due.length) done.resolve();
	}

	function verdictOf(lane: Lane, status: number): string | undefined {
		if (status !== 200) return `status ${status}`;
		if (streamed && lane.firstAtMs === 0) return "a stream without a token";
		return streamed && !lane.sawEnd ? "a stream without its end" : undefined;
	}

	function take(lane: Lane, bytes: Buffer): void {
		if (lane.firstAtMs === 0 && bytes.includes(TOKEN)) lane.firstAtMs = sharedMs();
		if (bytes.includes(END)) lane.sawEnd = true;
	}

	function sendWhatIsDue(): void {
		for (let lane = free.at(-1); sent < arrived && lane !== undefined; lane = free.at(-1)) {
			free.pop();
			lane.dueMs = startMs + (due[sent] as number);
			lane.firstAtMs = 0;
			lane.sawEnd = false;
			lateMs[sent] = sharedMs() - lane.dueMs;
			lane.connection.send(options.request(sent));
			sent += 1;
		}
	}

	async function openLane(): Promise<void> {
		const lane = { dueMs: 0, firstAtMs: 0, sawEnd: false } as Lane;
		lane.connection = await openConnection(options.port, {
			body(bytes) {
				if (streamed) take(lane, bytes);
			},
			answered(status) {
				finish(lane, verdictOf(lane, status));
				free.push(lane);
				sendWhatIsDue();
			},
			broke(reason) {
				finish(lane, reason);
				// What waits goes on another connection; with none left the load is stuck, and says so.
			},
		});
		lanes.push(lane);
		free.push(lane);
	}

	for (let index = 0; index < options.connections; index++) await openLane();
	startMs = sharedMs() + HEAD_START_MS;
	const schedule = JSON.stringify({ kind, perSecond, durationMs, seed } satisfies ArrivalOptions);
	const pacer = Bun.spawn([process.execPath, PACER, schedule, String(startMs)], { stdout: "pipe", stderr: "inherit" });
	const ownBefore = process.cpuUsage();
	options.begin?.();
	const watch = setInterval(() => {
		if (sharedMs() - Math.max(lastMs, startMs) > durationMs + STUCK_MS)
			done.reject(new Error(`the load is stuck: ${finished} of ${due.length}, ${firstFailure ?? "no failure"}`));
	}, 1_000);
	let pacerMicros = 0;
	try {
		for await (const _ of pacer.stdout) {
			const passedMs = sharedMs() - startMs;
			while (arrived < due.length && (due[arrived] as number) <= passedMs) arrived += 1;
			sendWhatIsDue();
			if (arrived === due.length) pacerMicros = cpuMicros([pacer.pid]);
		}
		await done.promise;
	} finally {
		clearInterval(watch);
		pacer.kill();
	}
	const own = process.cpuUsage(ownBefore);
	for (const { connection } of lanes) connection.close();
	return {
		requests: finished,
		failures,
		firstFailure,
		latenciesMs,
		firstMs: Float64Array.from(firstMs),
		lateMs,
		elapsedMs: lastMs - startMs,
		generatorMicros: own.user + own.system + pacerMicros,
	};
}
