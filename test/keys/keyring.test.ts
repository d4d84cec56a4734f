import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../src/base/fault.ts";
import { silentLog } from "../../src/base/log.ts";
import type { ControlEntry } from "../../src/cluster/control-log.ts";
import type { AccountFields, KeyEntry, KeyFields, ProjectFields } from "../../src/keys/key-entry.ts";
import { createKeyring, type Keyring, type KeyringOptions, type LoadedKey } from "../../src/keys/keyring.ts";
import type { KeyDigest } from "../../src/keys/secret.ts";
import { plainAccountFields, plainKeyFields } from "../support/plain-key.ts";

/** A keyring whose database queries the test answers one by one. */
function scripted(options: KeyringOptions = {}) {
	const asked: { digest: string; answer: (loaded: LoadedKey) => void; fail: (error: Error) => void }[] = [];
	const load = (digest: string) => new Promise<LoadedKey>((answer, fail) => asked.push({ digest, answer, fail }));
	return { ring: createKeyring({ load, log: silentLog }, options), asked };
}

function answering(rows: Map<string, LoadedKey>, options: KeyringOptions = {}) {
	return createKeyring(
		{ load: async (digest) => rows.get(digest) ?? { seq: 1, key: null, account: null }, log: silentLog },
		options,
	);
}

function loaded(
	seq: number,
	id: string,
	changes: Partial<KeyFields> = {},
	account: Partial<AccountFields> = {},
): LoadedKey {
	return { seq, key: plainKeyFields(id, changes), account: { ...plainAccountFields, ...account } };
}

function keyChange(seq: number, id: string, changes: Partial<KeyFields>): ControlEntry {
	return { seq, atMicros: 0, kind: "key", subject: id, payload: { ...plainKeyFields(id, changes) } };
}

function accountChange(seq: number, changes: Partial<AccountFields>, subject = "acc_1"): ControlEntry {
	return { seq, atMicros: 0, kind: "account", subject, payload: { ...plainAccountFields, ...changes } };
}

function projectOf(changes: Partial<ProjectFields>): ProjectFields {
	const none = { capNanoUsd: null, models: null, requestsPerMinute: null, concurrencyMax: null, tokensPerMinute: null };
	return { name: "p", state: "active", capPeriod: "lifetime", ...none, ...changes };
}

function projectChange(seq: number, changes: Partial<ProjectFields>, subject = "proj_1"): ControlEntry {
	return { seq, atMicros: 0, kind: "project", subject, payload: { ...projectOf(changes) } };
}

const digestOf = (text: string) => text as KeyDigest;

async function loadOne(ring: Keyring, digest: string): Promise<KeyEntry> {
	const entry = await ring.load(digestOf(digest));
	if (entry === null) throw new Error(`${digest} is unknown`);
	return entry;
}

const settle = () => Bun.sleep(0);

