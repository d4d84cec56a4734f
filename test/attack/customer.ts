import { readFileSync } from "node:fs";

/**
 * A customer: `bun test/attack/customer.ts URL SECRET SECONDS BYTES PID` sends requests of BYTES bytes until the time
 * has passed, and prints one line of JSON. A separate process, so that an attacker or a test does not delay its clock.
 */
export interface CustomerReport {
	/** Status codes other than 200, or `none`. */
	readonly refused: readonly string[];
	readonly p50Ms: number;
	readonly p99Ms: number;
	/**
	 * CPU time that the event loop of process PID used during the request, which is mostly work for others before it.
	 * Other processes of the machine do not count.
	 */
	readonly p99LoopMs: number;
}

const PAUSE_MS = 20;

async function send(url: string, secret: string, bytes: number): Promise<string> {
	try {
		const response = await fetch(`${url}/v1/chat/completions`, {
			method: "POST",
			headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
			body: JSON.stringify({ model: "test-model", messages: [{ role: "user", content: "x".repeat(bytes) }] }),
		});
		await response.bytes();
		return String(response.status);
	} catch {
		return "none";
	}
}

/** The refused requests, and percentiles of the times and event-loop times of all requests. */
export function summarized(refused: readonly string[], times: number[], loopTimes: number[]): CustomerReport {
	const at = (all: number[], share: number) =>
		Math.round((all.sort((a, b) => a - b)[Math.floor((all.length - 1) * share)] ?? 0) * 10) / 10;
	return { refused, p50Ms: at(times, 0.5), p99Ms: at(times, 0.99), p99LoopMs: at(loopTimes, 0.99) };
}

/** CPU time of a process's main thread in ms (Linux only). */
export function loopMs(pid: string): number {
	if (process.platform !== "linux") return performance.now();
	return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

if (import.meta.main) {
	const [url = "", secret = "", seconds = "", bytes = "", pid = ""] = process.argv.slice(2);
	const times: number[] = [];
	const loopTimes: number[] = [];
	const refused: string[] = [];
	await send(url, secret, Number(bytes));
	const endsMs = performance.now() + Number(seconds) * 1_000;
	do {
		const [beganMs, beganLoopMs] = [performance.now(), loopMs(pid)];
		const status = await send(url, secret, Number(bytes));
		times.push(performance.now() - beganMs);
		loopTimes.push(loopMs(pid) - beganLoopMs);
		if (status !== "200") refused.push(status);
		await Bun.sleep(PAUSE_MS);
	} while (performance.now() < endsMs);
	console.log(JSON.stringify(summarized(refused, times, loopTimes)));
}
