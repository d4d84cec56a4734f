import { describe, expect, test } from "bun:test";
import { Fault } from "../../src/base/fault.ts";
import { checkAccess, checkKey } from "../../src/keys/access.ts";
import { readBearerSecret } from "../../src/keys/bearer.ts";
import { addressNetwork, addressSite, createFailedAttempts } from "../../src/keys/failed-attempts.ts";
import { setKeyFields } from "../../src/keys/key-entry.ts";
import { newSecret } from "../../src/keys/secret.ts";
import { codeThrownBy } from "../support/code-of.ts";
import { plainKey, plainKeyFields } from "../support/plain-key.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const NOW = 1_800_000_000_000;

describe("the access check", () => {
	test("admits a valid key of a valid account", () => {
		expect(codeThrownBy(() => checkAccess(plainKey(), NOW))).toBe("none");
		expect(codeThrownBy(() => checkAccess(plainKey({ expiresAtMs: NOW + 1 }), NOW))).toBe("none");
	});

	test("names only the first cause of a refusal: key, then account, then money", () => {
		const worst = { state: "suspended", toppedUp: false, signedIn: false } as const;
		expect(codeThrownBy(() => checkAccess(plainKey({ state: "revoked", expiresAtMs: NOW }, worst), NOW))).toBe(
			"api_key_revoked",
		);
		expect(codeThrownBy(() => checkAccess(plainKey({ expiresAtMs: NOW }, worst), NOW))).toBe("api_key_expired");
		expect(codeThrownBy(() => checkAccess(plainKey({}, worst), NOW))).toBe("account_suspended");
		expect(codeThrownBy(() => checkAccess(plainKey({}, { signedIn: false, toppedUp: false }), NOW))).toBe(
			"sign_in_required",
		);
		expect(codeThrownBy(() => checkAccess(plainKey({}, { toppedUp: false }), NOW))).toBe("top_up_required");
	});

	test("allows a read-only key only reads, even after another field of the key changes", () => {
		const reader = plainKey({ readsOnly: true });
		expect(codeThrownBy(() => checkAccess(reader, NOW))).toBe("read_only_key");
		expect(codeThrownBy(() => checkKey(reader, NOW))).toBe("read_only_key");
		expect(codeThrownBy(() => checkKey(reader, NOW, "reads"))).toBe("none");
		expect(codeThrownBy(() => checkKey(plainKey(), NOW, "reads"))).toBe("none");
		// Applies fields that lack `readsOnly`, as a previous version writes them.
		setKeyFields(reader, plainKeyFields("key_1"));
		expect(codeThrownBy(() => checkKey(reader, NOW))).toBe("read_only_key");
		const over = plainKey({ readsOnly: true, state: "revoked" });
		expect(codeThrownBy(() => checkKey(over, NOW, "reads"))).toBe("api_key_revoked");
	});

	test("answers 503 for a key that was dropped from memory", () => {
		const stale = plainKey();
		stale.current = false;
		expect(codeThrownBy(() => checkAccess(stale, NOW))).toBe("service_unavailable");
	});
});

describe("a bearer token", () => {
	const secret = newSecret("service");
	const read = (headers: Record<string, string>) => readBearerSecret(new Headers(headers), "service");

	test("is read from Authorization or x-api-key, or from both if they are equal", () => {
		expect(read({ authorization: `Bearer ${secret}` })).toBe(secret);
		expect(read({ authorization: `bearer   ${secret} ` })).toBe(secret);
		expect(read({ "x-api-key": secret })).toBe(secret);
		expect(read({ authorization: `Bearer ${secret}`, "x-api-key": secret })).toBe(secret);
	});

	test("is reported as missing_api_key if the request has none", () => {
		expect(codeThrownBy(() => read({}))).toBe("missing_api_key");
		expect(codeThrownBy(() => read({ authorization: "Bearer " }))).toBe("missing_api_key");
	});

	test("is reported as invalid_api_key if it is malformed", () => {
		for (const authorization of [
			"Bearer x",
			`Basic ${secret}`,
			secret,
			`Bearer ${secret} x`,
			`Bearer ${"a".repeat(100_000)}`,
		]) {
			expect(codeThrownBy(() => read({ authorization }))).toBe("invalid_api_key");
		}
		expect(codeThrownBy(() => read({ "x-api-key": "" }))).toBe("invalid_api_key");
	});

	test("is refused if the two headers have different ones", () => {
		expect(codeThrownBy(() => read({ authorization: `Bearer ${secret}`, "x-api-key": newSecret("service") }))).toBe(
			"invalid_api_key",
		);
	});
});

describe("failed attempts with a key", () => {
	test("of an address get 429 beyond the limit until the minute ends", () => {
		const clock = createManualClock();
		const attempts = createFailedAttempts({ clock }, { perMinuteMax: () => 3 });
		for (let i = 0; i < 3; i++) attempts.count("192.0.2.1");
		clock.advance(20_000);
		try {
			attempts.count("192.0.2.1");
			expect.unreachable();
		} catch (error) {
			expect(error).toBeInstanceOf(Fault);
			expect([(error as Fault).code, (error as Fault).retryAfterS]).toEqual(["rate_limit_exceeded", 40]);
		}
		expect(codeThrownBy(() => attempts.count("192.0.2.2"))).toBe("none");
		clock.advance(40_000);
		expect(codeThrownBy(() => attempts.count("192.0.2.1"))).toBe("none");
	});

	test("count for an IPv6 /64 together, and for an IPv4-mapped address as its IPv4", () => {
		expect(addressNetwork("2001:db8:0:1::5")).toBe("2001:db8:0:1");
		expect(addressNetwork("2001:0DB8:0000:0001:ffff:1:2:3")).toBe("2001:db8:0:1");
		expect(addressNetwork("::1")).toBe("0:0:0:0");
		expect(addressNetwork("fe80::1%eth0")).toBe("fe80:0:0:0");
		expect(addressNetwork("::ffff:192.0.2.7")).toBe("192.0.2.7");
		expect(addressSite("2001:db8:0:1::5")).toBe("2001:db8:0");
		expect(addressSite("::ffff:192.0.2.7")).toBe(addressSite("192.0.2.8"));
	});

	test("are counted for at most 20,000 addresses", () => {
		const attempts = createFailedAttempts({ clock: createManualClock() }, { perMinuteMax: () => 3 });
		for (let i = 0; i < 25_000; i++) attempts.count(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
		expect(attempts.size()).toBe(20_000);
	});
});
