import type { Environment } from "../base/environment-reader.ts";

/** Variables that Bun reads before any code of this program runs. */
const OF_THE_RUNTIME: Readonly<Record<string, string>> = {
	/** Most concurrent requests that Bun sends. With the default, 256 per process, further requests wait. */
	BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
	/**
	 * Milliseconds until freed memory returns to the system; Bun's default is 100. Under load it would be needed again at
	 * once, with a page fault per request: 3 to 8 % of a small request's time.
	 */
	MIMALLOC_PURGE_DELAY: "5000",
	MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "5000",
};

/** Environment for starting this program again; null if every variable is set. */
export function runtimeEnvironment(env: Environment): Record<string, string> | null {
	if (Object.keys(OF_THE_RUNTIME).every((name) => env[name])) return null;
	const isSet = (entry: [string, string | undefined]): entry is [string, string] =>
		entry[1] !== undefined && (entry[1] !== "" || OF_THE_RUNTIME[entry[0]] === undefined);
	const set = Object.entries(env).filter(isSet);
	return { ...OF_THE_RUNTIME, ...Object.fromEntries(set) };
}
