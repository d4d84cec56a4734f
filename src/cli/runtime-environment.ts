import type { Environment } from "../base/environment-reader.ts";

/** Variables that Bun reads before it runs this program's code. */
const OF_THE_RUNTIME: Readonly<Record<string, string>> = {
	/** Most concurrent requests that Bun sends. Its default is 256 per process; further requests would wait. */
	BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
	/**
	 * Milliseconds until freed memory returns to the system; Bun's default is 100. Under load the memory is needed again
	 * within that time, and the page faults cost 3 to 8 % of the time of a small request.
	 */
	MIMALLOC_PURGE_DELAY: "5000",
	MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "5000",
};

/** Environment for starting this program again; null if it already has every variable. */
export function runtimeEnvironment(env: Environment): Record<string, string> | null {
	if (Object.keys(OF_THE_RUNTIME).every((name) => env[name])) return null;
	const isSet = (entry: [string, string | undefined]): entry is [string, string] =>
		entry[1] !== undefined && (entry[1] !== "" || OF_THE_RUNTIME[entry[0]] === undefined);
	const set = Object.entries(env).filter(isSet);
	return { ...OF_THE_RUNTIME, ...Object.fromEntries(set) };
}
