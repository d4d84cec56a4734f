/** Simulates clients that disconnect at once, while waiting, after the first event, or in the middle of an answer. */

import type { UpstreamCount } from "../bench/fast-upstream.ts";
import type { Figures } from "../bench/figures.ts";
import type { Gateway } from "../bench/gateways.ts";
import { runLoad } from "../bench/load.ts";
import { openFiles, residentBytes } from "../bench/process-usage.ts";
import { type BenchDatabase, chargeOf } from "../bench/product.ts";
import { chatBody, SMALL_PROMPT_BYTES, streamBody } from "../bench/prompts.ts";
import { chatRequestBytes, openConnection, type RawConnection } from "../bench/raw-connection.ts";
import { NO_COUNT, plusDifference, type World } from "../bench/world.ts";
import { createRandom } from "../support/random.ts";

interface Storm {
	readonly port: number;
	readonly connections: number;
	/** Requests whose streams would last longer than any client stays. */
	readonly requests: readonly Uint8Array[];
	readonly aborts: number;
}

const WAIT_MS_MAX = 4;
const BYTES_MAX = 3_000;
/** Milliseconds of silence after which clients also leave. */
const SILENT_MS = 5_000;

/** Sends requests and aborts each of them. Returns their number. */
async function stormOf(storm: Storm, dice: (limit: number) => number): Promise<number> {
	let left = storm.aborts;
	let sent = 0;

	async function client(): Promise<void> {
		while (left > 0) {
			left -= 1;
			const over = Promise.withResolvers<void>();
			/** Bytes to read before the client leaves. With 0, it leaves without waiting for an answer. */
			const bytes = dice(2) === 0 ? 0 : 1 + dice(BYTES_MAX);
			const waitMs = dice(WAIT_MS_MAX);
			let received = 0;
			const connection: RawConnection = await openConnection(storm.port, {
				body(piece) {
					received += piece.length;
					if (bytes > 0 && received >= bytes) over.resolve();
				},
				answered: () => over.resolve(),
				broke: () => over.resolve(),
			});
			connection.send(storm.requests[dice(storm.requests.length)] as Uint8Array);
			sent += 1;
			const timer = setTimeout(() => over.resolve(), bytes === 0 ? waitMs : SILENT_MS);
			await over.promise;
			clearTimeout(timer);
			connection.close();
		}
	}

	await Promise.all(Array.from({ length: storm.connections }, client));
	return sent;
}

interface SoakParts {
	readonly gateway: Gateway;
	readonly database: BenchDatabase;
	readonly secrets: readonly string[];
	upstreamCount(): Promise<UpstreamCount> | UpstreamCount;
}

interface SoakPlan {
	readonly requests: number;
	readonly aborts: number;
	/** Fraction of the requests and aborts that precede the first reading of memory. */
	readonly warmUpShare: number;
	readonly connections: number;
	/** Largest growth of memory in bytes after the first reading. */
	readonly growthBytesMax: number;
	readonly seed: number;
}

/** One in this many connections streams. */
const STREAM_EVERY = 8;
const QUIET_DEADLINE_MS = 20_000;
/** Milliseconds without requests before a reading, in which garbage is collected. */
const SETTLE_MS = 1_000;
/** Idle connections to upstream and database that may stay open. */
const KEPT_FILES_MAX = 96;
const LOAD_DEADLINE_MS = 3_600_000;
const GROWTH_BYTES_MAX = 48 * 1024 * 1024;

/** Sends a million requests and 100,000 aborted ones (a tenth if `quick`), then checks memory, files and books. */
export async function soakService(world: World, figures: Figures): Promise<void> {
	const { gateway, database, secrets } = await world.isolated("soak");
	const requests = world.mode.quick ? 100_000 : 1_000_000;
	const { before, after, checks } = await runSoak(
		{ gateway, database, secrets, upstreamCount: world.upstreamCount },
		{
			requests,
			aborts: requests / 10,
			warmUpShare: 0.1,
			connections: 64,
			growthBytesMax: GROWTH_BYTES_MAX,
			seed: 20_261_121,
		},
	);
	for (const [when, reading] of Object.entries({ "after the warm-up": before, "at the end": after })) {
		figures.add("soak", "resident memory", "MB", when, reading.residentBytes / 1024 / 1024);
		figures.add("soak", "JavaScript heap", "MB", when, reading.heapBytes / 1024 / 1024);
		figures.add("soak", "open files", "files", when, reading.files);
	}
	world.checks.push(...checks);
}

