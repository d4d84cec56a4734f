/**
 * Attackers of shared resources, one per row: `bun test/attack/attackers.ts NAME URL SECRET…` attacks with all these
 * accounts until it is killed. It prints `ready` once the attack runs. A row describes the attack of a single account.
 */
import { connect } from "node:net";

export interface Attacker {
	/** The resource to exhaust, by its name in SECURITY.md. */
	readonly resource: string;
	readonly connections: number;
	/** Makes one connection and resolves when it has ended. It is then called again. */
	attack(url: URL, secret: string): Promise<unknown>;
}

const MB = 1024 * 1024;
const chat = (more: string, messages = '[{"role":"user","content":"x"}]') =>
	`{"model":"test-model","messages":${messages}${more}}`;
const longChat = (chars: number) => chat("", `[{"role":"user","content":"${"text ".repeat(chars / 5)}"}]`);
const list = (count: number, make: (at: number) => string) => Array.from({ length: count }, (_, at) => make(at)).join();

const PIECE_BYTES = 64 * 1024;

/** A body without a declared length. */
const chunked = (text: string) =>
	new ReadableStream({
		start(controller) {
			for (let at = 0; at < text.length; at += PIECE_BYTES) controller.enqueue(text.slice(at, at + PIECE_BYTES));
			controller.close();
		},
	}).pipeThrough(new TextEncoderStream());

/** Sends the same body repeatedly. */
function posts(
	resource: string,
	text: string,
	{
		connections = 100,
		isChunked = false,
		hasKey = true,
	}: { connections?: number; isChunked?: boolean; hasKey?: boolean } = {},
): Attacker {
	const headers = { "content-type": "application/json" };
	const blob = new Blob([text]);
	return {
		resource,
		connections,
		attack: async ({ origin }, secret) =>
			(
				await fetch(`${origin}/v1/chat/completions`, {
					method: "POST",
					headers: { ...headers, authorization: `Bearer ${hasKey ? secret : "wrong"}` },
					body: isChunked ? chunked(text) : blob,
				})
			).bytes(),
	};
}

/** Declares a large body, then sends `bytes` of it once a second, `again` times. */
function unfinished(resource: string, bytes: number, again: number): Attacker {
	return {
		resource,
		connections: 12,
		attack: ({ hostname, port }, secret) =>
			new Promise((resolve) => {
				const socket = connect(Number(port), hostname);
				socket.on("error", () => {});
				socket.on("close", resolve);
				socket.on("data", () => {});
				socket.write(
					`POST /v1/chat/completions HTTP/1.1\r\nHost: x.example\r\nAuthorization: Bearer ${secret}\r\nContent-Type: application/json\r\nContent-Length: ${31 * MB}\r\n\r\n`,
				);
				const piece = `{"model":"${"x".repeat(bytes)}`;
				let left = again;
				const timer = setInterval(() => {
					if (left-- > 0 && !socket.destroyed) socket.write(piece);
					else clearInterval(timer);
				}, 1_000);
				socket.write(piece);
			}),
	};
}

export const ATTACKERS = {
	"90,000 stop texts": posts("processor", chat(`,"stop":[${list(90_000, (at) => `"s${at}"`)}]`)),
	"49,000 logit biases": posts("processor", chat(`,"logit_bias":{${list(49_000, (at) => `"${at}":1`)}}`)),
	"49,000 field names in tools": posts(
		"processor",
		chat(
			`,"tools":[${list(1_000, (at) => `{"type":"function","function":{"name":"f${at}","parameters":{${list(45, (nr) => `"n${nr}":{}`)}}}}`)}]`,
		),
	),
	"a wrong message after 4,000 valid messages": posts(
		"processor",
		chat("", `[${list(4_000, (at) => `{"role":"user","content":"x${at}"}`)},{"role":"nobody"}]`),
		// The bodies of four accounts are more than the body memory.
		{ connections: 200 },
	),
	"small requests without a key": posts("processor", chat(""), { hasKey: false, connections: 400 }),
	"texts of 6 MB": posts("processor", longChat(6 * MB), { connections: 6 }),
	"texts of 3 MB": posts("body memory", longChat(3 * MB)),
	"chunked texts of 1 MB": posts("body memory", longChat(MB), { isChunked: true }),
	"texts of 1 MB without a key": posts("body memory", longChat(MB), { hasKey: false, connections: 400 }),
	"bodies that never arrive": unfinished("body memory", 1, 0),
	"bodies that arrive slowly": unfinished("body memory", 2 * MB, 60),
} as const satisfies Readonly<Record<string, Attacker>>;

if (import.meta.main) {
	const [name = "", url = "", ...secrets] = process.argv.slice(2);
	const { attack, connections } = ATTACKERS[name as keyof typeof ATTACKERS];
	const target = new URL(url);
	let begun = 0;
	for (const secret of secrets)
		for (let nth = 0; nth < connections; nth += 1)
			void (async () => {
				for (;;) {
					const attacking = attack(target, secret).catch(() => Bun.sleep(100));
					begun += 1;
					if (begun === secrets.length * connections) console.log("ready");
					await attacking;
				}
			})();
}
