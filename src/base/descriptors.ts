import { closeSync, openSync } from "node:fs";

/** Whether this process may open so many more files. The system does not tell how many are left; opening them does, in a few microseconds. */
export function canOpen(count: number): boolean {
	const opened: number[] = [];
	try {
		while (opened.length < count) opened.push(openSync("/dev/null", "r"));
		return true;
	} catch {
		return false;
	} finally {
		for (const file of opened) closeSync(file);
	}
}
