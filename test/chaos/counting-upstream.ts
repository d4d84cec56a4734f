/**
 * The scripted upstream as a process that counts per request id: `bun test/chaos/counting-upstream.ts
 * '{"gapMsMax":8,"failures":0.02}'` prints `{"url":…,"reportUrl":…}` and runs until it is killed.
 * `startCountingUpstream` starts it and reads its reports.
 */
import { createRandom } from "../support/random.ts";
import { reply, startUpstream } from "../support/upstream-server.ts";

/** What the upstream itself recorded about a received request. */
export interface Arrival {
	/** Value of the gateway's `x-request-id` header. */
	readonly requestId: string;
	/** Wall time when the request arrived, derived from the machine's monotonic clock. */
	readonly arrivedAtMs: number;
	readonly prompt: number;
	readonly sent: number;
	readonly hungUp: boolean;
}

export type CountingUpstream = Awaited<ReturnType<typeof startCountingUpstream>>;

export interface CountingOptions {
	/** Longest pause in milliseconds between two tokens of a stream; pauses are random. */
	gapMsMax: number;
	/** Fraction of requests that fail: by a status, an early end, or a reset in the middle. */
	failures: number;
	/** Fraction of requests that run for seconds, because their tokens come slowly. */
	slow?: number;
	/** Seed of the random decisions, which are made in the order of arrival. */
	seed?: number;
}

const SLOW_GAP_MS = 150;

export async function startCountingUpstream(options: CountingOptions) {
	const child = Bun.spawn([process.execPath, import.meta.path, JSON.stringify(options)], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	const reader = child.stdout.getReader();
	const { value } = await reader.read();
	if (value === undefined) throw new Error("the upstream did not start");
	const { url, reportUrl } = JSON.parse(new TextDecoder().decode(value));
	const ask = async (path: string) => (await fetch(`${reportUrl}${path}`)).json();
	return {
		url,
		pid: child.pid,
		report: (from = 0) => ask(`/report?from=${from}`) as Promise<Arrival[]>,
		open: async () => Number(await ask("/open")),
		async stop() {
			child.kill("SIGKILL");
			await child.exited;
		},
	};
}

function main(options: CountingOptions): void {
	const upstream = startUpstream({ dialect: "vllm" });
	const random = createRandom(options.seed ?? 1);
	upstream.always(() => {
		const gapMs = random.chance(options.slow ?? 0) ? SLOW_GAP_MS : random.int(0, options.gapMsMax);
		const answer = reply().trickle(gapMs).delay(gapMs);
		if (!random.chance(options.failures)) return answer;
		const kinds = [
			() => answer.errorStatus(500),
			() => answer.dieAfter(3),
			() => answer.endAfter(5),
			() => answer.errorEvent(2),
			() => answer.reset(),
		];
		return random.pick(kinds)();
	});
	const control = Bun.serve({
		port: 0,
		hostname: "127.0.0.1",
		fetch(request) {
			const { pathname, searchParams } = new URL(request.url);
			if (pathname === "/open") return Response.json(upstream.open());
			const from = Number(searchParams.get("from") ?? 0);
			const arrivals = upstream.requests
				.slice(from)
				.map(
					(seen): Arrival => ({
						requestId: seen.headers.get("x-request-id") ?? "",
						arrivedAtMs: performance.timeOrigin + seen.atMs,
						prompt: seen.tokens.prompt,
						sent: seen.tokens.completion,
						hungUp: seen.abortedAtMs !== undefined,
					}),
				);
			return Response.json(arrivals);
		},
	});
	console.log(JSON.stringify({ url: upstream.url, reportUrl: `http://127.0.0.1:${control.port}` }));
}

if (import.meta.main) main(JSON.parse(process.argv[2] ?? '{"gapMsMax":5,"failures":0}'));
