import { expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import { durabilityProblem, readDurability, startDurabilityWatch } from "../../src/db/durability.ts";
import { withDatabase } from "../support/database.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

test("the durability check reports settings that can lose confirmed usage", () => {
	const said = (commit: string, waitedFor: string, standbys: number) =>
		durabilityProblem({ commit, waitedFor, standbys }) ?? "nothing";
	expect(said("on", "", 0)).toBe("nothing");
	expect(said("local", "", 0)).toBe("nothing");
	expect(said("on", "FIRST 1 (a)", 1)).toBe("nothing");
	expect(said("remote_apply", "*", 2)).toBe("nothing");
	expect(said("on", "", 1)).toContain("asynchronously");
	expect(said("local", "*", 1)).toContain("no standby is waited for");
	for (const standbys of [0, 1]) expect(said("off", "*", standbys)).toContain("synchronous_commit is off");
});

test("the durability check logs once when such settings begin and once when they end", async () => {
	const db = await withDatabase();
	const real = await readDurability(db.statements);
	// The tests' Postgres runs with durability off and without standbys.
	expect(real).toEqual({ commit: "off", waitedFor: "", standbys: 0, isStuck: false, unreadable: "" });
	let found = real;
	const lines: string[] = [];
	const log = createLog({ level: "info", write: (line) => void lines.push(line) });
	const clock = createManualClock();
	const watch = startDurabilityWatch({ read: async () => found, clock, log });
	const until = (isSo: () => boolean, what: string) =>
		waitFor(() => {
			clock.advance(60_000);
			return isSo();
		}, what);
	const said = () => lines.filter((line) => line.includes("can lose usage")).length;
	await until(() => watch.problem()?.includes("off") === true, "its word");
	for (let look = 0; look < 5; look++) await until(() => true, "a look");
	expect(said()).toBe(1);
	found = { ...real, commit: "on", standbys: 1 };
	await until(() => watch.problem()?.includes("asynchronously") === true, "the other word");
	found = { ...real, commit: "on", waitedFor: "*", standbys: 1 };
	await until(() => watch.problem() === undefined, "silence");
	expect(said()).toBe(2);
	watch.stop();
});
