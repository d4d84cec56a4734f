import { expect, test } from "bun:test";
import OpenAI from "openai";
import { Webhook } from "standardwebhooks";
import { isPublicAddress, publicUrlProblem } from "../../src/console/notices/public-request.ts";
import { createWebhookSender, webhookSecret } from "../../src/console/notices/webhook.ts";
import { localServer, untilEnd } from "../support/at-end.ts";

/** Webhooks must be signed as Standard Webhooks specifies, and reach no private address. */

interface Received {
	readonly headers: Headers;
	readonly body: string;
}

const received: Received[] = [];
const receiver: Bun.Server<undefined> = localServer(async (request) => {
	received.push({ headers: request.headers, body: await request.text() });
	const { pathname } = new URL(request.url);
	if (pathname === "/moved") return Response.redirect(`http://127.0.0.1:${receiver.port}/elsewhere`, 307);
	if (pathname === "/silent") return new Promise<Response>(() => {});
	if (pathname === "/endless")
		return new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(64 * 1024)) }));
	return new Response("what somebody else says", { status: pathname === "/no" ? 500 : 200 });
});
const secret = webhookSecret("the console's own secret", "salt");
const message = (path: string, body = '{"id":"evt_1"}') => {
	const url = path.startsWith("/") ? `http://127.0.0.1:${receiver.port}${path}` : path;
	return { id: "evt_1", url, secret, body, atMs: Date.now() };
};
const never = new AbortController().signal;
const send = createWebhookSender({ production: false });

test("the webhook sender signs the example of Standard Webhooks as published", async () => {
	const example = {
		...message("/", '{"test": 2432232314}'),
		id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
		secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		atMs: 1_614_265_330_000,
	};
	expect(await send(example, never)).toEqual({ status: 200 });
	const headers = received.at(-1)?.headers;
	expect(headers?.get("webhook-signature")).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
	expect(headers?.get("webhook-timestamp")).toBe("1614265330");
	expect(headers?.get("webhook-id")).toBe("msg_p5jXN8AQM9LWM0D4loKWxJek");
});

test("two client libraries accept the webhook's signature and refuse altered bodies", async () => {
	await send(message("/", '{"id":"evt_1","type":"batch.completed","data":{"id":"batch_ü"}}'), never);
	const { headers, body } = received.at(-1) as Received;
	expect(await new OpenAI({ apiKey: "none", webhookSecret: secret }).webhooks.unwrap(body, headers)).toMatchObject({
		type: "batch.completed",
		data: { id: "batch_ü" },
	});
	const given = Object.fromEntries(headers);
	expect(new Webhook(secret).verify(body, given)).toMatchObject({ id: "evt_1" });
	expect(() => new Webhook(secret).verify(body.replace("evt_1", "evt_2"), given)).toThrow();
	expect(() => new Webhook(webhookSecret("the console's own secret", "another salt")).verify(body, given)).toThrow();
	expect(webhookSecret("another secret", "salt")).not.toBe(secret);
});

test("the webhook sender reads only the status, follows no redirect, has a deadline", async () => {
	const before = received.length;
	expect(await send(message("/moved"), never)).toEqual({ status: 307 });
	expect(received.length).toBe(before + 1);
	expect(await send(message("/no"), never)).toEqual({ status: 500 });
	expect(await send(message("/endless"), never)).toEqual({ status: 200 });
	expect(await send(message("/silent"), AbortSignal.timeout(50))).toEqual({ problem: "timeout" });
	expect(await send(message("http://127.0.0.1:9/"), never)).toEqual({ problem: "no_connection" });
	const hangs = createWebhookSender({ production: true }, () => new Promise(() => {}));
	expect(await hangs(message("https://hangs.example/"), AbortSignal.timeout(50))).toEqual({ problem: "timeout" });
});

