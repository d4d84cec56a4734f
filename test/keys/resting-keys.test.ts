import { expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import type { KeyDigest } from "../../src/keys/digest.ts";
import { createRestingKeys, type RestingKey } from "../../src/keys/resting-keys.ts";
import { SharedTexts } from "../../src/keys/shared-texts.ts";
import { plainAccountFields, plainKeyFields } from "../support/plain-key.ts";

/** They are looked for by their last word, a digest by its first one: here there are few, and side by side. */
const wordOf = (nth: number) => (nth % 5).toString(16).padStart(8, "0");
const hexOf = (digits: number, nth: number) => `${nth.toString(16).padStart(digits - 8, "0")}${wordOf(nth)}`;
const digestOf = (nth: number) => `${wordOf(nth)}${nth.toString(16).padStart(56, "0")}` as KeyDigest;
const keyIdOf = (nth: number) => `key_${hexOf(32, nth)}`;
const accountIdOf = (nth: number) => `acc_${hexOf(32, nth)}`;

const KEYS = 40;
const ACCOUNTS = 7;
const name = fc.oneof(
	fc.constantFrom("", "plain", "exactly 23 bytes, ja jaa", "x".repeat(255), "é".repeat(12), "é".repeat(11)),
	fc.string({ unit: "grapheme", maxLength: 30 }),
);
const settings = fc.record({
	name,
	state: fc.constantFrom("active" as const, "revoked" as const),
	capNanoUsd: fc.constantFrom(null, 0, 2 ** 53 - 1),
	models: fc.constantFrom(null, ["a"], ["a", "b"]),
	expiresAtMs: fc.constantFrom(null, 253_402_300_799_999),
	capPeriod: fc.constantFrom("lifetime" as const, "day" as const),
	readsOnly: fc.boolean(),
	projectId: fc.constant(null),
});
const accountFields = fc.record({
	state: fc.constantFrom("active" as const, "suspended" as const),
	toppedUp: fc.boolean(),
	signedIn: fc.boolean(),
	timeZone: fc.constantFrom("UTC", "Europe/Vienna"),
});
const step = fc.record({
	what: fc.constantFrom("put", "put", "put", "take", "key", "account", "moved"),
	nth: fc.nat({ max: KEYS - 1 }),
	back: fc.nat({ max: 3 }),
	settings,
	account: accountFields,
});

test("keys at rest are as they were put and as the control log changed them since, each until it is taken", () => {
	fc.assert(
		fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
			const resting = createRestingKeys(1_000);
			const keys = new Map<number, Pick<RestingKey, "seq" | "fields">>();
			const accounts = new Map<number, Pick<RestingKey, "accountSeq" | "account">>();
			const take = (nth: number) => {
				const key = keys.get(nth);
				const account = accounts.get(nth % ACCOUNTS);
				expect(resting.take(digestOf(nth))).toEqual(key && account && { digest: digestOf(nth), ...key, ...account });
				keys.delete(nth);
				if (![...keys.keys()].some((other) => other % ACCOUNTS === nth % ACCOUNTS)) accounts.delete(nth % ACCOUNTS);
			};
			// Beyond 32 bits.
			let seq = 2 ** 40;
			for (const { what, nth, back, settings, account } of steps) {
				seq += 1;
				const told = { accountSeq: seq - back, account };
				const known = accounts.get(nth % ACCOUNTS);
				const newest = known && known.accountSeq >= told.accountSeq ? known : told;
				const fields = plainKeyFields(keyIdOf(nth), { accountId: accountIdOf(nth % ACCOUNTS), ...settings });
				if (what === "put" && !keys.has(nth)) {
					expect(resting.put({ digest: digestOf(nth), seq, fields, ...told })).toBe(true);
					keys.set(nth, { seq, fields });
					accounts.set(nth % ACCOUNTS, newest);
				} else if (what === "take") take(nth);
				else if (what === "key") {
					const key = keys.get(nth);
					expect(resting.applyKey(fields.id, seq - back, fields)).toBe(key !== undefined);
					// That it only reads outlasts what is said of a key.
					const after = { ...fields, readsOnly: fields.readsOnly === true || key?.fields.readsOnly === true };
					if (key && seq - back > key.seq) keys.set(nth, { seq: seq - back, fields: after });
				} else if (what === "moved") {
					// A key of a project does not rest; what is older than what is known of it moves nothing.
					const key = keys.get(nth);
					expect(resting.applyKey(fields.id, seq - back, { ...fields, projectId: "proj_1" })).toBe(key !== undefined);
					if (key && seq - back > key.seq) {
						keys.delete(nth);
						if (![...keys.keys()].some((other) => other % ACCOUNTS === nth % ACCOUNTS)) accounts.delete(nth % ACCOUNTS);
					}
				} else if (what === "account") {
					resting.applyAccount(fields.accountId, seq - back, account);
					if (known) accounts.set(nth % ACCOUNTS, newest);
				}
				expect(resting.size()).toBe(keys.size);
			}
			for (const nth of [...keys.keys()]) take(nth);
			expect(resting.size()).toBe(0);
		}),
		{ numRuns: 300 },
	);
});

