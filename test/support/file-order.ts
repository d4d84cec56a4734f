import { existsSync, readFileSync, writeFileSync } from "node:fs";
import durations from "../durations.json" with { type: "json" };

/** Of a file that nobody has timed yet: few take longer, and they are listed. */
const UNKNOWN_MS = 2_000;

/**
 * Writes to `path` how long each of `files` takes, for Bun to begin with the longest; what it measures it writes there
 * too. It keeps to the order only where it knows all of them, so the first run of a clone and a new file are given
 * durations as well: those of `durations.json`, in milliseconds, which are from another machine and good for the order.
 */
export function writeDurations(path: string, files: readonly string[]): void {
	const known: Record<string, number> = { ...durations, ...measured(path) };
	const listed = Object.fromEntries(files.map((file) => [file, known[file] ?? UNKNOWN_MS]));
	writeFileSync(path, JSON.stringify({ version: 1, files: { ...known, ...listed } }));
}

function measured(path: string): Record<string, number> {
	if (!existsSync(path)) return {};
	try {
		return JSON.parse(readFileSync(path, "utf8")).files ?? {};
	} catch {
		// A run that was killed wrote half of it.
		return {};
	}
}
