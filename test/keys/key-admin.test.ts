import { describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { readControlAfter } from "../../src/cluster/control-log.ts";
import {
	createAccount,
	findAccount,
	markSignedIn,
	suspendAccount,
	unsuspendAccount,
} from "../../src/keys/account-admin.ts";
import { createKey, getKey, listKeys, revokeKey, rotateKey, updateKey } from "../../src/keys/key-admin.ts";
import { createKeyring, keyLoader } from "../../src/keys/keyring.ts";
import { createDigest, type KeyDigest, parseSecret } from "../../src/keys/secret.ts";
import { parseUsd } from "../../src/money/nano-usd.ts";
import { codeOf } from "../support/code-of.ts";
import { withDatabase } from "../support/database.ts";
import { plainAccountFields, plainKeyFields } from "../support/plain-key.ts";

const digest = createDigest("pepper");

const { sql, statements } = await withDatabase();
const maker = { statements, digest, serviceName: "service" };

let made = 0;
async function newAccount(): Promise<string> {
	made += 1;
	return (await createAccount(statements, { email: `user${made}@example.com`, vouched: true })).id;
}

const usd = (text: string) => {
	const amount = parseUsd(text);
	if (amount === undefined) throw new Error(text);
	return amount;
};
async function entriesOf(subject: string) {
	const entries = (await readControlAfter(statements, 0)).filter((entry) => entry.subject === subject);
	return entries.map(({ atMicros, ...entry }) => {
		expect(atMicros).toBeGreaterThan(1e15);
		return entry;
	});
}

describe("accounts", () => {
	test("have no credit at first, and unique e-mail addresses", async () => {
		const { id } = await createAccount(statements, { email: " Ada@Example.com ", name: "Ada", vouched: true });
		const account = await findAccount(statements, "ADA@example.com");
		expect(account).toMatchObject({ id, email: "ada@example.com", name: "Ada", state: "active", toppedUp: false });
		expect(account?.signedInAtMs).toBeNumber();
		const [budget] = await sql`select kind, limit_nano_usd, account_id from budget where id = ${id}`;
		expect(budget).toMatchObject({ kind: "account", limit_nano_usd: "0", account_id: id });
		expect(await codeOf(createAccount(statements, { email: "ada@example.com", vouched: true }))).toBe("conflict");
		expect(await codeOf(createAccount(statements, { email: "ada", vouched: true }))).toBe("invalid_request");
		expect(await findAccount(statements, "nobody")).toBeNull();
	});

	test("send instances their state if suspended, reactivated or signed in first", async () => {
		const { id } = await createAccount(statements, { email: "states@example.com", vouched: false });
		const suspended = await suspendAccount(statements, id);
		const active = await unsuspendAccount(statements, id);
		const signedIn = await markSignedIn(statements, id);
		expect(await markSignedIn(statements, id)).toBeNull();
		const entry = (seq: number | null, state: string, isSignedIn: boolean) => ({
			...{ seq: seq as number, kind: "account" as const, subject: id },
			payload: {
				state,
				toppedUp: false,
				signedIn: isSignedIn,
				timeZone: "UTC",
				tags: [],
				tokensPerMinute: null,
				agreements: [],
			},
		});
		expect(await entriesOf(id)).toEqual([
			entry(suspended.seq, "suspended", false),
			entry(active.seq, "active", false),
			entry(signedIn, "active", true),
		]);
		expect(await codeOf(suspendAccount(statements, "acc_none"))).toBe("not_found");
	});
});

describe("keys", () => {
	test("are found by their secret, which is not stored", async () => {
		const accountId = await newAccount();
		const settings = {
			name: "prod",
			capNanoUsd: usd("12.5"),
			models: ["a", "b/c"],
			expiresAtMs: 1_900_000_000_123,
			requestsPerMinute: 60,
			concurrencyMax: 4,
			tokensPerMinute: 90_000,
		};
		const { id, secret, seq } = await createKey(maker, accountId, settings);
		const fields = {
			id,
			accountId,
			state: "active",
			capPeriod: "lifetime",
			readsOnly: false,
			projectId: null,
			...settings,
		};
		const loaded = await keyLoader(statements)(digest(secret));
		expect(loaded).toEqual({
			seq: expect.any(Number) as unknown as number,
			key: fields as NonNullable<typeof loaded.key>,
			account: { ...plainAccountFields, toppedUp: false },
			project: null,
		});
		expect(loaded.seq).toBeGreaterThanOrEqual(seq);
		expect(await entriesOf(id)).toEqual([{ seq, kind: "key", subject: id, payload: fields }]);
		const [budget] = await sql`select kind, limit_nano_usd, account_id from budget where id = ${id}`;
		expect(budget).toMatchObject({ kind: "key", limit_nano_usd: "12500000000", account_id: accountId });
		const rows = await sql`select * from api_key where id = ${id}`;
		expect(JSON.stringify(rows)).not.toContain(secret.slice(15, -4));
		expect(await getKey(statements, { id, accountId })).toMatchObject({
			prefix: secret.slice(0, 15),
			lastFour: secret.slice(-4),
			spentNanoUsd: 0,
			...settings,
		});
		expect(JSON.stringify(await getKey(statements, { id }))).not.toContain(digest(secret));
	});

	test("have no limits without limit settings", async () => {
		const accountId = await newAccount();
		const { id, secret } = await createKey(maker, accountId, { name: "plain" });
		const { key } = await keyLoader(statements)(digest(secret));
		const { id: _, ...plain } = plainKeyFields("plain", { accountId });
		expect(key).toEqual({ ...plain, id });
	});

	test("refuse settings that are out of range", async () => {
		const accountId = await newAccount();
		const refused = [
			{ name: "" },
			{ name: "a\nb" },
			{ name: "x".repeat(101) },
			{ name: "k", models: [""] },
			{ name: "k", models: [...new Array(40).fill("m".repeat(200)), "m"] },
			{ name: "k", requestsPerMinute: 0 },
			{ name: "k", concurrencyMax: 1.5 },
		];
		for (const settings of refused) expect(await codeOf(createKey(maker, accountId, settings))).toBe("invalid_request");
		expect(await codeOf(createKey(maker, "acc_none", { name: "k" }))).toBe("not_found");
		expect((await listKeys(statements, accountId)).items).toEqual([]);
	});

	test("are not found by the digest of an unknown secret", async () => {
		const loaded = await keyLoader(statements)("nothing" as KeyDigest);
		expect(loaded).toMatchObject({ key: null, account: null });
		const [clock] = await sql`select coalesce(max(seq), 0) as seq from control_log`;
		expect(loaded.seq).toBe(Number(clock?.seq));
	});

	test("are revoked by their owner only, any number of times", async () => {
		const accountId = await newAccount();
		const { id } = await createKey(maker, accountId, { name: "k" });
		expect(await codeOf(revokeKey(statements, { id, accountId: await newAccount() }))).toBe("not_found");
		const first = await revokeKey(statements, { id, accountId });
		const { revokedAtMs } = await getKey(statements, { id });
		const second = await revokeKey(statements, { id });
		expect(second.seq).toBeGreaterThan(first.seq);
		expect(await getKey(statements, { id })).toMatchObject({ state: "revoked", revokedAtMs: revokedAtMs as number });
		expect((await entriesOf(id)).map((entry) => entry.payload.state)).toEqual(["active", "revoked", "revoked"]);
		expect(await codeOf(updateKey(statements, { id }, { name: "x" }))).toBe("conflict");
		expect(await codeOf(rotateKey(maker, { id }, 0))).toBe("conflict");
		expect(await codeOf(rotateKey(maker, { id: "key_none" }, 0))).toBe("not_found");
	});

	test("change only in the settings that an update names", async () => {
		const accountId = await newAccount();
		const { id } = await createKey(maker, accountId, { name: "k", requestsPerMinute: 5, models: ["m"] });
		await updateKey(statements, { id }, { capNanoUsd: usd("5") });
		await updateKey(statements, { id }, { capNanoUsd: usd("3"), name: "renamed" });
		await updateKey(statements, { id }, { capNanoUsd: usd("4") });
		await updateKey(statements, { id }, { capNanoUsd: null });
		await updateKey(statements, { id }, { models: null, expiresAtMs: 1_900_000_000_000, concurrencyMax: 2 });
		const entries = await entriesOf(id);
		const lowered = entries.filter((entry) => entry.kind === "budget").map((entry) => entry.payload.lowered);
		expect(lowered).toEqual([true, true, false, false]);
		const record = await getKey(statements, { id });
		expect(record).toMatchObject({
			name: "renamed",
			capNanoUsd: null,
			models: [],
			requestsPerMinute: 5,
			concurrencyMax: 2,
		});
		const [budget] = await sql`select limit_nano_usd from budget where id = ${id}`;
		expect(budget?.limit_nano_usd).toBeNull();
		expect(entries.filter((entry) => entry.kind === "key").at(-1)?.payload).toMatchObject({
			name: "renamed",
			models: null,
			expiresAtMs: 1_900_000_000_000,
		});
		expect(await codeOf(updateKey(statements, { id, accountId: "acc_other" }, { name: "x" }))).toBe("not_found");
	});

	test("remain valid for the grace period of a rotation and then expire", async () => {
		const accountId = await newAccount();
		const settings = {
			name: "prod",
			capNanoUsd: usd("2"),
			models: ["m"],
			requestsPerMinute: 7,
			concurrencyMax: 3,
			expiresAtMs: 4_000_000_000_000,
		};
		const old = await createKey(maker, accountId, settings);
		const beforeMs = Date.now();
		const fresh = await rotateKey(maker, { id: old.id, accountId }, 3_600_000);
		expect(await getKey(statements, { id: fresh.id })).toMatchObject({ ...settings, accountId, state: "active" });
		const replaced = await getKey(statements, { id: old.id });
		expect(replaced).toMatchObject({ state: "active", replacedBy: fresh.id });
		expect(Math.abs((replaced.expiresAtMs as number) - (beforeMs + 3_600_000))).toBeLessThan(10_000);
		expect((await keyLoader(statements)(digest(fresh.secret))).key?.id).toBe(fresh.id);
		expect((await entriesOf(fresh.id)).length).toBe(1);
		expect((await entriesOf(old.id)).at(-1)?.seq).toBe(fresh.seq);
		expect(await codeOf(rotateKey(maker, { id: old.id }, 0))).toBe("conflict");
	});

	test("end at their rotation without a grace period, and never after their expiry", async () => {
		const accountId = await newAccount();
		const first = await createKey(maker, accountId, { name: "k" });
		await rotateKey(maker, { id: first.id }, 0);
		expect((await getKey(statements, { id: first.id })).state).toBe("revoked");
		const soon = Date.now() + 60_000;
		const second = await createKey(maker, accountId, { name: "k", expiresAtMs: soon });
		await rotateKey(maker, { id: second.id }, 3_600_000);
		expect((await getKey(statements, { id: second.id })).expiresAtMs).toBe(soon);
	});

	test("get the same replacement if their rotation is repeated within an hour", async () => {
		const accountId = await newAccount();
		const old = await createKey(maker, accountId, { name: "k" });
		const token = crypto.randomUUID();
		const attempts = await Promise.all(
			Array.from({ length: 6 }, () => rotateKey(maker, { id: old.id, accountId }, 60_000, token)),
		);
		const [first] = attempts;
		expect(new Set(attempts.map(({ id, secret }) => `${id} ${secret}`)).size).toBe(1);
		expect(new Set(attempts.map(({ seq }) => seq)).size).toBe(6);
		expect(parseSecret(String(first?.secret), "service")).toBe(first?.secret as never);
		const ends = (await getKey(statements, { id: old.id })).expiresAtMs;
		await rotateKey(maker, { id: old.id, accountId }, 0, token);
		expect((await getKey(statements, { id: old.id })).expiresAtMs).toBe(ends);
		expect(await codeOf(rotateKey(maker, { id: old.id }, 0, crypto.randomUUID()))).toBe("conflict");
		expect(await codeOf(rotateKey(maker, { id: old.id }, 0, "short"))).toBe("invalid_request");
		const other = await createKey(maker, accountId, { name: "k" });
		expect((await rotateKey(maker, { id: other.id }, 0, token)).secret).not.toBe(first?.secret as never);
		await sql`update api_key set created_at = created_at - interval '61 minutes' where id = ${String(first?.id)}`;
		expect(await codeOf(rotateKey(maker, { id: old.id }, 0, token))).toBe("conflict");
	});

	test("are replaced once by concurrent rotations", async () => {
		const { id } = await createKey(maker, await newAccount(), { name: "k" });
		const codes = await Promise.all(Array.from({ length: 8 }, () => codeOf(rotateKey(maker, { id }, 1000))));
		expect(codes.filter((code) => code === "none").length).toBe(1);
	});
});

describe("the keyring on Postgres", () => {
	test("has the same keys as Postgres at the end, whatever changed while it loaded them", async () => {
		const accountId = await newAccount();
		const keys = await Promise.all(
			Array.from({ length: 12 }, (_, i) => createKey(maker, accountId, { name: `k${i}` })),
		);
		const ring = createKeyring({ load: keyLoader(statements), log: silentLog }, { keysMax: 8 });
		let applied = 0;
		const follow = async () => {
			for (const entry of await readControlAfter(statements, applied)) {
				ring.apply(entry);
				applied = entry.seq;
			}
		};
		await follow();
		for (let round = 0; round < 6; round++) {
			const changes = keys.map(({ id }, i) => {
				if ((i + round) % 4 === 0) return revokeKey(statements, { id });
				if ((i + round) % 4 === 1) return updateKey(statements, { id }, { name: `r${round}` }).catch(() => {});
				return Promise.resolve();
			});
			const loads = keys.map(({ secret }) => ring.load(digest(secret)).catch(() => null));
			await Promise.all([...changes, ...loads, follow(), follow()]);
		}
		await follow();
		for (const { id, secret } of keys) {
			const entry = ring.peek(digest(secret));
			if (entry === undefined || entry === "unknown") continue;
			expect(entry).toMatchObject({
				id,
				name: (await getKey(statements, { id })).name,
				state: (await getKey(statements, { id })).state,
			});
		}
		expect(ring.size().keys).toBeGreaterThan(0);
	});
});
