import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { openIdleStreams } from "../bench/idle-streams.ts";
import { residentBytes } from "../bench/process-usage.ts";
import { chargeOf } from "../bench/product.ts";
import { chatBody, SMALL_PROMPT_BYTES, streamBody } from "../bench/prompts.ts";
import { chatRequestBytes, openConnection } from "../bench/raw-connection.ts";
import { untilEnd } from "../support/at-end.ts";
import { startSoakService } from "./service.ts";

const STREAMS_WANTED = 5_000;
const STREAM_BYTES_MAX = 48 * 1024;

/** Each stream takes two files of the service and one of this process; the upstream in this process another. */
function streamsPossible(): number {
	const limit = Number(/Max open files\s+(\d+)/.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? 1_024);
	return Math.min(STREAMS_WANTED, Math.floor((limit - 500) / 2));
}

/** Memory and files are read from /proc. */
const onLinux = test.skipIf(process.platform !== "linux");

const service = untilEnd(await startSoakService());

const requestOf = (body: string) => {
	const all = service.secrets.map((secret) => chatRequestBytes(service.gateway, secret, body));
	return (index: number) => all[index % all.length] as Uint8Array;
};

onLinux(
	"one worker keeps 5,000 streams open, answers others meanwhile, and charges each of them exactly",
	async () => {
		const streams = streamsPossible();
		const { gateway, upstream, database } = service;
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
		const books = await database.books(streams + 1);
		expect(books).toEqual({ requests: streams + 1, charged: chargeOf(upstream.count()), reconciled: true, broken: [] });
	},
	60_000,
);
