import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { openTransaction } from "../support/open-transaction.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { CREDIT, withLeases } from "./lease-world.ts";

const world = withLeases();
const { startChild, startHere, broken, openLeases, journals, available } = world;

/** Leaves a crashed process's journal and locks its account's row, so that the next start cannot finish the replay. */
async function leftBehind(): Promise<{ free: () => Promise<void> }> {
	const child = await startChild("one");
	await child.acts("open streaming 1000", "progress streaming 200 320");
	await child.end();
	return { free: await openTransaction(world.db.sql, (tx) => tx`select 1 from lease for update`) };
}

test("a stop just after a start replays the crashed process's journal first", async () => {
	const { free } = await leftBehind();
	const next = await startHere("one");
	const stopped = next.stop(20_000);
	await free();
	expect(await stopped).toBe(true);
	expect(journals("one")).toEqual([]);
	expect(await openLeases()).toBe(0);
	expect(await available()).toBe(CREDIT - 200);
});

test("a stop without time for a replay leaves the journal to the next start", async () => {
	const { free } = await leftBehind();
	const lines: string[] = [];
	const log = createLog({ level: "info", write: (line) => void lines.push(line) });
	const next = await startHere("one", 30_000, systemClock, log);
	expect(await next.stop(300)).toBe(false);
	expect(lines.join("")).toContain("the next start continues it");
	await waitFor(() => lines.join("").includes("could not be replayed"), "the replay to end");
	expect(journals("one")).toContain("1");
	await free();
	const last = await startHere("one");
	await last.recovered();
	expect(await available()).toBe(CREDIT - 200);
	expect(await last.stop(5_000)).toBe(true);
	expect(journals("one")).toEqual([]);
});

test("a running process replays the journal of another process that ended", async () => {
	const child = await startChild("beside");
	const clock = createManualClock();
	const instanceLease = await startHere("living", 30_000, clock);
	await instanceLease.recovered();
	await child.acts("open done 100", "settle done 60", "open streaming 1000");
	await child.end();
	expect(journals("beside")).toHaveLength(1);
	clock.advance(10_000);
	await instanceLease.recovered();
	expect(journals("beside")).toEqual([]);
	expect((await world.db.sql`select request_id from usage_event`).length).toBe(2);
	expect(await broken()).toEqual([]);
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await openLeases()).toBe(0);
});

test("a journal that waits for a locked row does not delay the other journals", async () => {
	const second = await startChild("two");
	const { free } = await leftBehind();
	const lines: string[] = [];
	const log = createLog({ level: "info", write: (line) => void lines.push(line) });
	// A clock that shortens the searches for journals (10 s) and the pauses of waiting journals (5 s) to 200 ms.
	const after: Clock["after"] = (ms, then) => systemClock.after(ms === 10_000 || ms === 5_000 ? 200 : ms, then);
	const instanceLease = await startHere("here", 30_000, { ...systemClock, after }, log);
	await waitFor(() => lines.join("").includes("replaying a journal"), "the first to be replayed");
	await second.acts("open done 1000", "settle done 300", "open running 1000");
	await second.end();
	await waitFor(() => journals("two").length === 0, "the later journal to be handed in");
	expect(journals("one")).toEqual(["1"]);
	await free();
	await waitFor(() => journals("one").length === 0, "the first to be handed in");
	// A limit of 30 s, because the test's clock would shorten a limit of 5 s.
	expect(await instanceLease.stop(30_000)).toBe(true);
	expect([await openLeases(), await available(), await broken()]).toEqual([0, CREDIT - 500, []]);
});

test("the journal of a process that SIGSTOP paused is not replayed", async () => {
	const child = await startChild("asleep");
	await child.acts("open a 100");
	child.process.kill("SIGSTOP");
	const same = await startHere("asleep");
	const other = await startHere("other");
	await Promise.all([same.recovered(), other.recovered()]);
	expect(journals("asleep").sort()).toEqual(["1", "2"]);
	expect((await world.db.sql`select 1 from usage_event`).length).toBe(0);
	child.process.kill("SIGCONT");
	await child.acts("settle a 40");
	await waitFor(
		async () => (await world.db.sql`select 1 from usage_event where charged_nano_usd = 40`).length === 1,
		"its settlement",
	);
	expect(await child.ask("stop", "stopped")).toBe("stopped true");
	expect(await same.stop(5_000)).toBe(true);
	await world.expectEnd(other, 40);
});

test("an unreadable journal that is tried repeatedly leaks no memory", async () => {
	const odd = join(world.dataDir, "journal", "other", "no number");
	mkdirSync(odd, { recursive: true });
	writeFileSync(join(odd, "00000001.log"), "whose it is, nothing says");
	let looks = 0;
	const clock: Clock = {
		...systemClock,
		after(delayMs, run) {
			const isLook = delayMs === 5_000;
			if (isLook) looks += 1;
			return systemClock.after(isLook ? 0 : delayMs, run);
		},
	};
	const here = await startHere("one", 30_000, clock);
	const promisesAt = async (look: number) => {
		await waitFor(() => looks >= look, `look ${look}`);
		Bun.gc(true);
		return heapStats().objectTypeCounts.Promise ?? 0;
	};
	const before = await promisesAt(200);
	expect((await promisesAt(1_200)) - before).toBeLessThan(300);
	expect(await here.stop(4_000)).toBe(true);
});