test("the webhook sender in production refuses private addresses in any notation", async () => {
	const before = received.length;
	const { port } = receiver;
	const asked: string[] = [];
	const leadsTo = (...addresses: string[]) =>
		createWebhookSender({ production: true }, async (host) => {
			asked.push(host);
			return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
		});
	const hook = message(`https://hook.example:${port}/`);
	for (const address of ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "fe80::1", "::ffff:127.0.0.1"]) {
		expect({ address, ...(await leadsTo(address)(hook, never)) }).toEqual({ address, problem: "address_not_public" });
		expect(await leadsTo("8.8.8.8", address)(hook, never)).toEqual({ problem: "address_not_public" });
	}
	expect(new Set(asked)).toEqual(new Set(["hook.example"]));
	for (const url of ["127.0.0.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:7f00:1]", "localhost", "127.1", "0"]) {
		expect({ url, problem: publicUrlProblem(`https://${url}:${port}/`, true) }).toEqual({
			url,
			problem: "The URL must point to a public address.",
		});
		const answer = await leadsTo("8.8.8.8")(message(`https://${url}:${port}/`), never);
		expect({ url, ...answer }).toEqual({ url, problem: "address_not_public" });
	}
	const none = createWebhookSender({ production: true }, async () => []);
	expect(await none(hook, never)).toEqual({ problem: "name_not_found" });
	expect(received.length).toBe(before);
});

test("the webhook sender connects to the address it checked although DNS changes", async () => {
	const hello = Promise.withResolvers<string>();
	const listener = untilEnd(
		Bun.listen({
			port: 0,
			hostname: "127.0.0.1",
			socket: {
				data(socket, bytes) {
					hello.resolve(bytes.toString("latin1"));
					socket.end();
				},
			},
		}),
	);
	const answers = ["127.0.0.1"];
	const looked = createWebhookSender({ production: false }, async () => [{ address: answers.pop() ?? "", family: 4 }]);
	// Only the test's resolver knows this host name, so the connection must have used the resolved address.
	expect(await looked(message(`https://hook.invalid:${listener.port}/`), never)).toEqual({ problem: "no_connection" });
	expect(await hello.promise).toContain("hook.invalid");
	expect(answers).toEqual([]);
}, 15_000);

test("the webhook sender requires https and a URL without a password", () => {
	for (const url of [
		"http://hook.example/",
		"ftp://hook.example/",
		"https://user:pw@hook.example/",
		"hook.example",
		"",
	])
		expect({ url, ok: publicUrlProblem(url, false) === undefined }).toEqual({ url, ok: false });
	expect(publicUrlProblem("https://hook.example/?token=1", true)).toBeUndefined();
	expect(publicUrlProblem("http://127.0.0.1:1/", true)).toBe("The URL must begin with https://");
	expect(publicUrlProblem(`https://hook.example/${"x".repeat(2_000)}`, true)).toBe("Enter a valid URL.");
});

test("the webhook sender accepts addresses of the public internet only", () => {
	for (const address of ["8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00::1"])
		expect({ address, is: isPublicAddress(address) }).toEqual({ address, is: true });
	for (const address of [
		...["0.0.0.0", "10.0.0.1", "100.64.0.1", "127.8.9.1", "169.254.1.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"],
		...["198.18.0.1", "192.0.0.1", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255"],
		...[
			"::",
			"::1",
			"::ffff:8.8.8.8",
			"64:ff9b::7f00:1",
			"fe80::1",
			"fc00::1",
			"ff02::1",
			"2001::1",
			"2002:7f00:1::",
			"2001:db8::1",
		],
		...["", "hook.example", "127.0.0.1.nip.example"],
	])
		expect({ address, is: isPublicAddress(address) }).toEqual({ address, is: false });
});

test("the webhook sender limits the length of the normalized URL", () => {
	const written = (url: string) => new URL(url).href;
	for (const sign of ["x", "é", "東", "\u{1f600}", " ", '"'])
		for (const before of ["https://hook.example/", "https://hook.example/?q=", `https://${"東".repeat(20)}.example/`]) {
			const most = Math.floor(
				(2_000 - written(before).length) / (written(`${before}${sign}x`).length - written(`${before}x`).length),
			);
			for (const [count, problem] of [
				[most - 1, undefined],
				[most, undefined],
				[most + 1, "Enter a valid URL."],
			] as const) {
				// The URL parser drops a trailing space, so the test encodes it.
				const url = `${before}${sign.repeat(count)}`.replace(/ $/, "%20");
				const told = [
					publicUrlProblem(url, true),
					problem === undefined ? publicUrlProblem(written(url), true) : problem,
				];
				expect([sign, before, count, ...told]).toEqual([sign, before, count, problem, problem]);
			}
		}
});