export async function runSoak(parts: SoakParts, plan: SoakPlan) {
	const { gateway } = parts;
	const bytesOf = (body: string) => parts.secrets.map((secret) => chatRequestBytes(gateway, secret, body));
	const [plain, burst, stream] = [
		bytesOf(chatBody("plain", SMALL_PROMPT_BYTES)),
		bytesOf(streamBody("burst")),
		bytesOf(streamBody("stream")),
	];
	const random = createRandom(plan.seed);
	const dice = (limit: number) => random.int(0, limit - 1);
	let failures = 0;
	let firstFailure: string | undefined;
	let answered = 0;
	let hungUp = 0;

	async function load(requests: number, aborts: number): Promise<void> {
		const result = await runLoad({
			port: gateway.port,
			connections: plan.connections,
			request(connection) {
				const kind = connection % STREAM_EVERY === 0 ? burst : plain;
				return kind[connection % kind.length] as Uint8Array;
			},
			durationMs: LOAD_DEADLINE_MS,
			requestsMax: requests,
		});
		answered += result.requests;
		failures += result.failures;
		firstFailure ??= result.firstFailure;
		const storm = { port: gateway.port, connections: plan.connections, requests: stream, aborts };
		hungUp += await stormOf(storm, dice);
	}

	const served = await parts.upstreamCount();
	await load(Math.round(plan.requests * plan.warmUpShare), Math.round(plan.aborts * plan.warmUpShare));
	const before = await readQuiet(parts);
	await load(plan.requests, plan.aborts);
	const after = await readQuiet(parts);
	const books = await booksChecks(parts, { answered, hungUp, before: served });
	const still = after.running + after.queued + after.streams + after.upstreamOpen;
	const growth = after.residentBytes - before.residentBytes;
	return {
		before,
		after,
		checks: [
			{
				name: "every request that was not aborted is answered with 200",
				ok: failures === 0 && answered === plan.requests + Math.round(plan.requests * plan.warmUpShare),
				detail: `${answered} answers, ${failures} failures${firstFailure === undefined ? "" : `, first: ${firstFailure}`}`,
			},
			{ name: "nothing is still running, queued or open", ok: still === 0, detail: JSON.stringify(after) },
			{
				name: "memory is where it was after the warm-up",
				ok: growth <= plan.growthBytesMax,
				detail: `${megabytes(before.residentBytes)} before, ${megabytes(after.residentBytes)} after`,
			},
			{
				name: "no file is left open",
				ok: after.files <= before.files + KEPT_FILES_MAX,
				detail: `${before.files} before, ${after.files} after`,
			},
			...books,
		],
	};
}

function megabytes(bytes: number): string {
	return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** Waits until no request runs and reads the figures. After the deadline, reads them anyway. */
async function readQuiet(parts: Omit<SoakParts, "secrets">) {
	const giveUpAt = performance.now() + QUIET_DEADLINE_MS;
	for (;;) {
		const reading = await read(parts);
		const still = reading.running + reading.queued + reading.streams + reading.upstreamOpen;
		if (still > 0 && performance.now() < giveUpAt) {
			await Bun.sleep(50);
			continue;
		}
		await Bun.sleep(SETTLE_MS);
		return read(parts);
	}
}

async function read({ gateway, upstreamCount }: Omit<SoakParts, "secrets">) {
	const answer = await fetch(`http://127.0.0.1:${gateway.port}/metrics`);
	const text = await answer.text();
	const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
	const [pid = 0] = gateway.pids();
	return {
		residentBytes: residentBytes([pid]),
		heapBytes: value("process_heap_bytes"),
		files: openFiles(pid),
		running: value("tollgate_requests_running"),
		queued: value("tollgate_settlements_queued"),
		streams: value("tollgate_streams_open"),
		upstreamOpen: (await upstreamCount()).open,
	};
}

async function booksChecks(
	parts: SoakParts,
	{ answered, hungUp, before }: { answered: number; hungUp: number; before: UpstreamCount },
) {
	const { database } = parts;
	const books = await database.books();
	const served = plusDifference(NO_COUNT, before, await parts.upstreamCount());
	const rows = await database.sql<{ ending: string; requests: string; charged: string }[]>`
		select ending, count(*) as requests, sum(charged_nano_usd) as charged from usage_event group by ending`;
	const of = (ending: string) => rows.find((row) => row.ending === ending);
	const finished = of("finished");
	const left = of("client_left");
	const others = rows.filter((row) => row !== finished && row !== left);
	return [
		{
			name: "every answer is one settled request in Postgres",
			ok: Number(finished?.requests) === answered,
			detail: `${finished?.requests} of ${answered}`,
		},
		{
			name: "their charges are the upstream's own count at the model's rates",
			ok: Number(finished?.charged) === chargeOf(served) && served.requests === answered,
			detail: `${finished?.charged} nano-dollars, ${chargeOf(served)} by count`,
		},
		{
			name: "every other request is one whose client disconnected",
			ok: others.length === 0 && Number(left?.requests ?? 0) <= hungUp,
			detail: `${left?.requests ?? 0} of ${hungUp} were admitted before the client left; others: ${JSON.stringify(others)}`,
		},
		{ name: "the books reconcile", ok: books.reconciled, detail: books.broken.join("; ") || "all checks hold" },
	];
}
