/**
 * The floor of the goals: a gateway that keeps what the product promises of one request and does nothing else. It knows
 * the key by its digest, takes from the credit, writes down in a mapped file what was reserved and what was settled,
 * sends the request under its own model and limit, stops it when the client leaves or it takes too long, reads the
 * count of the model server, answers under its own id, and has the settlement in Postgres within 100 ms. No routes, dialects,
 * limits, retries, metrics, leases, other instances or replay.
 *
 *     UPSTREAM=http://127.0.0.1:9000/v1 KEYS=a,b DATABASE_URL=… JOURNAL_FILE=… bun test/bench/promise-floor.ts
 */
import postgres from "postgres";
import { createEndOfTurn } from "../../src/base/next-turn.ts";
import { rawMemberOf } from "./raw-member.ts";

interface Settlement {
	id: string;
	key: string;
	charge: number;
	at: string;
}
type Usage = { prompt_tokens: number; completion_tokens: number };

const JSON_HEADERS = { "content-type": "application/json" };
const STREAM_HEADERS = { "content-type": "text/event-stream" };
const RECORD_BYTES = 420;
const JOURNAL_BYTES = 64 * 1024 * 1024;
const CHARGE_MAX = 1e6;
/** As in the product: shorter bodies are written anew. */
const SPLICED_CHARS = 256 * 1024;
const digestOf = (secret: string) => new Bun.CryptoHasher("sha256", "pepper").update(secret).digest("base64");

export async function startPromiseFloor(env: Readonly<Record<string, string | undefined>>) {
	const upstream = `${env.UPSTREAM}/chat/completions`;
	const credit = new Map((env.KEYS ?? "").split(",").map((key) => [digestOf(`Bearer ${key}`), { key, nano: 1e15 }]));
	const journalFile = env.JOURNAL_FILE as string;
	await Bun.write(journalFile, new Uint8Array(JOURNAL_BYTES));
	const journal = Bun.mmap(journalFile, { shared: true });
	const encoder = new TextEncoder();
	let written = 0;
	const sql = postgres(env.DATABASE_URL as string, { max: 1, onnotice: () => {} });
	await sql`create table if not exists settled (id uuid primary key, key text, charge bigint, at timestamptz)`;
	let waiting: Settlement[] = [];
	const send = async () => {
		const rows = waiting;
		waiting = [];
		const column = <Name extends keyof Settlement>(name: Name) => rows.map((row) => row[name]);
		if (rows.length > 0)
			await sql`insert into settled select * from unnest(${column("id")}::uuid[], ${column("key")}::text[],
				${column("charge")}::bigint[], ${column("at")}::text[]::timestamptz[])`;
	};
	const timer = setInterval(send, 100);

	function record(what: object): void {
		if (written + RECORD_BYTES > JOURNAL_BYTES) written = 0;
		encoder.encodeInto(JSON.stringify(what), journal.subarray(written, written + RECORD_BYTES));
		written += RECORD_BYTES;
	}

	function settle(id: string, account: { key: string; nano: number }, usage: Usage): void {
		const charge = usage.prompt_tokens * 1_000 + usage.completion_tokens * 2_000;
		account.nano += CHARGE_MAX - charge;
		record({ id, settled: charge, ...usage });
		waiting.push({ id, key: account.key, charge, at: new Date().toISOString() });
	}

	const endOfTurn = createEndOfTurn();
	const server = Bun.serve({
		hostname: "127.0.0.1",
		port: 0,
		idleTimeout: 0,
		maxRequestBodySize: 64 * 1024 * 1024,
		development: false,
		async fetch(request) {
			const account = credit.get(digestOf(request.headers.get("authorization") ?? ""));
			if (account === undefined) return new Response(null, { status: 401 });
			const text = await request.text();
			const { model, messages, stream = false, stream_options } = JSON.parse(text);
			const head = { model, max_tokens: 128, stream, stream_options };
			const raw = text.length < SPLICED_CHARS ? undefined : rawMemberOf(text, "messages");
			const body = raw
				? `${JSON.stringify(head).slice(0, -1)},"messages":${raw.text}}`
				: JSON.stringify({ ...head, messages });
			const id = crypto.randomUUID();
			account.nano -= CHARGE_MAX;
			record({ id, reserved: CHARGE_MAX, key: account.key });
			const call = new AbortController();
			request.signal.addEventListener("abort", () => call.abort(), { once: true });
			const late = setTimeout(() => call.abort(), 600_000);
			// As the product's: those of one turn leave together, and their answers are read together.
			if (raw === undefined) await endOfTurn();
			const answer = await fetch(upstream, { method: "POST", headers: JSON_HEADERS, body, signal: call.signal });
			const done = (usage: Usage) => {
				clearTimeout(late);
				settle(id, account, usage);
			};
			if (stream) return new Response(relay(answer, id, done), { headers: STREAM_HEADERS });
			await endOfTurn();
			const reply = (await answer.json()) as { usage: Usage };
			done(reply.usage);
			return new Response(JSON.stringify({ ...reply, id }), { headers: JSON_HEADERS });
		},
	});
	return {
		port: server.port as number,
		/** Resolves with the charges that are in Postgres. */
		async stop() {
			await server.stop(true);
			clearInterval(timer);
			await send();
			const [row] = await sql<{ charged: string }[]>`select coalesce(sum(charge), 0) as charged from settled`;
			await sql.end();
			return Number(row?.charged);
		},
	};
}

/** Reads, counts and writes each event under its own id. Whole events come in every piece: this upstream never cuts one. */
function relay(answer: Response, id: string, done: (usage: Usage) => void): ReadableStream<string> {
	const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
	let usage: Usage = { prompt_tokens: 0, completion_tokens: 0 };
	return new ReadableStream<string>({
		async pull(controller) {
			const { done: ended, value } = await reader.read();
			if (ended) {
				done(usage);
				controller.close();
				return;
			}
			let text = "";
			for (const line of Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString().split("\n")) {
				if (line === "data: [DONE]") text += "data: [DONE]\n\n";
				else if (line !== "") {
					const event = JSON.parse(line.slice(6));
					if (event.usage) usage = event.usage;
					text += `data: ${JSON.stringify({ ...event, id })}\n\n`;
				}
			}
			controller.enqueue(text);
		},
		cancel: (reason) => reader.cancel(reason),
	});
}

if (import.meta.main) {
	const floor = await startPromiseFloor(process.env);
	process.stdout.write(`${JSON.stringify({ port: floor.port })}\n`);
	process.on("SIGTERM", () => void floor.stop().then(() => process.exit(0)));
}
