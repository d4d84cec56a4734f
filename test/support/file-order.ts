import { existsSync, readFileSync, writeFileSync } from "node:fs";
import durations from "../durations.json" with { type: "json" };

/** Default duration of a file without a measurement: slow files have one. */
const UNKNOWN_MS = 2_000;

/**
 * Writes the durations of `files` to `path`, so that Bun starts with the longest; Bun writes its measurements there
 * too. Bun needs a duration for every file, so a fresh clone and new files get those of `durations.json`, in
 * milliseconds of another machine, which suffice for the order.
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
		// A killed run may leave a truncated file.
		return {};
	}
}
