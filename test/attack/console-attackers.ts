/**
 * Attackers of the console's shared resources, one per row, and a customer. Each runs as a separate process: `bun
 * test/attack/console-attackers.ts NAME URL CALLER…` attacks until it is killed and prints `ready` once the attack
 * runs; with the name `customer` it prints one line of JSON. A CALLER is `ADDRESS` or `ADDRESS=COOKIES`.
 */
import { connect } from "node:net";
import { type CustomerReport, loopMs, summarized } from "./customer.ts";

export interface ConsoleAttacker {
	/** The resource to exhaust, by its name in SECURITY.md. */
	readonly resource: string;
	/** Number of connections of all callers together. */
	readonly connections: number;
	/** True if the callers have a session. */
	readonly signedIn: boolean;
	/** Makes one connection and resolves when it has ended. It is then called again. */
	attack(url: string, caller: Caller): Promise<unknown>;
}

interface Caller {
	readonly address: string;
	readonly cookies: string;
}

const MB = 1024 * 1024;

const headersOf = (url: string, { address, cookies }: Caller): Record<string, string> => ({
	...{ origin: url, "content-type": "application/json", "x-forwarded-for": address },
	...(cookies === "" ? {} : { cookie: cookies }),
});

/** Declares `declared` bytes, sends `sent` of them, and waits until the server closes the connection. */
const unfinished = (path: string, declared: number, sent: number) => (url: string, caller: Caller) =>
	new Promise((resolve) => {
		const { hostname, port } = new URL(url);
		const socket = connect(Number(port), hostname);
		socket.on("error", () => {});
		socket.on("close", resolve);
		socket.on("data", () => {});
		const headers = Object.entries({ host: "x.example", ...headersOf(url, caller), "content-length": declared });
		socket.write(
			`POST ${path} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}`).join("\r\n")}\r\n\r\n`,
		);
		socket.write(`{"x":"${"x".repeat(Math.max(0, sent - 6))}`.slice(0, sent));
	});

const repeated =
	(method: string, path: string, body?: () => string) =>
	async (url: string, caller: Caller): Promise<unknown> => {
		const sent = body === undefined ? {} : { body: body() };
		const answer = await fetch(`${url}${path}`, { method, headers: headersOf(url, caller), ...sent });
		return answer.bytes();
	};

const month = new Date().toISOString().slice(0, 7);
const chat = JSON.stringify({ model: "none", messages: [{ role: "user", content: "x".repeat(31 * MB) }] });
const models = Array.from({ length: 150 }, (_, at) => `model-${at}-${"x".repeat(40)}`);
let changes = 0;
let strangers = 0;

/** A sign-in from its own network, with an email address that was never used before. */
function stranger(url: string): Promise<unknown> {
	strangers += 1;
	const address = `11.${strangers >> 16}.${(strangers >> 8) & 255}.${strangers & 255}`;
	const person = {
		name: "Stranger",
		email: `${crypto.randomUUID()}@example.com`,
		password: "a stranger's long password",
	};
	return repeated("POST", "/api/auth/sign-up/email", () => JSON.stringify(person))(url, { address, cookies: "" });
}

export const CONSOLE_ATTACKERS = {
	"webhooks that stop after one byte": {
		...{ resource: "open requests", connections: 4_300, signedIn: false },
		attack: unfinished("/api/stripe/webhook", MB, 1),
	},
	"webhooks without their last byte": {
		...{ resource: "bodies of others", connections: 400, signedIn: false },
		attack: unfinished("/api/stripe/webhook", MB, MB - 1),
	},
	"sign-ins without their last byte": {
		...{ resource: "bodies of others", connections: 1_000, signedIn: false },
		attack: unfinished("/api/auth/sign-in/email", 64 * 1024, 64 * 1024 - 1),
	},
	"chats of 31 MB": {
		...{ resource: "bodies of accounts", connections: 24, signedIn: true },
		attack: repeated("POST", "/api/console/playground/chat?key=none", () => chat),
	},
	"sign-ups from new networks": {
		...{ resource: "requests of the sign-in", connections: 300, signedIn: false },
		attack: stranger,
	},
	"statements as PDF": {
		...{ resource: "PDFs", connections: 60, signedIn: true },
		attack: repeated("GET", `/api/console/credit/statement.pdf?month=${month}`),
	},
	"usage sums": {
		...{ resource: "sessions and pages being read", connections: 300, signedIn: true },
		attack: repeated("GET", "/api/console/usage"),
	},
	"project changes": {
		...{ resource: "changes", connections: 32, signedIn: true },
		attack: repeated("POST", "/api/console/projects", () => JSON.stringify({ name: `p${changes++}`, models })),
	},
} as const satisfies Readonly<Record<string, ConsoleAttacker>>;

const PAUSE_MS = 20;
const VISITED = ["/api/console/overview", "/api/console/keys", "/api/console/public/config"];
/** Requested only in each eighth round, because an address may request it 120 times a minute. */
const SESSION = "/api/auth/get-session";

/** Loads pages until the time has passed, each page at least once. */
async function visit(url: string, caller: Caller, seconds: number): Promise<CustomerReport> {
	const times: number[] = [];
	const loopTimes: number[] = [];
	const refused: string[] = [];
	const pid = process.env.CONSOLE_PID ?? "";
	const endsMs = performance.now() + seconds * 1_000;
	for (let round = 0; round === 0 || performance.now() < endsMs; round += 1)
		for (const path of round % 8 === 0 ? [...VISITED, SESSION] : VISITED) {
			const [beganMs, beganLoopMs] = [performance.now(), loopMs(pid)];
			const status = await fetch(`${url}${path}`, { headers: headersOf(url, caller) }).then(
				async (answer) => (await answer.bytes()) && String(answer.status),
				() => "none",
			);
			times.push(performance.now() - beganMs);
			loopTimes.push(loopMs(pid) - beganLoopMs);
			if (status !== "200") refused.push(`${path} ${status}`);
			await Bun.sleep(PAUSE_MS);
		}
	return summarized(refused, times, loopTimes);
}

if (import.meta.main) {
	const [name = "", url = "", ...callers] = process.argv.slice(2);
	const parsed = callers.map((text) => {
		const at = text.indexOf("=");
		return at < 0 ? { address: text, cookies: "" } : { address: text.slice(0, at), cookies: text.slice(at + 1) };
	});
	if (name === "customer") {
		const [caller = { address: "", cookies: "" }] = parsed;
		console.log(JSON.stringify(await visit(url, caller, Number(process.env.VISIT_S ?? "2"))));
	} else {
		const { attack, connections } = CONSOLE_ATTACKERS[name as keyof typeof CONSOLE_ATTACKERS];
		let begun = 0;
		for (let nth = 0; nth < connections; nth += 1)
			void (async () => {
				for (;;) {
					const attacking = attack(url, parsed[nth % parsed.length] as Caller).catch(() => Bun.sleep(100));
					begun += 1;
					if (begun === connections) console.log("ready");
					await attacking;
				}
			})();
	}
}
