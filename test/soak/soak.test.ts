import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { startFastUpstream } from "../bench/fast-upstream.ts";
import { openIdleStreams } from "../bench/idle-streams.ts";
import { residentBytes } from "../bench/process-usage.ts";
import { chargeOf, openBenchDatabase, startProduct } from "../bench/product.ts";
import { chatBody, SMALL_PROMPT_BYTES, streamBody } from "../bench/prompts.ts";
import { chatRequestBytes, openConnection, type RawConnection } from "../bench/raw-connection.ts";
import { PROGRAM } from "../cli/run-cli.ts";
import { temporaryFolder, untilEnd } from "../support/at-end.ts";
import { createTestDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { waitFor } from "../support/wait.ts";
import { runSoak } from "./soak.ts";

const [REQUESTS, ABORTS] = LONG ? [5_000, 1_000] : [600, 120];
const STREAMS_WANTED = LONG ? 5_000 : 250;
const STREAM_BYTES_MAX = 48 * 1024;

/** Each stream needs two open files of the service and one of this process; its upstream needs another one here. */
function streamsPossible(): number {
	const limit = Number(/Max open files\s+(\d+)/.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? 1_024);
	return Math.min(STREAMS_WANTED, Math.floor((limit - 500) / 2));
}

const READERS = LONG ? 20 : 4;
/** The upstream holds 105 MB for the streams: if the gateway reads it at once, it becomes garbage quickly. */
const GROWTH_BYTES_MAX = 512 * 1024 * 1024;
/** Largest growth in the second half, in which no data is read. */
const LATE_GROWTH_BYTES_MAX = 16 * 1024 * 1024;
const HALF_MS = 2_000;

const KEYS = 4;

/** The service as a process, with a load-testing upstream in this process. */
async function startSoakService() {
	const folder = temporaryFolder();
	const upstream = startFastUpstream();
	const test = await createTestDatabase();
	const database = await openBenchDatabase(test.url);
	const { secrets } = await database.customer(KEYS);
	const gateway = await startProduct({
		command: PROGRAM,
		databaseUrl: test.url,
		upstreamPort: upstream.port,
		folder,
		pinned: false,
		env: { DRAIN_S: "1" },
	});
	return {
		gateway,
		database,
		secrets,
		upstream,
		upstreamCount: () => upstream.count(),
		async stop() {
			await gateway.stop();
			upstream.stop();
			await database.close();
			await test.drop();
		},
	};
}

/** Memory and open files are read from /proc, so these tests need Linux. */
const onLinux = test.skipIf(process.platform !== "linux");

const service = untilEnd(await startSoakService());

onLinux(
	`after ${REQUESTS} requests and ${ABORTS} hang-ups nothing is left over, and the books are exact`,
	async () => {
		const plan = {
			requests: REQUESTS,
			aborts: ABORTS,
			warmUpShare: 0.3,
			connections: 32,
			// A young heap first grows to its size; only the long run has a tight limit.
			growthBytesMax: 96 * 1024 * 1024,
			seed: 5,
		};
		const { checks } = await runSoak(service, plan);
		expect(checks.filter(({ ok }) => !ok)).toEqual([]);
	},
	60_000,
);

const requestOf = (body: string) => {
	const all = service.secrets.map((secret) => chatRequestBytes(service.gateway, secret, body));
	return (index: number) => all[index % all.length] as Uint8Array;
};

onLinux(
	`one worker keeps ${STREAMS_WANTED} streams open, answers others meanwhile, and charges each of them exactly`,
	async () => {
		const streams = streamsPossible();
		const { gateway, upstream, database } = service;
		const [counted, booked] = [upstream.count(), await database.books()];
		const before = residentBytes(gateway.pids());
		const group = await openIdleStreams(gateway.port, streams, requestOf(streamBody("idle")));
		expect(upstream.count().open).toBe(streams);
		expect((residentBytes(gateway.pids()) - before) / streams).toBeLessThan(STREAM_BYTES_MAX);

		const answer = Promise.withResolvers<number>();
		const other = await openConnection(gateway.port, { answered: answer.resolve, broke: (why) => answer.reject(why) });
		const startedMs = performance.now();
		other.send(requestOf(chatBody("plain", SMALL_PROMPT_BYTES))(0));
		expect(await answer.promise).toBe(200);
		expect(performance.now() - startedMs).toBeLessThan(2_000);
		other.close();

		upstream.release();
		await group.ended();
		const { prompt, completion } = upstream.count();
		const books = await database.books(booked.requests + streams + 1);
		expect(books).toEqual({
			requests: booked.requests + streams + 1,
			charged:
				booked.charged + chargeOf({ prompt: prompt - counted.prompt, completion: completion - counted.completion }),
			reconciled: true,
			broken: [],
		});
	},
	60_000,
);

onLinux(
	"readers that take nothing of a long stream cost bounded memory, and hanging up ends their streams",
	async () => {
		const { gateway, upstream, database } = service;
		const before = residentBytes(gateway.pids());
		const request = chatRequestBytes(gateway, service.secrets[0] as string, streamBody("flood"));
		const begun: Promise<void>[] = [];
		const readers: RawConnection[] = [];
		for (let index = 0; index < READERS; index++) {
			const first = Promise.withResolvers<void>();
			const reader = await openConnection(gateway.port, {
				body() {
					reader.pause();
					first.resolve();
				},
				answered: () => first.reject(new Error("the stream ended")),
				broke: (why) => first.reject(new Error(why)),
			});
			reader.send(request);
			readers.push(reader);
			begun.push(first.promise);
		}
		await Promise.all(begun);
		// Waits a fixed time, in which unbounded growth would show.
		await Bun.sleep(HALF_MS);
		const half = residentBytes(gateway.pids());
		await Bun.sleep(HALF_MS);
		const end = residentBytes(gateway.pids());
		expect(upstream.count().open).toBe(READERS);
		expect(end - before).toBeLessThan(GROWTH_BYTES_MAX);
		expect(end - half).toBeLessThan(LATE_GROWTH_BYTES_MAX);

		for (const reader of readers) reader.close();
		await waitFor(() => upstream.count().open === 0, "the upstream's streams to be closed");
		expect((await database.books()).reconciled).toBe(true);
	},
	60_000,
);