describe("the keyring", () => {
	test("loads a key once for concurrent callers", async () => {
		const { ring, asked } = scripted();
		expect(ring.peek(digestOf("d"))).toBeUndefined();
		const waiting = [ring.load(digestOf("d")), ring.load(digestOf("d")), ring.load(digestOf("d"))];
		expect(ring.size().loading).toBe(1);
		asked[0]?.answer(loaded(5, "key_1", { models: ["m"], capNanoUsd: 7 }));
		const entries = await Promise.all(waiting);
		expect(new Set(entries).size).toBe(1);
		expect(ring.peek(digestOf("d"))).toBe(entries[0] as KeyEntry);
		expect(await ring.load(digestOf("d"))).toBe(entries[0] as KeyEntry);
		expect(asked.length).toBe(1);
		expect(entries[0]).toMatchObject({
			id: "key_1",
			capNanoUsd: 7,
			models: new Set(["m"]),
			account: { id: "acc_1", state: "active" },
		});
		expect(ring.size()).toEqual({ keys: 1, unknown: 0, accounts: 1, loading: 0 });
	});

	const ofProject = (seq: number, changes: Partial<ProjectFields>): LoadedKey => ({
		...loaded(seq, "key_1", { projectId: "proj_1" }),
		project: projectOf(changes),
	});
	const [revoked, suspended] = [{ state: "revoked" }, { state: "suspended" }] as const;
	test.each([
		["a revocation", keyChange(6, "key_1", revoked), loaded(5, "key_1"), loaded(6, "key_1", revoked)],
		["a suspension", accountChange(6, suspended), loaded(5, "key_1"), loaded(6, "key_1", {}, suspended)],
		["a project's end", projectChange(6, { state: "archived" }), ofProject(5, {}), ofProject(6, { state: "archived" })],
	] as const)("reads a row again that is older than %s", async (_, change, old, fresh) => {
		const { ring, asked } = scripted();
		const waiting = ring.load(digestOf("d"));
		ring.apply(change);
		asked[0]?.answer(old);
		await settle();
		expect(ring.peek(digestOf("d"))).toBeUndefined();
		asked[1]?.answer(fresh);
		const entry = await waiting;
		expect([entry?.state, entry?.account.state, entry?.project?.state]).toEqual([
			fresh.key?.state,
			fresh.account?.state,
			fresh.project?.state,
		]);
	});

	test("ignores control entries that are older than the loaded key", async () => {
		const { ring, asked } = scripted();
		const waiting = ring.load(digestOf("d"));
		asked[0]?.answer(loaded(9, "key_1", { state: "revoked", name: "new" }, { state: "suspended" }));
		const entry = await waiting;
		ring.apply(keyChange(7, "key_1", { name: "old" }));
		ring.apply(accountChange(8, { state: "active" }));
		expect(entry).toMatchObject({ state: "revoked", name: "new", account: { state: "suspended" } });
		ring.apply(accountChange(10, { state: "active" }));
		expect(entry?.account.state).toBe("active");
	});

	test("changes a loaded key in place, so that running requests see the change", async () => {
		const ring = answering(new Map([["d", loaded(1, "key_1")]]));
		const held = await loadOne(ring, "d");
		ring.apply(keyChange(2, "key_1", { state: "revoked", capNanoUsd: 3, models: ["a"] }));
		expect(held).toMatchObject({ state: "revoked", capNanoUsd: 3, models: new Set(["a"]) });
		ring.apply(accountChange(3, { state: "suspended" }));
		expect(held.account.state).toBe("suspended");
	});

	test("shares an account's state among all its keys", async () => {
		const { ring, asked } = scripted();
		const first = ring.load(digestOf("d1"));
		asked[0]?.answer(loaded(9, "key_1", {}, { state: "suspended" }));
		const entry1 = await first;
		const second = ring.load(digestOf("d2"));
		asked[1]?.answer(loaded(4, "key_2", {}, { state: "active" }));
		const entry2 = await second;
		expect(entry2?.account).toBe(entry1?.account as KeyEntry["account"]);
		expect(entry2?.account.state).toBe("suspended");
	});

	test("remembers that a key is unknown until any key is created", async () => {
		const { ring, asked } = scripted();
		const first = ring.load(digestOf("d"));
		asked[0]?.answer({ seq: 3, key: null, account: null });
		expect(await first).toBeNull();
		expect(ring.peek(digestOf("d"))).toBe("unknown");
		ring.apply(keyChange(4, "key_1", {}));
		expect(ring.peek(digestOf("d"))).toBeUndefined();
		const second = ring.load(digestOf("d"));
		asked[1]?.answer(loaded(4, "key_1"));
		expect((await second)?.id).toBe("key_1");
	});

	test("does not remember a key as unknown that is created while it loads", async () => {
		const { ring, asked } = scripted();
		const waiting = ring.load(digestOf("d"));
		ring.apply(keyChange(4, "key_1", {}));
		asked[0]?.answer({ seq: 3, key: null, account: null });
		await settle();
		asked[1]?.answer(loaded(4, "key_1"));
		expect((await waiting)?.id).toBe("key_1");
	});

	test("keeps a loaded key although a control entry about credit arrives", async () => {
		const { ring, asked } = scripted();
		const waiting = ring.load(digestOf("d"));
		ring.apply({ seq: 50, atMicros: 0, kind: "budget", subject: "acc_1", payload: {} });
		asked[0]?.answer(loaded(5, "key_1"));
		expect((await waiting)?.id).toBe("key_1");
	});

	test("answers 503 if the database keeps returning an outdated key", async () => {
		let reads = 0;
		const load = async () => {
			reads += 1;
			return loaded(1, "key_1");
		};
		const ring = createKeyring({ load, log: silentLog });
		ring.apply(accountChange(9, {}));
		expect(await ring.load(digestOf("d")).catch((error) => error.code)).toBe("service_unavailable");
		expect(reads).toBe(5);
		expect(ring.size().loading).toBe(0);
	});

	test("answers 503 with retry-after if the database fails", async () => {
		const { ring, asked } = scripted();
		const first = ring.load(digestOf("d"));
		asked[0]?.fail(new Error("connection refused"));
		const fault = await first.catch((error) => error);
		expect(fault).toBeInstanceOf(Fault);
		expect([fault.code, fault.retryAfterS]).toEqual(["service_unavailable", 1]);
		expect(ring.peek(digestOf("d"))).toBeUndefined();
		const second = ring.load(digestOf("d"));
		asked[1]?.answer(loaded(1, "key_1"));
		expect((await second)?.id).toBe("key_1");
	});

	test("drops all keys on `clear`, and repeats loads in progress", async () => {
		const { ring, asked } = scripted();
		const first = ring.load(digestOf("d1"));
		asked[0]?.answer(loaded(1, "key_1"));
		const held = await first;
		const waiting = ring.load(digestOf("d2"));
		ring.clear(1);
		expect(held?.current).toBe(false);
		expect(ring.peek(digestOf("d1"))).toBeUndefined();
		asked[1]?.answer(loaded(1, "key_2"));
		await settle();
		expect(ring.size().keys).toBe(0);
		asked[2]?.answer(loaded(2, "key_2", { state: "revoked" }));
		expect((await waiting)?.state).toBe("revoked");
	});

	test("accepts keys without the last control entries after `clear`", async () => {
		const { ring, asked } = scripted();
		ring.apply(keyChange(9, "key_1", { name: "of the server before" }));
		ring.clear(6);
		const waiting = ring.load(digestOf("d1"));
		asked[0]?.answer(loaded(6, "key_1"));
		expect((await waiting)?.state).toBe("active");
		const other = ring.load(digestOf("d2"));
		ring.apply(keyChange(7, "key_2", { state: "revoked" }));
		asked[1]?.answer(loaded(6, "key_2"));
		await settle();
		asked[2]?.answer(loaded(7, "key_2", { state: "revoked" }));
		expect((await other)?.state).toBe("revoked");
	});

	test("evicts unused keys beyond its limit", async () => {
		const rows = new Map(
			Array.from({ length: 20 }, (_, i) => [`d${i}`, loaded(1, `key_${i}`, { accountId: `acc_${i}` })]),
		);
		const ring = answering(rows, { keysMax: 4 });
		const statements = await loadOne(ring, "d0");
		const entries: KeyEntry[] = [];
		for (let i = 1; i < 20; i++) {
			ring.peek(digestOf("d0"));
			entries.push(await loadOne(ring, `d${i}`));
		}
		expect(ring.size()).toMatchObject({ keys: 4, accounts: 4 });
		expect(statements.current).toBe(true);
		expect(ring.peek(digestOf("d0"))).toBe(statements);
		expect(entries.filter((entry) => entry.current).length).toBe(3);
		expect(entries.filter((entry) => !entry.current).length).toBe(16);
	});

	test("bounds the number of remembered unknown keys", async () => {
		const ring = answering(new Map(), { unknownMax: 10 });
		for (let i = 0; i < 50; i++) await ring.load(digestOf(`d${i}`));
		expect(ring.size().unknown).toBe(10);
		expect(ring.peek(digestOf("d49"))).toBe("unknown");
		expect(ring.peek(digestOf("d0"))).toBeUndefined();
	});

	test("bounds the number of concurrent loads", async () => {
		const { ring, asked } = scripted({ loadsMax: 2 });
		const waiting = [ring.load(digestOf("d1")), ring.load(digestOf("d2"))];
		expect(await ring.load(digestOf("d3")).catch((error) => error.code)).toBe("service_unavailable");
		asked[0]?.answer(loaded(1, "key_1"));
		asked[1]?.answer(loaded(1, "key_2"));
		expect((await Promise.all(waiting)).map((entry) => entry?.id)).toEqual(["key_1", "key_2"]);
	});

	test("applies a change of a project to all keys of the project", async () => {
		const rows = new Map<string, LoadedKey>();
		for (const id of ["one", "two"])
			rows.set(id, { ...loaded(1, id, { projectId: "proj_1" }), project: projectOf({ concurrencyMax: 5 }) });
		const ring = answering(rows);
		const one = await loadOne(ring, "one");
		ring.apply(projectChange(5, { state: "archived" }));
		rows.set("two", { ...loaded(5, "two", { projectId: "proj_1" }), project: projectOf({ state: "archived" }) });
		const two = await loadOne(ring, "two");
		expect(two.project).toBe(one.project);
		expect(one.project).toMatchObject({ id: "proj_1", state: "archived", concurrencyMax: null });
		ring.apply(projectChange(7, { models: ["a"] }));
		ring.apply(projectChange(6, { state: "archived" }));
		expect(one.project).toMatchObject({ state: "active", models: new Set(["a"]) });
		expect([one.current, two.current]).toEqual([true, true]);
		ring.apply(projectChange(8, {}, "proj_2"));
		expect(one.project?.models).toEqual(new Set(["a"]));
	});

	test("loads a key again that moved to another project", async () => {
		const rows = new Map<string, LoadedKey>();
		const ring = answering(rows);
		const moves: [string | null, string | null][] = [
			[null, "proj_1"],
			["proj_1", "proj_2"],
			["proj_2", null],
		];
		let seq = 1;
		for (const [from, to] of moves) {
			const rowOf = (projectId: string | null): LoadedKey => ({
				...loaded(seq, "k", { projectId }),
				project: projectId === null ? null : projectOf({}),
			});
			rows.set("k", rowOf(from));
			const before = await loadOne(ring, "k");
			seq += 1;
			ring.apply(keyChange(seq, "k", { projectId: to }));
			expect(before.current).toBe(false);
			expect(ring.peek(digestOf("k"))).toBe(undefined);
			rows.set("k", rowOf(to));
			expect((await loadOne(ring, "k")).project?.id ?? null).toBe(to);
			ring.clear(seq);
		}
	});

	test("never returns a key that is older than a control entry already applied", async () => {
		const step = fc.constantFrom("load", "change", "apply", "answer", "evict");
		const [digest, id] = [digestOf("d".repeat(64)), `key_${"d".repeat(32)}`];
		await fc.assert(
			fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
				// Each query returns a key with the newest sequence number, which is also the key's name and compared below.
				let newest = 0;
				let applied = 0;
				const pending: (() => void)[] = [];
				const load = (asked: KeyDigest) =>
					new Promise<LoadedKey>((resolve) => {
						if (asked !== digest) return resolve(loaded(newest, "key_other"));
						const row = loaded(newest, id, { name: String(newest), accountId: `acc_${"d".repeat(32)}` });
						pending.push(() => resolve(row));
					});
				const ring = createKeyring({ load, log: silentLog }, { keysMax: 1 });
				for (const name of steps) {
					if (name === "load") void ring.load(digest).catch(() => {});
					else if (name === "change") newest += 1;
					else if (name === "answer") pending.shift()?.();
					else if (name === "evict") {
						if (newest === applied) await ring.load(digestOf("other"));
					} else if (applied < newest) {
						applied += 1;
						ring.apply(keyChange(applied, id, { name: String(applied) }));
					}
					await settle();
					const entry = ring.peek(digest);
					if (entry !== undefined && entry !== "unknown") expect(Number(entry.name)).toBeGreaterThanOrEqual(applied);
				}
			}),
			{ numRuns: 500 },
		);
	});
});
