import { describe, expect, test } from "bun:test";
import type { Fault } from "../../src/base/fault.ts";
import { createConsoleLimiter } from "../../src/console/console-limiter.ts";
import { deviceOf } from "../../src/console/sign-in/auth-device.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const MB = 1024 * 1024;
const clock = createManualClock();

/** Creates a request whose body the test sends piece by piece. */
function arriving(address: string) {
	let pieces!: ReadableStreamDefaultController<Uint8Array>;
	const body = new ReadableStream<Uint8Array>({
		start(controller) {
			pieces = controller;
		},
	});
	const request = new Request("http://service/", { method: "POST", body });
	return { connection: { request, address, setIdleTimeout() {} }, pieces };
}

const codeOf = (error: Fault) => error.code;

describe("the console", () => {
	test("stops reading a request body that does not arrive within 15 s", async () => {
		const limiter = createConsoleLimiter({ clock });
		const { connection, pieces } = arriving("192.0.2.1");
		pieces.enqueue(new Uint8Array(1));
		const read = limiter.withBody(connection, { owner: null, bytesMax: MB }, () => "read").catch(codeOf);
		await Bun.sleep(0);
		clock.advance(16_000);
		expect(await read).toBe("request_timeout");
	});

	for (const attackers of [1, 4, 16])
		test(`leaves memory to one network while ${attackers} of another stall their bodies`, async () => {
			const limiter = createConsoleLimiter({ clock });
			const stalled: Promise<unknown>[] = [];
			for (let nth = 0; nth < attackers * 20; nth += 1) {
				const { connection, pieces } = arriving(`192.0.${nth % attackers}.1`);
				pieces.enqueue(new Uint8Array(MB - 1));
				stalled.push(limiter.withBody(connection, { owner: null, bytesMax: MB }, () => "read").catch(codeOf));
				await Bun.sleep(0);
			}
			const { connection, pieces } = arriving("198.51.100.1");
			pieces.enqueue(new Uint8Array(MB / 2));
			pieces.close();
			const read = limiter.withBody(connection, { owner: null, bytesMax: MB }, ({ request }) => request.bytes());
			expect((await read).length).toBe(MB / 2);
			clock.advance(16_000);
			expect(new Set(await Promise.all(stalled))).toContain("request_timeout");
		});

	test("refuses an account's changes beyond 120 a minute, but not another account's", async () => {
		const limiter = createConsoleLimiter({ clock });
		for (let nth = 0; nth < 120; nth += 1) limiter.change("a");
		expect(() => limiter.change("a")).toThrow("too many changes");
		limiter.change("b");
		clock.advance(60_001);
		limiter.change("a");
	});

	test("serves an account with few reads before an account with many", async () => {
		const limiter = createConsoleLimiter({ clock });
		const ends: (() => void)[] = [];
		const begun: string[] = [];
		const read = (owner: string) =>
			void limiter.read(owner, () => {
				begun.push(owner);
				return new Promise<void>((resolve) => void ends.push(resolve));
			});
		for (let nth = 0; nth < 300; nth += 1) read(`attacker ${nth % 4}`);
		read("customer");
		await Bun.sleep(0);
		expect(begun).toHaveLength(8);
		ends.shift()?.();
		await Bun.sleep(0);
		expect(begun.at(-1)).toBe("customer");
	});

	test("serves a browser that signed in before although many strangers wait", async () => {
		const limiter = createConsoleLimiter({ clock });
		const begun: string[] = [];
		const signIn = (kind: "known" | "unknown", owner: string) =>
			void limiter.signIn(kind, owner, () => {
				begun.push(owner);
				return new Promise(() => {});
			});
		for (let nth = 0; nth < 300; nth += 1) signIn("unknown", `network ${nth}`);
		signIn("known", "browser");
		await Bun.sleep(0);
		expect(begun).toEqual(["network 0", "network 1", "network 2", "network 3", "browser"]);
	});

	test("recognises a known browser by its signed cookie only", () => {
		const secret = "s".repeat(32);
		const signature = new Bun.CryptoHasher("sha256", secret).update("device~a~usr_1").digest("base64");
		const deviceIn = (cookie: string) =>
			deviceOf(new Request("http://x.example", { headers: { cookie: `d=${encodeURIComponent(cookie)}` } }), {
				secret,
				createAuthCookie: () => ({ name: "d", attributes: {} }),
			});
		expect(deviceIn(`device~a~usr_1.${signature}`)).toEqual({ id: "a", userIds: ["usr_1"] });
		for (const forged of [`device~b~usr_1.${signature}`, "device~a~usr_1.", "device~a~usr_1"])
			expect(deviceIn(forged)).toBeNull();
	});
});
