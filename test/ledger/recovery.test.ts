import { expect, test } from "bun:test";
import {
	cpSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	symlinkSync,
	truncateSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { DatabaseBusy, DatabaseTimeout } from "../../src/db/outage.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { openJournalRoot } from "../../src/ledger/journal-root.ts";
import { createJournalReplays } from "../../src/ledger/left-journals.ts";
import { InstanceRunning, KEEP_NONE, type OwnerState, waitForOwnerState } from "../../src/ledger/lost-journal.ts";
import { replayJournal } from "../../src/ledger/recovery.ts";
import { settleLate } from "../../src/ledger/settling.ts";
import { type FlushResult, LeaseExceeded, type LedgerStore } from "../../src/ledger/store.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { openTestJournal, settledEvent } from "./fixture.ts";

const root = temporaryFolder();

/** The journal of a dead process with settled requests of accounts a, b and c; the test sets Postgres' answers. */
function left(
	flush: (accounts: readonly string[], instance: string) => Partial<FlushResult> | Promise<Partial<FlushResult>>,
	write: (line: string) => void = () => {},
	onLate: () => void = () => {},
) {
	const home = mkdtempSync(join(root, "home-"));
	const journals = openJournalRoot(home);
	const claim = journals.claim("gone", 1, { create: true });
	if (!claim) throw new Error("the journal is free");
	const { journal } = openTestJournal(claim.disk, systemClock, {});
	for (const account of ["a", "b", "c"]) {
		const budgets = [`proj_${account}`];
		const event = settledEvent(account, `key-${account}`, 5, { budgets });
		journal.admit(JSON.stringify({ ...event, charged: undefined }));
		journal.settle(JSON.stringify(event));
	}
	journal.close();
	claim.release();
	const done: string[] = [];
	/** Instances of which all leases are closed except those of accounts with settlements still to come. */
	const closedInPart = new Set<string>();
	const storeFor = (instance: string) => ({
		async flush(settled: readonly SettledEvent[]) {
			const accounts = settled.map(({ account }) => account);
			const flushed = { late: false, fresh: 0, busy: new Set<string>(), ...(await flush(accounts, instance)) };
			const taken = accounts.filter((account) => !flushed.busy.has(account));
			if (!flushed.late) done.push(`settled ${taken.join("")}`);
			return flushed;
		},
		async settleLate(eventJson: string) {
			onLate();
			done.push(`late ${(JSON.parse(eventJson) as SettledEvent).account}`);
		},
		async close(keep: readonly string[] = []) {
			if (keep.length > 0) closedInPart.add(instance);
			const closed = keep.length > 0 && !done.includes(`closed all but ${keep}`) ? 1 : 0;
			if (keep.length === 0 || closed > 0) done.push(keep.length === 0 ? "closed" : `closed all but ${keep}`);
			return { closed, done: keep.length === 0 };
		},
	});
	const clock = createManualClock();
	const state = { stopping: false };
	const position = { server: "one" };
	const waiting = { begun: 0, over: Promise.resolve(), standing: "gone" as OwnerState };
	const deps = {
		journals,
		storeFor: (instance: string) => storeFor(instance) as unknown as LedgerStore,
		clock,
		log: createLog({ level: "error", write }),
		isStopping: () => state.stopping,
		instanceId: "here",
		timesOf: async () => ({}),
		heartbeats: { position: async () => ({ seq: 0, server: position.server }) },
		kept: KEEP_NONE,
		standingOf: async () => {
			waiting.begun += 1;
			await waiting.over;
			return waiting.standing;
		},
	};
	const journalsHere = createJournalReplays(deps);
	return {
		done,
		closedInPart,
		home,
		waiting,
		position,
		state,
		/** Journals that the last search found. Searches continue while some of them wait. */
		leftJournals: () => journalsHere,
		passing: (over: () => boolean) =>
			waitFor(() => {
				if (clock.pending() > 0) clock.advance(200);
				return over();
			}, "time to pass"),
		names: () => journals.list(() => {}).map(({ id }) => id),
		isThere: () => journals.list(() => {}).length > 0,
		pass: (ms: number) => clock.advance(ms),
		async recover(instanceId = deps.instanceId) {
			let failed: number | undefined;
			const left = instanceId === deps.instanceId ? journalsHere : createJournalReplays({ ...deps, instanceId });
			const recovering = left.look().then(async (tried) => (failed = tried + (await left.ended())));
			await waitFor(() => {
				if (clock.pending() > 0) clock.advance(200);
				return failed !== undefined;
			}, "the replay");
			return recovering;
		},
	};
}

test("a settlement that waits for a locked row delays no other account", async () => {
	let looks = 0;
	const { recover, done, isThere } = left(() => (++looks < 4 ? { busy: new Set(["b"]) } : {}));
	expect(await recover()).toBe(0);
	expect(done.filter((step) => step !== "settled ")).toEqual([
		"settled ac",
		"closed all but b,key-b,proj_b",
		"settled b",
		"closed",
	]);
	expect(isThere()).toBe(false);
});

test("a journal is replayed again if the database server changed during its replay", async () => {
	const { recover, position, done, isThere } = left(() => {
		if (position.server === "one") position.server = "two";
		return {};
	});
	expect([await recover(), isThere()]).toEqual([1, true]);
	expect([await recover(), isThere()]).toEqual([0, false]);
	expect(done.filter((step) => step === "settled abc")).toHaveLength(2);
});

test("journals that wait for a locked row delay no other journal", async () => {
	let isHeld = true;
	const isFree = (instance: string) => instance === "gone" || instance === "late";
	const { leftJournals, passing, names, home, closedInPart } = left((_, instance) =>
		isHeld && !isFree(instance) ? { busy: new Set(["b"]) } : {},
	);
	const addOf = (name: string) => {
		cpSync(join(home, "gone"), join(home, name), { recursive: true });
		writeFileSync(join(home, name, "1", "lock"), "");
	};
	const waiting = Array.from({ length: 15 }, (_, place) => `a${String(place).padStart(2, "0")}`);
	for (const name of [...waiting, "late"]) addOf(name);
	expect(Bun.spawnSync(["mv", join(home, "late"), `${home}-late`]).success).toBe(true);
	const journals = leftJournals();
	let looks = 0;
	const look = () => journals.look().then((failed) => (looks += failed === 0 ? 1 : Number.NaN));
	void look();
	await passing(() => looks === 1 && !names().includes("gone"));
	expect([names(), journals.waiting()]).toEqual([waiting, waiting.length]);
	expect([...closedInPart].sort()).toEqual(waiting);
	expect(Bun.spawnSync(["mv", `${home}-late`, join(home, "late")]).success).toBe(true);
	void look();
	await passing(() => looks === 2 && !names().includes("late"));
	expect([names(), journals.waiting()]).toEqual([waiting, waiting.length]);
	isHeld = false;
	let failed: number | undefined;
	void journals.ended().then((count) => (failed = count));
	await passing(() => failed !== undefined);
	expect([failed, names(), journals.waiting()]).toEqual([0, [], 0]);
});

test("journals above the limit of waiting journals are replayed once a row is unlocked", async () => {
	let isHeld = true;
	const { recover, names, home, closedInPart } = left(() => (isHeld ? { busy: new Set(["b"]) } : {}));
	for (let place = 0; place < 25; place++) cpSync(join(home, "gone"), join(home, `a${place}`), { recursive: true });
	for (const name of names()) writeFileSync(join(home, name, "1", "lock"), "");
	const recovering = recover();
	// Sixteen journals wait for a row and four for their turn. No other account's credit may stay reserved.
	await waitFor(() => closedInPart.size === 20, "other accounts' leases to be closed");
	isHeld = false;
	expect([await recovering, names()]).toEqual([0, []]);
});

/** Replays a journal with 12,000 settlements of one account. `flush` returns Postgres' answer. */
function longReplay(flush: () => Partial<FlushResult>) {
	const claim = openJournalRoot(mkdtempSync(join(root, "home-"))).claim("gone", 1, { create: true });
	if (!claim) throw new Error("the journal is free");
	const { journal } = openTestJournal(claim.disk, systemClock, {});
	for (let place = 0; place < 12_000; place++) journal.settle(JSON.stringify(settledEvent("b", "key-b", 5)));
	journal.close();
	const sent = new Set<string>();
	const late = { all: 0, beforeClose: undefined as number | undefined };
	const store = {
		async flush(settled: readonly SettledEvent[]) {
			for (const { id } of settled) sent.add(id);
			return { late: false, fresh: 0, busy: new Set<string>(), ...flush() };
		},
		async settleLate() {
			late.all += 1;
		},
		async close() {
			late.beforeClose ??= late.all;
			return { closed: 0, done: true };
		},
	} as unknown as LedgerStore;
	const clock = { ...systemClock, after: (_ms: number, then: () => void) => systemClock.after(1, then) };
	const log = createLog({ level: "error", write: () => {} });
	const deps = { clock, log, store, isStopping: () => false, stepAside: async () => {}, refused: [] };
	return { sent, late, over: replayJournal(deps, claim.disk) };
}

test("a replay stops reading while 10,000 settlements wait for a locked row", async () => {
	let flushes = 0;
	const sentWhenFreed: number[] = [];
	const { sent, over } = longReplay(() => {
		flushes += 1;
		if (flushes === 200) sentWhenFreed.push(sent.size);
		return flushes < 200 ? { busy: new Set(["b"]) } : {};
	});
	expect((await over).settled).toBe(12_000);
	expect([sentWhenFreed, sent.size]).toEqual([[10_500], 12_000]);
});

test("a replay settles charges above a lease as late, even more than 10,000 of them", async () => {
	const { late, over } = longReplay(() => {
		if (late.beforeClose !== undefined) return { late: true };
		throw new LeaseExceeded("more than the lease holds");
	});
	expect((await over).settled).toBe(12_000);
	expect(late).toEqual({ all: 12_000, beforeClose: 10_500 });
});

test("a foreign file in the journal folder does not delay any journal", async () => {
	const { recover, done, home, names } = left(() => ({}));
	writeFileSync(join(home, "backup.tar"), "");
	mkdirSync(join(home, "100%", "1"), { recursive: true });
	for (const name of ["0", "loop"]) symlinkSync(name, join(home, "gone", name));
	// Creates unreadable journals that sort before the readable one, more than are replayed concurrently.
	for (const name of ["a", "b", "c", "d", "e"]) {
		mkdirSync(join(home, name, "1", "lock"), { recursive: true });
		writeFileSync(join(home, name, "1", "00000001.log"), "");
		writeFileSync(join(home, name, "2"), "");
	}
	// Replaces files by named pipes without a writer, and the lock file by zeros.
	for (const name of ["00000001.log", "lock"]) {
		mkdirSync(join(home, name, "1"), { recursive: true });
		writeFileSync(join(home, name, "1", "00000001.log"), "", { flag: "a" });
		rmSync(join(home, name, "1", name), { force: true });
		Bun.spawnSync(["mkfifo", join(home, name, "1", name)]);
	}
	mkdirSync(join(home, "zeros", "1"), { recursive: true });
	writeFileSync(join(home, "zeros", "1", "00000001.log"), "");
	writeFileSync(join(home, "zeros", "1", "lock"), "");
	truncateSync(join(home, "zeros", "1", "lock"), 4e9);
	await recover();
	expect(names()).toEqual(["00000001.log", "100%", "a", "b", "c", "d", "e", "lock"]);
	expect(done.toSorted()).toEqual(["closed", "closed", "settled abc"]);
});

test("a journal that waits for its instance's end delays no other journal", async () => {
	const { recover, done, home, waiting } = left(() => ({}));
	// Journals that must wait and sort before the one that can be replayed, more than are replayed concurrently.
	const copies = ["a", "b", "c", "d", "e"];
	for (const name of copies) cpSync(join(home, "gone"), join(home, name), { recursive: true });
	const { promise, resolve } = Promise.withResolvers<void>();
	waiting.over = promise;
	const recovering = recover();
	await waitFor(() => waiting.begun === 5, "the copies to wait");
	expect(done).toEqual(["settled abc", "closed"]);
	resolve();
	expect(await recovering).toBe(0);
	expect(done.length).toBe(2 * (1 + copies.length));
});

test.each([
	["unsure", []],
	["runs here", []],
	["runs elsewhere", ["a journal is a copy of a running instance's; leaving it alone"]],
] as const)("a journal from before a reboot whose instance %s is left alone and logs %p", async (standing, said) => {
	const { recover, done, home, waiting, isThere } = left(
		() => ({}),
		(line) => done.push(JSON.parse(line).message),
	);
	const lock = join(home, "gone", "1", "lock");
	writeFileSync(lock, readFileSync(lock, "utf8").replace(/^\S+/, "another-start"));
	waiting.standing = standing;
	expect(await recover("gone")).toBe(said.length);
	expect([done, isThere()]).toEqual([[...said], true]);
});

test("an instance that renews its lease, but has no journal here, runs elsewhere", async () => {
	const home = mkdtempSync(join(root, "home-"));
	const journals = openJournalRoot(home);
	const renews = (epoch: number) => new InstanceRunning("one", epoch, true);
	async function standing(...seen: (InstanceRunning | undefined)[]) {
		const waitUntilSilent = async () => {
			const runs = seen.shift();
			if (runs) throw runs;
		};
		return [await waitForOwnerState({ waitUntilSilent, journals }, "one"), seen.length];
	}
	expect(await standing(renews(1), renews(1))).toEqual(["runs elsewhere", 0]);
	// The instance that renewed its lease has since ended in order, so its journal no longer exists.
	expect(await standing(renews(1), undefined)).toEqual(["gone", 0]);
	expect(await standing(renews(1), renews(2), renews(2))).toEqual(["runs elsewhere", 0]);
	// Two instances with one name, started from two copies, renew in turns.
	expect(await standing(renews(1), renews(2), renews(1))).toEqual(["runs elsewhere", 0]);
	// The epoch has just joined and may be about to create its journal.
	expect(await standing(renews(1), new InstanceRunning("one", 2, false))).toEqual(["unsure", 0]);
	const claim = openJournalRoot(home).claim("one", 1, { create: true });
	expect(await standing(renews(1), undefined)).toEqual(["runs here", 1]);
	claim?.release();
});

test("settlements of an ended epoch are recorded one by one, as late", async () => {
	const { recover, done } = left(() => ({ late: true }));
	expect(await recover()).toBe(0);
	expect(done).toEqual(["late a", "late b", "late c", "closed"]);
});

test("a late settlement is recorded once even if the connection breaks", async () => {
	let asked = 0;
	const { recover, done } = left(
		() => ({ late: true }),
		() => {},
		() => {
			asked += 1;
			if (asked % 2 === 0) throw new DatabaseTimeout("no answer");
		},
	);
	expect(await recover()).toBe(0);
	expect(done).toEqual(["late a", "late b", "late c", "closed"]);
	expect(asked).toBe(5);
});

test("after a locked account row, recovery tries no later settlement of that account", async () => {
	const tried: string[] = [];
	const store = {
		async settleLate(eventJson: string) {
			const { account } = JSON.parse(eventJson) as SettledEvent;
			tried.push(account);
			if (account === "a") throw new DatabaseBusy("a row is held");
		},
	} as unknown as LedgerStore;
	const [first, second, other] = [
		settledEvent("a", "key", 1),
		settledEvent("a", "key", 2),
		settledEvent("b", "key", 3),
	];
	expect(await settleLate(store, [first, second, other])).toEqual([first, second]);
	expect(tried).toEqual(["a", "b"]);
});

test("a settlement that exceeds its lease is settled as late, after other settlements", async () => {
	const { recover, done } = left((accounts) => {
		if (done.some((one) => one.startsWith("closed"))) return { late: true };
		if (accounts.includes("b")) throw new LeaseExceeded("more than the lease holds");
		return {};
	});
	expect(await recover()).toBe(0);
	expect(done).toEqual(["settled a", "settled c", "closed all but b,key-b,proj_b", "late b", "closed"]);
});

test("a settlement refused repeatedly is set aside, and its journal is not deleted", async () => {
	let refuses = true;
	const said: string[] = [];
	let flushes = 0;
	const { recover, done, isThere, pass } = left(
		(accounts) => {
			flushes += 1;
			if (refuses && accounts.includes("b")) throw new Error("scripted: refused");
			return {};
		},
		(line) => said.push(line),
	);
	expect(await recover()).toBe(1);
	expect(done).toEqual(["settled a", "settled c", "closed all but b,key-b,proj_b"]);
	expect(said.filter((line) => line.includes("refuses a settlement of a journal repeatedly"))).toHaveLength(1);
	expect(said.join()).toContain('\\"account\\":\\"b\\"');
	expect(isThere()).toBe(true);
	// The replay must pause between tries, because each try sends the whole journal.
	const flushesATry = flushes;
	for (let looks = 0; looks < 10; looks++) expect(await recover()).toBe(1);
	expect(flushes).toBe(flushesATry);
	pass(600_000);
	expect(await recover()).toBe(1);
	expect(flushes).toBe(2 * flushesATry);
	done.length = 3;
	pass(600_000);
	refuses = false;
	expect(await recover()).toBe(0);
	expect(done.slice(3)).toEqual(["settled abc", "closed"]);
	expect(isThere()).toBe(false);
});

test("no settlement is set aside while the database is unavailable", async () => {
	let away = 5;
	const { recover, done } = left(() => {
		away -= 1;
		if (away >= 0) throw Object.assign(new Error("scripted: away"), { code: "ECONNREFUSED" });
		return {};
	});
	expect(await recover()).toBe(0);
	expect(done).toEqual(["settled abc", "closed"]);
});

test("a journal that could not be replayed is kept and replayed again", async () => {
	const world = left(() => {
		if (done.length < 3) {
			done.push("tried");
			world.state.stopping = done.length === 3;
			throw new Error("away");
		}
		return {};
	});
	const { done } = world;
	expect(await world.recover()).toBe(1);
	expect(world.isThere()).toBe(true);
	world.state.stopping = false;
	expect(await world.recover()).toBe(0);
	expect(done.slice(3)).toEqual(["settled abc", "closed"]);
	expect(world.isThere()).toBe(false);
});

test("an unreadable journal folder is reported, and readable folders are listed", () => {
	const home = mkdtempSync(join(root, "home-"));
	for (const epoch of ["1", "2"]) mkdirSync(join(home, "one", epoch), { recursive: true });
	// Creates symbolic links that point to themselves.
	symlinkSync("3", join(home, "one", "3"));
	symlinkSync("two", join(home, "two"));
	const reported: string[] = [];
	const found = openJournalRoot(home).list((folder) => void reported.push(folder));
	expect(found.map(({ id, epoch }) => `${id} ${epoch}`)).toEqual(["one 1", "one 2"]);
	expect(reported).toEqual([join(home, "one", "3"), join(home, "two")]);
});
