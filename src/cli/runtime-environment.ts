import type { Environment } from "../base/environment-reader.ts";

/** What the runtime reads before any of our code runs. */
const OF_THE_RUNTIME: Readonly<Record<string, string>> = {
	/** The most that Bun takes; its own default is 256 for the whole process, and the next request waits without a word. */
	BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
	/**
	 * Memory goes back to the system after five seconds, not after a tenth of one (ms): under load it is asked for again at
	 * once, at a page fault a request and a thread of its own, together 3 to 8 % of a small request's time.
	 */
	MIMALLOC_PURGE_DELAY: "5000",
	MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "5000",
};

/** The environment to start this program anew with, or null if it already says all that the runtime is to know. */
export function runtimeEnvironment(env: Environment): Record<string, string> | null {
	if (Object.keys(OF_THE_RUNTIME).every((name) => env[name])) return null;
	const isSet = (entry: [string, string | undefined]): entry is [string, string] =>
		entry[1] !== undefined && (entry[1] !== "" || OF_THE_RUNTIME[entry[0]] === undefined);
	const set = Object.entries(env).filter(isSet);
	return { ...OF_THE_RUNTIME, ...Object.fromEntries(set) };
}