test("no more rest than may; who goes is loaded again, who stays is whole", () => {
	const resting = createRestingKeys(10);
	for (let nth = 0; nth < 35; nth++) {
		const fields = plainKeyFields(keyIdOf(nth), { accountId: accountIdOf(nth) });
		const key = { digest: digestOf(nth), seq: nth, fields, accountSeq: nth, account: plainAccountFields };
		expect(resting.put(key)).toBe(true);
		expect(resting.size()).toBe(Math.min(10, nth + 1));
	}
	const left = Array.from({ length: 35 }, (_, nth) => resting.take(digestOf(nth))).filter((key) => key !== undefined);
	expect(left.map(({ seq }) => seq)).toEqual(Array.from({ length: 10 }, (_, nth) => 25 + nth));
	expect(resting.size()).toBe(0);
});

test("a text is there as long as somebody holds it, and its number is used again", () => {
	const texts = new SharedTexts();
	const [one, two, oneAgain] = ["one", "two", "one"].map((text) => texts.hold(text)) as [number, number, number];
	expect(oneAgain).toBe(one);
	texts.release(one);
	expect([texts.text(one), texts.text(two), texts.size]).toEqual(["one", "two", 2]);
	texts.release(one);
	expect(texts.size).toBe(1);
	expect([texts.hold("three"), texts.hold("one")]).toEqual([one, 2]);
	expect([texts.text(one), texts.text(2), texts.size]).toEqual(["three", "one", 3]);
});

test("a key whose ids are not ours does not rest", () => {
	const resting = createRestingKeys(10);
	const whole = plainKeyFields(keyIdOf(1), { accountId: accountIdOf(1) });
	const key = { digest: digestOf(1), seq: 1, fields: whole, accountSeq: 1, account: plainAccountFields };
	for (const fields of [
		{ ...whole, id: "key_1" },
		{ ...whole, accountId: `${accountIdOf(1)}0` },
	])
		expect(resting.put({ ...key, fields })).toBe(false);
	expect(resting.put({ ...key, digest: "d" as KeyDigest })).toBe(false);
	expect(resting.size()).toBe(0);
});

test("the bytes of a key at rest, of one that is known, of its limits and of a slice of credit have a budget", () => {
	const { stdout, exitCode } = Bun.spawnSync(
		[process.execPath, join(import.meta.dir, "../bench/key-memory-process.ts"), "8000"],
		{ stderr: "inherit" },
	);
	expect(exitCode).toBe(0);
	const bytes = JSON.parse(stdout.toString()) as Record<"known" | "resting" | "limited" | "slice", number>;
	expect(bytes.resting).toBeLessThan(200);
	expect(bytes.known).toBeLessThan(1_400);
	expect(bytes.limited).toBeLessThan(350);
	expect(bytes.slice).toBeLessThan(700);
}, 60_000);
