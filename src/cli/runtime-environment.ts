import type { Environment } from "../base/environment-reader.ts";

/** Variables that the runtime reads before any of our code runs. */
const OF_THE_RUNTIME: Readonly<Record<string, string>> = {
	/** Bun's maximum. Its default is 256 for the whole process; further requests wait silently. */
	BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
	/**
	 * Memory returns to the system after 5 s instead of 0.1 s (value in ms). Under load it is requested again at once,
	 * with a page fault per request and a thread of its own: 3 to 8 % of a small request's time.
	 */
	MIMALLOC_PURGE_DELAY: "5000",
	MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "5000",
};

/** The environment to restart this program with, or null if every variable is set. */
export function runtimeEnvironment(env: Environment): Record<string, string> | null {
	if (Object.keys(OF_THE_RUNTIME).every((name) => env[name])) return null;
	const isSet = (entry: [string, string | undefined]): entry is [string, string] =>
		entry[1] !== undefined && (entry[1] !== "" || OF_THE_RUNTIME[entry[0]] === undefined);
	const set = Object.entries(env).filter(isSet);
	return { ...OF_THE_RUNTIME, ...Object.fromEntries(set) };
}
