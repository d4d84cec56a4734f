/** The tests of each room, fastest first. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

const TESTS: Readonly<Record<string, readonly string[]>> = {
	ledger: ["ledger", "sim/simulation.test.ts", "gateway/serve/overspend.test.ts", "cluster/fence.test.ts"],
	admission: [
		"admission",
		"limits",
		"gateway/chat/chat-request.test.ts",
		"gateway/bill",
		"gateway/serve/overspend.test.ts",
		"attack/too-many.test.ts",
		"attack/fairness.test.ts",
	],
	limits: ["limits", "keys/keyring.test.ts"],
	keys: ["keys", "cli/customer-commands.test.ts", "ledger/cap-periods.test.ts", "console/member-keys.test.ts"],
	billing: ["billing", "console/webhook.test.ts", "browser/account/card.test.ts"],
	money: ["money", "admission/price.test.ts", "catalog"],
	"db/functions": ["ledger", "cluster", "keys", "limits"],
};
const ROOMS = Object.keys(TESTS);

/** A room's test files: those that name the source file first, then by their last duration. */
export function testsOf(root: string, room: string, sourceFile: string): { named: string[]; others: string[] } {
	const durations = JSON.parse(readFileSync(join(root, "test/durations.json"), "utf8")) as Record<string, number>;
	const files = (TESTS[room] ?? [])
		.flatMap((path) =>
			path.endsWith(".ts")
				? [`test/${path}`]
				: [...new Bun.Glob(`test/${path}/**/*.test.ts`).scanSync(root)].sort(
						(a, b) => (durations[a] ?? 0) - (durations[b] ?? 0),
					),
		)
		.filter((file) => !/mutants/.test(file));
	const name = sourceFile.endsWith(".sql") ? undefined : `/${basename(sourceFile)}"`;
	const names = (file: string) => name !== undefined && readFileSync(join(root, file), "utf8").includes(name);
	return { named: files.filter(names), others: files.filter((file) => !names(file)) };
}

/** The rooms and source files that an argument names: a room, or a file below `src/`. */
export function sourcesOf(root: string, word: string): { room: string; files: string[] } {
	const room = ROOMS.find((one) => word === one || word.startsWith(`${one}/`));
	if (room === undefined) throw new Error(`there is no room ${word}; there are ${ROOMS.join(", ")}`);
	if (word !== room) return { room, files: [`src/${word}`] };
	return { room, files: [...new Bun.Glob(`src/${room}/**/*.ts`).scanSync(root)].sort() };
}
